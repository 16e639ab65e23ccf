//! Routes: who is told to the data plane to have which addresses, and where.
//!
//! Pools, blocks, nodes and workloads each leave what they know in the [`RouteTable`]; [`resolve`] turns it into routes.
//!
//! # Invariants
//! - A route depends on the entries on its path, on the addresses of the node that it leads to, and, in a pool of mode
//!   `CrossSubnet`, on the subnet of the local node. Whatever changes one of them marks the ranges concerned as dirty:
//!   an entry all that is inside it, a node the routes that lead to it, the local subnet the pools of that mode.
//! - While no routes are needed nothing is marked, and nothing is sent; all is resolved when that changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use ipnet::IpNet;

use super::node::RouteNode;
use super::node_names::NodeNames;
use super::outbox::Outbox;
use super::pool::RoutePool;
use super::resolve::{Resolved, resolve};
use super::route_table::{RouteTable, UseKind};
use tortie_config::RouteSource;

use crate::config::Config;
use crate::input::{Block, IpPool, Node, WorkloadEndpoint, WorkloadEndpointKey};
use crate::message::Message;

/// See the module.
#[derive(Debug)]
pub(super) struct Routes {
    config: Config,
    names: NodeNames,
    table: RouteTable,
    nodes: HashMap<Arc<str>, RouteNode>,
    /// What each block says, in order.
    blocks: HashMap<IpNet, Box<[Claim]>>,
    /// The ranges of each workload, in order.
    workloads: HashMap<WorkloadEndpointKey, Box<[IpNet]>>,
    cross_subnet_pools: BTreeSet<IpNet>,
    active: bool,
    dirty: HashSet<IpNet>,
    /// The routes that lead to a node.
    by_node: HashMap<Arc<str>, HashSet<IpNet>>,
    out: Outbox<IpNet, Resolved>,
}

/// A range, and the node that it is on.
type Claim = (IpNet, Arc<str>);

