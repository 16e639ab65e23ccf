//! What the collector knows of blocks, addresses, nodes and pools, kept small and indexed by what it is asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use tortie_api::{ClusterInformation, IpamBlock, Node};
use tortie_error::Causes;
use tortie_ipam::block::Block;
use tortie_ipam::{Owner, OwnerKind};

use super::allocation::{Allocation, Allocations, Place, Suspicion};
use super::pools::Pools;
use crate::pod::KUBERNETES;
use crate::shared::share;

/// Everything the collector remembers. Pure: events change it, and decisions are read off it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) blocks: BTreeMap<IpNet, BlockState>,
    /// In which blocks each node has how many addresses.
    by_node: HashMap<Arc<str>, Tally>,
    blocks_of: HashMap<Arc<str>, Vec<IpNet>>,
    /// Calico's nodes, with what Kubernetes calls them; none for nodes that Kubernetes does not know.
    pub(super) nodes: HashMap<Arc<str>, Option<Arc<str>>>,
    /// Leaks, with what Kubernetes calls the node; none if the node is gone.
    pub(super) confirmed: BTreeMap<Place, Option<Arc<str>>>,
    pub(super) dirty: BTreeSet<Arc<str>>,
    pub(super) all_dirty: bool,
    pub(super) pools: Pools,
    /// Whether somebody asked to leave the datastore alone.
    pub(super) is_locked: bool,
}

#[derive(Debug, Default)]
pub(super) struct BlockState {
    /// The node that owns it.
    pub(super) node: Option<Arc<str>>,
    pub(super) allocations: Allocations,
    /// Whether no address is held or cooling down.
    pub(super) is_empty: bool,
    /// Since when it could be given up.
    pub(super) unused_since: Option<Timestamp>,
    /// When the first of the addresses that are cooling down was released.
    pub(super) cooling_since: Option<Timestamp>,
}

/// Numbers of addresses by block, in order of the blocks. Nearly always there is one.
#[derive(Debug, Default)]
struct Tally(Vec<(IpNet, usize)>);

impl Tally {
    fn find(&self, net: IpNet) -> Result<usize, usize> {
        self.0.binary_search_by_key(&net, |(net, _)| *net)
    }

    fn add(&mut self, net: IpNet) {
        match self.find(net) {
            Ok(index) => self.0[index].1 += 1,
            Err(index) => {
                self.0.reserve_exact(1);
                self.0.insert(index, (net, 1));
            }
        }
    }

    fn subtract(&mut self, net: IpNet) {
        if let Ok(index) = self.find(net) {
            self.0[index].1 -= 1;
            if self.0[index].1 == 0 {
                self.0.remove(index);
            }
        }
    }

    fn total(&self) -> usize {
        self.0.iter().map(|(_, number)| number).sum()
    }
}

// === impl State ===

impl State {
    pub(super) fn new() -> Self {
        Self {
            blocks: BTreeMap::new(),
            by_node: HashMap::new(),
            blocks_of: HashMap::new(),
            nodes: HashMap::new(),
            confirmed: BTreeMap::new(),
            dirty: BTreeSet::new(),
            all_dirty: true,
            pools: Pools::default(),
            is_locked: false,
        }
    }

    /// Takes in a block as it is now. One that makes no sense is forgotten: nothing in it is safe to touch.
    pub(super) fn set_block(&mut self, block: IpamBlock) {
        let IpamBlock { metadata, spec, .. } = block;
        let net = spec.cidr.parse::<IpNet>();
        let block = match Block::load(spec) {
            Ok(block) => block,
            Err(error) => {
                tracing::warn!(block = %metadata.name, error = %Causes(&error), "A block cannot be read and is left alone");
                if let Ok(net) = net {
                    self.remove_block(net);
                }
                return;
            }
        };
        let net = block.net();
        self.pools.add_block(net);
        self.set_owner(net, block.owner());
        self.set_allocations(net, &block);
        let state = self.blocks.entry(net).or_default();
        let released = block.allocations().filter_map(|(_, attribute)| {
            let released_at = attribute.released_at.as_ref()?;
            Some(released_at.0)
        });
        state.cooling_since = released.min();
        state.is_empty = block.in_use() == 0;
        if !state.is_empty {
            state.unused_since = None;
        }
    }

