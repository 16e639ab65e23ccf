//! The collector's decisions. Pure: time and the state of the cluster are arguments.
//!
//! ```text
//! in use ──nobody uses it──▶ suspect ──for the grace period──▶ confirmed ──still so, and so for the whole handle──▶ release
//!    ▲                          │                                  ▲ │
//!    └───somebody does──────────┴──────────────────────────────────┼─┘
//!                                              its node is gone ───┘
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::allocation::{Allocation, Class, Place, Suspicion, Tenant};
use super::cached_node::CachedNode;
use super::pod;
use super::state::State;

/// How long a virtual machine may be without any object in the cluster, as while it restarts or moves.
const MACHINE_GRACE: SignedDuration = SignedDuration::from_mins(5);

/// What is known of the cluster, perhaps a little outdated.
pub(super) trait View {
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<crate::pod::Pod>>;

    fn node(&self, name: &str) -> Option<Arc<CachedNode>>;

    /// Whether a virtual machine exists; nothing if that is not known.
    fn has_machine(&self, machine: &Tenant) -> Option<bool>;
}

/// What the datastore says of a node that was not among those it told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Kubernetes calls it so.
    Kubernetes(Arc<str>),
    /// It is there, but no node of Kubernetes.
    Foreign,
    /// There is no such node.
    Absent,
    /// The datastore did not answer.
    Unknown,
}

/// How long addresses may look unused before they are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grace {
    /// For ever, without even being suspected.
    Off,
    /// So long; zero for ever, but they are counted.
    For(SignedDuration),
}

impl Grace {
    /// How long blocks may be empty; nothing if for ever.
    fn of_blocks(self) -> Option<SignedDuration> {
        match self {
            Self::For(grace) if grace > SignedDuration::ZERO => Some(grace),
            _ => None,
        }
    }

    /// How long an address may look unused; nothing if it is not even suspected.
    fn of(self, class: &Class) -> Option<SignedDuration> {
        match (class, self) {
            (Class::Machine(_), Self::For(grace)) => Some(grace.max(MACHINE_GRACE)),
            (Class::Machine(_), Self::Off) => Some(MACHINE_GRACE),
            (_, Self::For(grace)) => Some(grace),
            (_, Self::Off) => None,
        }
    }
}

impl State {
    /// The nodes to be looked at: all of them, or those where something changed.
    pub(super) fn nodes_to_check(&self) -> Vec<Arc<str>> {
        let nodes = if self.all_dirty {
            self.all_nodes()
        } else {
            self.dirty.clone()
        };
        nodes.into_iter().collect()
    }

    /// Those of the nodes that the datastore did not tell of, so that it has to be asked.
    pub(super) fn unknown(&self, nodes: &[Arc<str>]) -> Vec<Arc<str>> {
        let unknown = nodes.iter().filter(|node| !self.nodes.contains_key(*node));
        unknown.map(Arc::clone).collect()
    }

    /// Looks at the addresses of nodes. Gives the nodes that are gone and have nothing in use, whose blocks can go.
    pub(super) fn scan(
        &mut self,
        nodes: &[Arc<str>],
        looked_up: &HashMap<Arc<str>, Lookup>,
        view: &impl View,
        grace: Grace,
        now: Timestamp,
    ) -> Vec<Arc<str>> {
        let mut gone = Vec::new();
        self.all_dirty = false;
        for node in nodes {
            let lookup = match self.nodes.get(node) {
                Some(Some(name)) => Lookup::Kubernetes(Arc::clone(name)),
                Some(None) => Lookup::Foreign,
                None => looked_up.get(node).cloned().unwrap_or(Lookup::Unknown),
            };
            let kubernetes = match lookup {
                Lookup::Kubernetes(name) => Some(name),
                Lookup::Absent => None,
                Lookup::Foreign => {
                    self.dirty.remove(node);
                    continue;
                }
                Lookup::Unknown => {
                    self.dirty.insert(Arc::clone(node));
                    continue;
                }
            };
            if self.scan_node(node, kubernetes.as_ref(), view, grace, now) {
                // Stays to be looked at until its blocks are gone.
                self.dirty.insert(Arc::clone(node));
                gone.push(Arc::clone(node));
            } else {
                self.dirty.remove(node);
            }
        }
        gone
    }

    /// Whether the node is gone and has nothing in use.
    fn scan_node(
        &mut self,
        node: &str,
        kubernetes: Option<&Arc<str>>,
        view: &impl View,
        grace: Grace,
        now: Timestamp,
    ) -> bool {
        let exists = kubernetes.is_some_and(|name| view.node(name).is_some());
        let mut is_free = true;
        let mut tunnels = Vec::new();
        for place in self.places_on(node) {
            let Some(allocation) = self.allocation_mut(place) else {
                continue;
            };
            let class = allocation.class();
            match &class {
                Class::Windows => continue,
                Class::Other => {
                    is_free = false;
                    continue;
                }
                Class::Tunnel => {
                    tunnels.push(place);
                    continue;
                }
                Class::Pod(_) | Class::Machine(_) => {}
            }
            if is_used(&class, place.1, kubernetes.map(|name| &**name), view) {
                is_free = false;
                self.acquit(place);
                continue;
            }
            if exists {
                let grace = grace.of(&class);
                allocation.suspicion = allocation.suspicion.grown(grace, now);
            } else {
                allocation.suspicion = Suspicion::Confirmed;
            }
            if allocation.suspicion == Suspicion::Confirmed {
                self.confirmed.insert(place, kubernetes.cloned());
            }
        }
        // A node that is gone from the cluster only may still be running, and come back to its tunnels.
        let keeps_tunnels = kubernetes.is_some() && !tunnels.is_empty();
        if exists || !is_free || keeps_tunnels {
            return false;
        }
        for place in tunnels {
            if let Some(allocation) = self.allocation_mut(place) {
                allocation.suspicion = Suspicion::Confirmed;
                self.confirmed.insert(place, kubernetes.cloned());
            }
        }
        true
    }