/// An element that only one of two lists has.
enum Change<'a, T> {
    Removed(&'a T),
    Added(&'a T),
}

// === impl Routes ===

impl Routes {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            names: NodeNames::default(),
            table: RouteTable::default(),
            nodes: HashMap::new(),
            blocks: HashMap::new(),
            workloads: HashMap::new(),
            cross_subnet_pools: BTreeSet::new(),
            active: false,
            dirty: HashSet::new(),
            by_node: HashMap::new(),
            out: Outbox::default(),
        }
    }

    pub(super) fn set_pool(&mut self, range: IpNet, pool: Option<&IpPool>) {
        let pool = pool.map(RoutePool::from);
        if pool.is_some_and(|pool| pool.cross_subnet) {
            self.cross_subnet_pools.insert(range);
        } else {
            self.cross_subnet_pools.remove(&range);
        }
        if self.table.set_pool(range, pool) {
            self.mark(range);
        }
    }

    pub(super) fn set_block(&mut self, range: IpNet, block: Option<&Block>) {
        if self.config.route_source != RouteSource::CalicoIpam {
            return;
        }
        let new = block.map_or_else(Box::default, |block| self.claims(range, block));
        let old = if new.is_empty() {
            self.blocks.remove(&range)
        } else {
            self.blocks.insert(range, new.clone())
        }
        .unwrap_or_default();
        for change in changes(&old, &new) {
            let (claimed, node) = match change {
                Change::Removed((claimed, _)) => (*claimed, None),
                Change::Added((claimed, node)) => (*claimed, Some(Arc::clone(node))),
            };
            if self.table.set_block(claimed, range.prefix_len(), node) {
                self.mark(claimed);
            }
        }
    }

    /// What a block says: that it is on its node, and which of its addresses are on others.
    fn claims(&mut self, range: IpNet, block: &Block) -> Box<[Claim]> {
        let owner = block.node.as_deref().filter(|node| !node.is_empty());
        let mut claims: BTreeMap<IpNet, Arc<str>> = BTreeMap::new();
        for allocation in &block.allocations {
            let node = allocation.node.as_str();
            if !node.is_empty() && Some(node) != owner && range.contains(&allocation.address) {
                claims.insert(allocation.address.into(), self.names.get(node));
            }
        }
        if let Some(owner) = owner {
            // Last, so that it wins in a block of one address.
            claims.insert(range, self.names.get(owner));
        }
        claims.into_iter().collect()
    }

    pub(super) fn set_node(&mut self, name: &str, node: Option<&Node>) {
        let new = node.and_then(RouteNode::new);
        let old = self.nodes.remove(name);
        if old.is_none() && new.is_none() {
            return;
        }
        let name = self.names.get(name);
        let hosts = [&old, &new].map(|node| node.as_ref().map_or(&[][..], |node| &node.hosts));
        let tunnels = [&old, &new].map(|node| node.as_ref().map_or(&[][..], |node| &node.tunnels));
        for change in changes(hosts[0], hosts[1]) {
            let (address, changed) = match change {
                Change::Removed(address) => (*address, self.table.remove_host(*address, &name)),
                Change::Added(address) => {
                    (*address, self.table.add_host(*address, Arc::clone(&name)))
                }
            };
            if changed {
                self.mark(address);
            }
        }
        for change in changes(tunnels[0], tunnels[1]) {
            let (address, changed) = match change {
                Change::Removed((address, kind)) => {
                    (*address, self.table.remove_use(*address, &name, *kind))
                }
                Change::Added((address, kind)) => (
                    *address,
                    self.table.add_use(*address, Arc::clone(&name), *kind),
                ),
            };
            if changed {
                self.mark(address);
            }
        }
        let same_addresses = match (&old, &new) {
            (Some(old), Some(new)) => old.same_addresses(new),
            _ => false,
        };
        if !same_addresses {
            self.mark_routes_to(&name);
        }
        if let Some(new) = new {
            self.nodes.insert(name, new);
        }
    }

    pub(super) fn set_workload(
        &mut self,
        key: &WorkloadEndpointKey,
        endpoint: Option<&WorkloadEndpoint>,
    ) {
        if self.config.route_source == RouteSource::CalicoIpam && key.node != self.config.node {
            return;
        }
        let endpoint = endpoint.filter(|endpoint| self.config.admits(endpoint));
        let mut new: Vec<IpNet> = endpoint
            .into_iter()
            .flat_map(|endpoint| endpoint.ipv4_nets.iter().chain(&endpoint.ipv6_nets))
            .map(IpNet::trunc)
            .collect();
        new.sort_unstable();
        new.dedup();
        let new = new.into_boxed_slice();
        let old = if new.is_empty() {
            self.workloads.remove(key)
        } else if let Some(held) = self.workloads.get_mut(key) {
            Some(std::mem::replace(held, new.clone()))
        } else {
            self.workloads.insert(key.clone(), new.clone())
        }
        .unwrap_or_default();
        let node = self.names.get(&key.node);
        for change in changes(&old, &new) {
            let (range, changed) = match change {
                Change::Removed(range) => (
                    *range,
                    self.table.remove_use(*range, &node, UseKind::Workload),
                ),
                Change::Added(range) => (
                    *range,
                    self.table
                        .add_use(*range, Arc::clone(&node), UseKind::Workload),
                ),
            };
            if changed {
                self.mark(range);
            }
        }
    }

    /// Finds out what to send, given whether any routes are needed.
    pub(super) fn resolve(&mut self, active: bool) {
        if active && !self.active {
            self.dirty.extend(self.table.keys());
        }
        if !active && self.active {
            self.dirty = HashSet::new();
            self.by_node = HashMap::new();
            self.out.want_nothing();
        }
        self.active = active;
        for range in std::mem::take(&mut self.dirty) {
            let new = resolve(range, &self.table, &self.nodes, &self.config.node);
            let old_node = self.out.sent(&range).and_then(|old| old.node.clone());
            let new_node = new.as_ref().and_then(|new| new.node.clone());
            if old_node != new_node {
                self.index(range, old_node, new_node);
            }
            self.out.want(range, new);
        }
    }

    pub(super) fn flush_removals(&mut self, sink: &mut dyn FnMut(Message)) {
        self.out.flush_removals(sink, Message::RouteRemove);
    }

    pub(super) fn flush_updates(&mut self, sink: &mut dyn FnMut(Message)) {
        self.out.flush_updates(sink, |dst, resolved| {
            Message::RouteUpdate(resolved.to_route(*dst))
        });
    }

    fn index(&mut self, range: IpNet, old: Option<Arc<str>>, new: Option<Arc<str>>) {
        if let Some(old) = old
            && let Some(routes) = self.by_node.get_mut(&old)
        {
            routes.remove(&range);
            if routes.is_empty() {
                self.by_node.remove(&old);
            }
        }
        if let Some(new) = new {
            self.by_node.entry(new).or_default().insert(range);
        }
    }

    /// What is known about a range changed, and with it the routes to all that is inside.
    fn mark(&mut self, range: IpNet) {
        if self.active {
            self.dirty.insert(range);
            self.dirty.extend(self.table.inside(range));
        }
    }

    /// The addresses of a node changed.
    fn mark_routes_to(&mut self, node: &Arc<str>) {
        if let Some(routes) = self.by_node.get(node) {
            self.dirty.extend(routes);
        }
        if **node == *self.config.node {
            for pool in self.cross_subnet_pools.clone() {
                self.mark(pool);
            }
        }
    }
}

/// The differences of two lists that are in order: what to remove, then what to add.
fn changes<'a, T: Ord>(old: &'a [T], new: &'a [T]) -> impl Iterator<Item = Change<'a, T>> {
    let removed = old.iter().filter(|item| new.binary_search(item).is_err());
    let added = new.iter().filter(|item| old.binary_search(item).is_err());
    removed.map(Change::Removed).chain(added.map(Change::Added))
}