    pub(super) fn remove_block(&mut self, net: IpNet) {
        self.set_owner(net, None);
        self.pools.remove_block(net);
        if let Some(block) = self.blocks.remove(&net) {
            for (address, allocation) in block.allocations.into_vec() {
                self.unindex((net, address), &allocation);
            }
        }
    }

    /// Takes in one of Calico's nodes. Tells whether anything changed.
    pub(super) fn set_node(&mut self, node: &Node) -> bool {
        let name = Self::kubernetes_name(node);
        let known = share(&node.metadata.name);
        self.nodes.insert(known, name.clone()) != Some(name)
    }

    /// What Kubernetes calls a node; nothing if it does not know it.
    pub(super) fn kubernetes_name(node: &Node) -> Option<Arc<str>> {
        let references = &node.spec.orch_refs;
        let kubernetes = references.iter().find(|to| to.orchestrator == KUBERNETES)?;
        Some(kubernetes.node_name.as_str())
            .filter(|name| !name.is_empty())
            .map(share)
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
        self.all_dirty = true;
    }

    /// Takes in whether the datastore is to be left alone.
    pub(super) fn set_information(&mut self, information: Option<&ClusterInformation>) {
        match information.map(|information| information.spec.datastore_ready) {
            None => self.is_locked = true,
            Some(Some(is_ready)) => self.is_locked = !is_ready,
            Some(None) => {}
        }
    }

    /// A pod on this node of Kubernetes went away.
    pub(super) fn pod_deleted(&mut self, node: &str) {
        if !node.is_empty() {
            // Nearly always both have one name; where they do not, the next look at everything finds it.
            self.dirty.insert(node.into());
        }
    }

    pub(super) fn allocation(&self, (net, address): Place) -> Option<&Allocation> {
        self.blocks.get(&net)?.allocations.get(address)
    }

    pub(super) fn allocation_mut(&mut self, (net, address): Place) -> Option<&mut Allocation> {
        self.blocks.get_mut(&net)?.allocations.get_mut(address)
    }

    /// Where the addresses that were given on a node are.
    pub(super) fn places_on(&self, node: &str) -> Vec<Place> {
        let mut places = Vec::new();
        for (net, _) in self
            .by_node
            .get(node)
            .into_iter()
            .flat_map(|tally| &tally.0)
        {
            let block = self.blocks.get(net).into_iter();
            let allocations = block.flat_map(|block| block.allocations.iter());
            let on_node = allocations.filter(|(_, known)| known.node.as_deref() == Some(node));
            places.extend(on_node.map(|(address, _)| (*net, address)));
        }
        places
    }

    /// How many addresses were given on each node.
    pub(super) fn counts_by_node(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        let nodes = self.by_node.iter();
        nodes.map(|(node, tally)| (node, tally.total()))
    }

    /// All nodes that own blocks or have addresses.
    pub(super) fn all_nodes(&self) -> BTreeSet<Arc<str>> {
        let nodes = self.by_node.keys().chain(self.blocks_of.keys());
        nodes.map(Arc::clone).collect()
    }

    /// The blocks that a node owns.
    pub(super) fn blocks_of(&self, node: &str) -> Vec<IpNet> {
        self.blocks_of.get(node).cloned().unwrap_or_default()
    }

    /// How many blocks a node owns.
    pub(super) fn count_blocks_of(&self, node: &str) -> usize {
        self.blocks_of.get(node).map_or(0, Vec::len)
    }