    /// What has to be asked of the cluster itself before leaks are released: the pods that could still have them.
    pub(super) fn pods_to_confirm(&self) -> BTreeMap<Tenant, Vec<Place>> {
        let mut pods: BTreeMap<Tenant, Vec<Place>> = BTreeMap::new();
        for place in self.confirmed.keys() {
            let class = self.allocation(*place).map(Allocation::class);
            if let Some(Class::Pod(tenant)) = class {
                pods.entry(tenant).or_default().push(*place);
            }
        }
        pods
    }

    /// Takes in what the cluster itself says of a pod.
    pub(super) fn confirm(&mut self, places: &[Place], pod: Option<&Pod>) {
        for place in places {
            let node = self.confirmed.get(place).cloned().flatten();
            if pod.is_some_and(|pod| pod::uses(pod, place.1, node.as_deref())) {
                tracing::info!(address = %place.1, "An address that looked leaked is in use");
                self.acquit(*place);
            }
        }
    }

    /// The leaks that can be released: those of which the handle has nothing else. Pods were confirmed before; those in
    /// doubt could not be, and keep their addresses for now.
    pub(super) fn releasable(&mut self, view: &impl View, doubtful: &HashSet<Place>) -> Vec<Place> {
        let leaks: Vec<(Place, Option<Arc<str>>)> = self
            .confirmed
            .iter()
            .map(|(place, node)| (*place, node.clone()))
            .collect();
        for (place, node) in leaks {
            let Some(allocation) = self.allocation(place) else {
                self.confirmed.remove(&place);
                continue;
            };
            let class = allocation.class();
            let is_pod = matches!(class, Class::Pod(_));
            if !is_pod && is_used(&class, place.1, node.as_deref(), view) {
                self.acquit(place);
            }
        }
        self.wholly_leaked(doubtful)
    }

    /// The blocks that their nodes have long had no use for. Every node keeps at least one.
    pub(super) fn unused_blocks(
        &mut self,
        view: &impl View,
        grace: Grace,
        now: Timestamp,
    ) -> Vec<(IpNet, Arc<str>)> {
        let Some(grace) = grace.of_blocks() else {
            return Vec::new();
        };
        let mut unused = Vec::new();
        let mut taken: HashMap<Arc<str>, usize> = HashMap::new();
        let empty = self.blocks.iter().filter(|(_, block)| block.is_empty);
        let empty: Vec<(IpNet, Arc<str>)> = empty
            .filter_map(|(net, block)| Some((*net, Arc::clone(block.node.as_ref()?))))
            .collect();
        for (net, node) in empty {
            let taken = taken.entry(Arc::clone(&node)).or_default();
            if self.count_blocks_of(&node) <= *taken + 1 {
                continue;
            }
            let must_stay = match self.nodes.get(&node) {
                Some(None) => true,
                Some(Some(name)) => view.node(name).is_some_and(|node| node.is_migrating()),
                None => false,
            };
            let Some(block) = self.blocks.get_mut(&net) else {
                continue;
            };
            if must_stay {
                block.unused_since = None;
                continue;
            }
            let since = *block.unused_since.get_or_insert(now);
            if now.duration_since(since) > grace {
                *taken += 1;
                unused.push((net, node));
            }
        }
        unused
    }

    /// The blocks with addresses that have cooled down.
    pub(super) fn cold_blocks(&self, cooldown_seconds: i32, now: Timestamp) -> Vec<IpNet> {
        let cooldown = SignedDuration::from_secs(i64::from(cooldown_seconds.max(0)));
        let blocks = self.blocks.iter();
        let cold = blocks.filter(|(_, block)| {
            let since = block.cooling_since;
            since.is_some_and(|since| now.duration_since(since) >= cooldown)
        });
        cold.map(|(net, _)| *net).collect()
    }

    /// Whether any address belongs to a virtual machine, so that these must be looked up.
    pub(super) fn has_machines(&self) -> bool {
        let blocks = self.blocks.values();
        let mut allocations = blocks.flat_map(|block| block.allocations.iter());
        allocations.any(|(_, allocation)| allocation.is_of_machine())
    }
}

impl Suspicion {
    /// After looking unused once more.
    fn grown(self, grace: Option<SignedDuration>, now: Timestamp) -> Self {
        let (Some(grace), since) = (grace, self) else {
            return self;
        };
        let since = match since {
            Self::Confirmed => return self,
            Self::Since(since) => since,
            Self::None => now,
        };
        if grace > SignedDuration::ZERO && now.duration_since(since) > grace {
            Self::Confirmed
        } else {
            Self::Since(since)
        }
    }
}

/// Whether somebody uses an address, as far as can be told: without certainty somebody does.
fn is_used(class: &Class, address: IpAddr, node: Option<&str>, view: &impl View) -> bool {
    match class {
        Class::Pod(pod) => view
            .pod(&pod.namespace, &pod.name)
            .is_some_and(|pod| pod.uses(address, node)),
        Class::Machine(machine) => view.has_machine(machine).unwrap_or(true),
        Class::Tunnel => node.is_some(),
        Class::Windows | Class::Other => true,
    }
}
