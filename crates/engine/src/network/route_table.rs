//! What is known about each range of addresses: which pool it is, whose block, which node's address, who uses it.
//!
//! Every source adds what it knows to the entry of a range and takes it back later; an entry with nothing left goes.
//! Several sources can speak about one range, rightly (a pool with a single block) or for a moment while objects
//! arrive in any order (two nodes with the same address). Entries keep all of it, in an order that does not depend on
//! who came first.

use std::sync::Arc;

use ipnet::IpNet;

use super::pool::RoutePool;
use super::prefix_map::PrefixMap;

/// See the module.
pub(super) type RouteTable = PrefixMap<Entry>;

/// What is known about one range of addresses.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The pool with this range.
    pub(super) pool: Option<RoutePool>,
    /// The nodes that blocks give this range to. Longest block first: the block of exactly this range before larger ones
    /// from which an address is borrowed.
    blocks: Vec<BlockClaim>,
    /// The nodes that have this address, by name.
    hosts: Vec<Arc<str>>,
    /// Who uses this address, by node and kind.
    uses: Vec<Use>,
}

/// A block says that a range is on a node.
#[derive(Debug)]
struct BlockClaim {
    /// The prefix length of the block; with the range inside it, that tells which block it is.
    block_length: u8,
    node: Arc<str>,
}

/// A workload or a tunnel device has an address.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) node: Arc<str>,
    pub(super) kind: UseKind,
    count: usize,
}

/// What uses an address. The first of these counts where a node uses an address twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UseKind {
    Workload,
    WireguardTunnel,
    IpipTunnel,
    VxlanTunnel,
}

// === impl Entry ===

impl Entry {
    /// The node that the range belongs to as a block, or as a borrowed address.
    pub(super) fn block_node(&self) -> Option<&Arc<str>> {
        self.blocks.first().map(|claim| &claim.node)
    }

    /// The node whose address this is.
    pub(super) fn host(&self) -> Option<&Arc<str>> {
        self.hosts.first()
    }

    /// Who uses this address; the first one counts, with those of the same node.
    pub(super) fn uses(&self) -> &[Use] {
        &self.uses
    }

    fn find_use(&self, node: &Arc<str>, kind: UseKind) -> Result<usize, usize> {
        self.uses
            .binary_search_by(|held| held.node.cmp(node).then(held.kind.cmp(&kind)))
    }

    fn is_empty(&self) -> bool {
        self.pool.is_none()
            && self.blocks.is_empty()
            && self.hosts.is_empty()
            && self.uses.is_empty()
    }
}

// === impl RouteTable ===

/// Each of these tells whether something changed.
impl RouteTable {
    pub(super) fn set_pool(&mut self, range: IpNet, pool: Option<RoutePool>) -> bool {
        self.change(range, |entry| {
            let changed = entry.pool != pool;
            entry.pool = pool;
            changed
        })
    }

    /// A block gives `range`, all of it or one address, to a node; or to none any more.
    pub(super) fn set_block(
        &mut self,
        range: IpNet,
        block_length: u8,
        node: Option<Arc<str>>,
    ) -> bool {
        self.change(range, |entry| {
            let found = entry
                .blocks
                .binary_search_by(|claim| block_length.cmp(&claim.block_length));
            match (found, node) {
                (Ok(at), Some(node)) => {
                    let changed = entry.blocks[at].node != node;
                    entry.blocks[at].node = node;
                    changed
                }
                (Ok(at), None) => {
                    entry.blocks.remove(at);
                    true
                }
                (Err(at), Some(node)) => {
                    entry.blocks.insert(at, BlockClaim { block_length, node });
                    true
                }
                (Err(_), None) => false,
            }
        })
    }

    pub(super) fn add_host(&mut self, address: IpNet, node: Arc<str>) -> bool {
        self.change(address, |entry| match entry.hosts.binary_search(&node) {
            Ok(_) => false,
            Err(at) => {
                entry.hosts.insert(at, node);
                true
            }
        })
    }

    pub(super) fn remove_host(&mut self, address: IpNet, node: &Arc<str>) -> bool {
        self.change(address, |entry| match entry.hosts.binary_search(node) {
            Ok(at) => {
                entry.hosts.remove(at);
                true
            }
            Err(_) => false,
        })
    }

    pub(super) fn add_use(&mut self, range: IpNet, node: Arc<str>, kind: UseKind) -> bool {
        self.change(range, |entry| match entry.find_use(&node, kind) {
            Ok(at) => {
                entry.uses[at].count += 1;
                false
            }
            Err(at) => {
                let count = 1;
                entry.uses.insert(at, Use { node, kind, count });
                true
            }
        })
    }

    pub(super) fn remove_use(&mut self, range: IpNet, node: &Arc<str>, kind: UseKind) -> bool {
        self.change(range, |entry| match entry.find_use(node, kind) {
            Ok(at) if entry.uses[at].count > 1 => {
                entry.uses[at].count -= 1;
                false
            }
            Ok(at) => {
                entry.uses.remove(at);
                true
            }
            Err(_) => false,
        })
    }

    fn change(&mut self, range: IpNet, change: impl FnOnce(&mut Entry) -> bool) -> bool {
        self.update(range, Entry::is_empty, change)
    }
}
