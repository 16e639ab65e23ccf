//! Endpoints of this node: which of them an interface has, and their policies in groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tortie_engine::message::{
    HostEndpoint, HostEndpointId, PolicyId, TierInfo, WorkloadEndpoint, WorkloadEndpointId,
};
use tortie_rules::{ANY_INTERFACE, Direction, PolicyGroup, TierGroups};

use super::Interfaces;

/// The workloads of this node.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    by_id: BTreeMap<WorkloadEndpointId, Box<WorkloadEndpoint>>,
    by_interface: BTreeMap<Arc<str>, BTreeSet<WorkloadEndpointId>>,
    /// Interfaces whose endpoint is new, changed or gone.
    changed: BTreeSet<Arc<str>>,
}

/// What each kind of host policy applies to: interfaces, and the endpoint of each.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct HostsByInterface {
    pub(super) by_interface: BTreeMap<Arc<str>, HostEndpointId>,
}

/// What policies are called and which endpoints they select, as far as groups need it.
pub(super) type Selectors<'a> = &'a dyn Fn(&PolicyId) -> Arc<str>;

// === impl Workloads ===

impl Workloads {
    pub(super) fn update(&mut self, id: WorkloadEndpointId, endpoint: Box<WorkloadEndpoint>) {
        let interface: Arc<str> = endpoint.name.as_str().into();
        if let Some(before) = self.by_id.insert(id.clone(), endpoint)
            && *before.name != *interface
        {
            self.leave(&before.name, &id);
        }
        self.changed.insert(Arc::clone(&interface));
        self.by_interface.entry(interface).or_default().insert(id);
    }

    pub(super) fn remove(&mut self, id: &WorkloadEndpointId) {
        if let Some(before) = self.by_id.remove(id) {
            self.leave(&before.name, id);
        }
    }

    fn leave(&mut self, interface: &str, id: &WorkloadEndpointId) {
        self.changed.insert(interface.into());
        if let Some(ids) = self.by_interface.get_mut(interface) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_interface.remove(interface);
            }
        }
    }

    /// Which of the endpoints of an interface counts: the one with the lowest identity.
    pub(super) fn id_of_interface(&self, interface: &str) -> Option<&WorkloadEndpointId> {
        self.by_interface.get(interface)?.first()
    }

    /// The endpoint of an interface. Of several, the one with the lowest identity counts.
    pub(super) fn of_interface(&self, interface: &str) -> Option<&WorkloadEndpoint> {
        let id = self.id_of_interface(interface)?;
        self.by_id.get(id).map(|endpoint| &**endpoint)
    }

    /// All interfaces that have an endpoint.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_interface.keys()
    }

    /// The endpoints that count, with their interfaces.
    pub(super) fn active(&self) -> impl Iterator<Item = (&Arc<str>, &WorkloadEndpoint)> {
        let interfaces = self.by_interface.iter();
        interfaces.filter_map(|(interface, ids)| {
            let endpoint = self.by_id.get(ids.first()?)?;
            Some((interface, &**endpoint))
        })
    }

    /// All endpoints, with their identities.
    pub(super) fn all(&self) -> impl Iterator<Item = (&WorkloadEndpointId, &WorkloadEndpoint)> {
        self.by_id.iter().map(|(id, endpoint)| (id, &**endpoint))
    }

    pub(super) fn take_changed(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn mark_all_changed(&mut self) {
        let interfaces = self.by_interface.keys().cloned();
        self.changed.extend(interfaces);
    }

    /// Endpoints with one of these policies must be rendered anew.
    pub(super) fn mark_those_with(&mut self, policies: &HashSet<Arc<PolicyId>>) {
        let concerned = self.by_interface.iter().filter(|(_, ids)| {
            let endpoint = ids.first().and_then(|id| self.by_id.get(id));
            endpoint.is_some_and(|endpoint| has_any(&endpoint.tiers, policies))
        });
        let interfaces: Vec<Arc<str>> = concerned
            .map(|(interface, _)| Arc::clone(interface))
            .collect();
        self.changed.extend(interfaces);
    }
}

fn has_any(tiers: &[TierInfo], policies: &HashSet<Arc<PolicyId>>) -> bool {
    tiers.iter().any(|tier| {
        let mut ids = tier.ingress_policies.iter().chain(&tier.egress_policies);
        ids.any(|id| policies.contains(id))
    })
}

// === impl HostsByInterface ===

impl HostsByInterface {
    /// Finds the interface of each endpoint. Of several for one interface, the one with the lowest name counts.
    pub(super) fn resolve(
        hosts: &BTreeMap<HostEndpointId, Box<HostEndpoint>>,
        interfaces: &Interfaces,
    ) -> Self {
        let mut by_interface: BTreeMap<Arc<str>, HostEndpointId> = BTreeMap::new();
        for (id, host) in hosts {
            let names: Vec<Arc<str>> = match host.name.as_str() {
                "*" => vec![ANY_INTERFACE.into()],
                "" => {
                    let v4 = host.expected_ipv4_addrs.iter();
                    let expected: HashSet<_> = v4.chain(&host.expected_ipv6_addrs).collect();
                    let of_host = interfaces.of_host();
                    of_host
                        .filter(|(_, state)| state.addresses.iter().any(|a| expected.contains(a)))
                        .map(|(name, _)| Arc::clone(name))
                        .collect()
                }
                name => vec![name.into()],
            };
            for name in names {
                by_interface.entry(name).or_insert_with(|| id.clone());
            }
        }
        Self { by_interface }
    }
}

/// Puts the policies of tiers into groups.
pub(super) fn groups(tiers: &[TierInfo], selectors: Selectors<'_>) -> Vec<TierGroups> {
    let of_tier = tiers.iter().map(|tier| {
        let divide = |direction, policies: &[Arc<PolicyId>]| {
            let selectors: Vec<Arc<str>> = policies.iter().map(|id| selectors(id)).collect();
            let with_selectors = policies.iter().zip(&selectors);
            let with_selectors = with_selectors.map(|(id, selector)| (&**id, &**selector));
            let groups = PolicyGroup::divide(direction, with_selectors);
            groups.into_iter().map(Arc::new).collect()
        };
        TierGroups {
            name: Arc::clone(&tier.name),
            // A tier that is not known drops.
            default_action: tier.default_action.unwrap_or_default(),
            ingress: divide(Direction::Ingress, &tier.ingress_policies),
            egress: divide(Direction::Egress, &tier.egress_policies),
        }
    });
    of_tier.collect()
}

/// Counts who uses the chain of a group.
#[derive(Debug, Default)]
pub(super) struct GroupUse {
    uses: HashMap<(tortie_rules::Table, Arc<str>), usize>,
}

impl GroupUse {
    /// One more; tells whether it is the first.
    pub(super) fn add(&mut self, table: tortie_rules::Table, chain: &Arc<str>) -> bool {
        let uses = self.uses.entry((table, Arc::clone(chain))).or_default();
        *uses += 1;
        *uses == 1
    }

    /// One less; tells whether it was the last.
    pub(super) fn remove(&mut self, table: tortie_rules::Table, chain: &Arc<str>) -> bool {
        let key = (table, Arc::clone(chain));
        let Some(uses) = self.uses.get_mut(&key) else {
            return false;
        };
        *uses -= 1;
        if *uses > 0 {
            return false;
        }
        self.uses.remove(&key);
        true
    }
}
