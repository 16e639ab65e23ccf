//! What is wrong with the addresses of a cluster, and who holds each of them.
//!
//! [`Ipam::load`](crate::Ipam::load) reads the objects, the caller says who lives in the cluster ([`InUse`]), and
//! [`check`] compares the two. Pure.

mod findings;
mod machines;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::block_affinity::BlockAffinityState;
use tortie_api::{IpPool, IpamHandle};
use tortie_store::{Invalid, List, Resource};

pub use self::findings::check;
use crate::block::Block;
use crate::request::Owner;

/// All objects of address management.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub pools: Vec<IpPool>,
    pub blocks: Vec<Block>,
    pub handles: Vec<IpamHandle>,
    /// Claims: who, which block, in what state.
    pub affinities: Vec<(Owner, IpNet, BlockAffinityState)>,
    /// What could not be read.
    pub invalid: Vec<Invalid>,
}

/// Who lives in the cluster. A list that is not known is none: then nothing of that sort counts as leaked.
#[derive(Debug, Clone, Default)]
pub struct InUse {
    /// Workloads, such as pods.
    pub workloads: Option<Vec<Workload>>,
    /// Nodes, with the addresses of their tunnels.
    pub nodes: Option<BTreeMap<String, BTreeSet<IpAddr>>>,
    /// Addresses of services.
    pub services: Option<BTreeSet<IpAddr>>,
    /// Virtual machines, and instances of machines that belong to none: their namespaces and names.
    pub machines: Option<BTreeSet<(String, String)>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workload {
    pub namespace: String,
    /// The pod's name, or that of whatever it is.
    pub name: String,
    /// Where it runs.
    pub node: String,
    /// Its addresses; none if it has not got them yet.
    pub addresses: BTreeSet<IpAddr>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Every address that is not free.
    pub allocations: Vec<Allocation>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// An address that is not free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    pub address: IpAddr,
    pub block: IpNet,
    pub block_owner: Option<Owner>,
    pub handle: Option<String>,
    /// Facts about its holder.
    pub attributes: BTreeMap<String, String>,
    /// Which allocation it is; a release can ask for this one only.
    pub sequence_number: u64,
    /// Whether it was released and is not free yet.
    pub is_cooling_down: bool,
    /// Whether a node has it that does not own the block.
    pub is_borrowed: bool,
    /// What is known of its use.
    pub state: State,
}

/// What is known of the use of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// This one uses it.
    InUse(String),
    /// Nobody uses it, for this reason.
    Leaked(String),
    /// It cannot be told.
    Unknown,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// Nobody uses an address that is held.
    Leaked(IpAddr),
    /// Somebody uses an address that nobody holds: it may be given out a second time.
    Unallocated {
        address: IpAddr,
        /// Who uses it.
        user: String,
    },
    /// Several use one address.
    UsedTwice {
        address: IpAddr,
        /// Who uses it.
        users: Vec<String>,
    },
    /// Somebody uses an address of no pool.
    OutsidePools {
        address: IpAddr,
        /// Who uses it.
        user: String,
    },
    /// A handle counts other addresses than its blocks say.
    HandleCount {
        handle: String,
        block: IpNet,
        /// What the handle says.
        counted: i64,
        /// What the block says.
        held: i64,
    },
    /// A handle that has no address at all.
    EmptyHandle(String),
    /// An address is held under a handle that does not exist.
    MissingHandle { handle: String, address: IpAddr },
    /// A block that is in no pool.
    BlockOutsidePools(IpNet),
    /// Two blocks share addresses.
    BlocksOverlap(IpNet, IpNet),
    /// A block that nobody owns or claims and that holds nothing.
    AbandonedBlock(IpNet),
    /// A block whose owner has no claim to it.
    MissingAffinity(IpNet, Owner),
    /// A claim to a block that is not there.
    AffinityWithoutBlock(IpNet, Owner),
    /// A claim to a block of another.
    StaleAffinity(IpNet, Owner),
    /// A claim that was neither confirmed nor given up.
    UnconfirmedAffinity(IpNet, Owner),
    /// A claim of a node that does not exist.
    OwnerGone(IpNet, Owner),
    /// An object that cannot be read.
    Unreadable {
        /// Which.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Loaded {
    /// Adds the objects of a list.
    pub fn add(&mut self, list: List) {
        self.invalid.extend(list.invalid);
        for item in list.items {
            let affinity = crate::ipam::read_affinity(&item);
            match item {
                Resource::IpPool(pool) => self.pools.push(*pool),
                Resource::IpamHandle(handle) => self.handles.push(*handle),
                Resource::IpamBlock(block) => {
                    let key = tortie_store::Key::global(block_kind(), &block.metadata.name);
                    match Block::load(block.spec) {
                        Ok(block) => self.blocks.push(block),
                        Err(error) => {
                            self.invalid
                                .push(Invalid::new(key, error.to_string(), None));
                        }
                    }
                }
                Resource::BlockAffinity(object) => {
                    self.affinities
                        .extend(affinity.map(|(owner, net)| (owner, net, object.spec.state)));
                }
                _ => {}
            }
        }
    }
}

fn block_kind() -> tortie_store::Kind {
    tortie_store::Kind::IpamBlock
}