    /// Those of the leaks whose handles have nothing that is in use or in doubt.
    pub(super) fn wholly_leaked(&self, doubtful: &HashSet<Place>) -> Vec<Place> {
        let handle_of = |place: &Place| self.allocation(*place).map(Allocation::handle);
        let mut handles: HashSet<&str> = self.confirmed.keys().filter_map(handle_of).collect();
        if handles.is_empty() {
            return Vec::new();
        }
        for (net, block) in &self.blocks {
            for (address, allocation) in block.allocations.iter() {
                let is_leaked = allocation.suspicion == Suspicion::Confirmed;
                if !is_leaked || doubtful.contains(&(*net, address)) {
                    handles.remove(allocation.handle());
                }
            }
        }
        let leaks = self.confirmed.keys().copied();
        leaks
            .filter(|place| handle_of(place).is_some_and(|handle| handles.contains(handle)))
            .collect()
    }

    /// Notes that somebody uses an address after all.
    pub(super) fn acquit(&mut self, place: Place) {
        self.confirmed.remove(&place);
        if let Some(allocation) = self.allocation_mut(place) {
            allocation.suspicion = Suspicion::None;
        }
    }

    /// Forgets an address that was released, before the datastore tells.
    pub(super) fn forget(&mut self, (net, address): Place) {
        let block = self.blocks.get_mut(&net);
        if let Some(allocation) = block.and_then(|block| block.allocations.remove(address)) {
            self.unindex((net, address), &allocation);
        }
    }

    fn set_owner(&mut self, net: IpNet, owner: Option<Owner>) {
        let owner = owner.filter(|owner| owner.kind == OwnerKind::Host);
        let node: Option<Arc<str>> = owner.map(|owner| share(&owner.name));
        let before = self.blocks.get(&net).and_then(|block| block.node.clone());
        if before == node {
            return;
        }
        if let Some(before) = before {
            let blocks = self.blocks_of.entry(before);
            if let std::collections::hash_map::Entry::Occupied(mut blocks) = blocks {
                blocks.get_mut().retain(|known| *known != net);
                if blocks.get().is_empty() {
                    blocks.remove();
                }
            }
        }
        if let Some(node) = &node {
            let blocks = self.blocks_of.entry(Arc::clone(node)).or_default();
            if let Err(index) = blocks.binary_search(&net) {
                blocks.reserve_exact(1);
                blocks.insert(index, net);
            }
            self.dirty.insert(Arc::clone(node));
        }
        let state = self.blocks.entry(net).or_default();
        state.node = node;
        state.unused_since = None;
    }

    fn set_allocations(&mut self, net: IpNet, block: &Block) {
        let before = self.blocks.entry(net).or_default();
        let node = before.node.clone();
        let mut before = std::mem::take(&mut before.allocations);
        let mut after = Vec::new();
        for (address, attributes) in block.allocations() {
            let sequence = block.sequence_of(address);
            let Some(allocation) = Allocation::new(attributes, sequence, node.as_ref()) else {
                continue;
            };
            match before.remove(address) {
                Some(known) if known.is_same(&allocation) => {
                    after.push((address, known));
                    continue;
                }
                Some(replaced) => self.unindex((net, address), &replaced),
                None => {}
            }
            self.index(net, &allocation);
            after.push((address, allocation));
        }
        for (address, gone) in before.into_vec() {
            self.unindex((net, address), &gone);
        }
        self.blocks.entry(net).or_default().allocations = Allocations::new(after);
    }

    /// Files a new allocation.
    fn index(&mut self, net: IpNet, allocation: &Allocation) {
        if let Some(node) = &allocation.node {
            self.by_node.entry(Arc::clone(node)).or_default().add(net);
            self.dirty.insert(Arc::clone(node));
        }
    }

    fn unindex(&mut self, place: Place, allocation: &Allocation) {
        self.confirmed.remove(&place);
        let Some(node) = &allocation.node else {
            return;
        };
        self.dirty.insert(Arc::clone(node));
        if let Some(tally) = self.by_node.get_mut(node) {
            tally.subtract(place.0);
            if tally.0.is_empty() {
                self.by_node.remove(node);
            }
        }
    }
}
