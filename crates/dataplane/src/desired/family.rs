//! What the kernel is told about one IP version.

mod bound;
mod hosts;
mod missing;
mod owners;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashMap;
use ipnet::IpNet;
use tortie_engine::message::{PolicyId, SetId};
use tortie_rules::rule::Action;
use tortie_rules::{
    Chain, Config, Dataplane, EndpointMarks, Hook, IpVersion, Renderer, Table, TierGroups, Workload,
};

use crate::change::{Batch, MapChange, Owner};

use super::chains::Chains;
use super::endpoints::{GroupUse, Selectors, groups};
use super::network::ProgrammedSets;
use super::{Changed, DesiredState, needed_sets};

/// What the kernel is told about one IP version.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) renderer: Renderer,
    dataplane: Dataplane,
    chains: Chains,
    groups: GroupUse,
    /// The chains of groups that each endpoint's chains refer to.
    groups_of: HashMap<Arc<str>, Vec<(Table, Arc<str>)>>,
    /// The chains of each endpoint.
    chains_of: HashMap<Arc<str>, Vec<(Table, Arc<str>)>>,
    /// Chains of policies and profiles that were rendered, by their names.
    policy_chains: HashMap<Arc<PolicyId>, Vec<(Table, Arc<str>)>>,
    profile_chains: HashMap<Arc<str>, Vec<(Table, Arc<str>)>>,
    /// The chains that dispatch is made of now.
    dispatch: BTreeSet<(Table, Arc<str>)>,
    host_dispatch: BTreeSet<(Table, Arc<str>)>,
    /// Interfaces in the maps of nftables.
    mapped: BTreeSet<Arc<str>>,
    hosts: BTreeSet<Arc<str>>,
    fixed_sets: ProgrammedSets,
    marks: EndpointMarks,
    /// Chains of policies and profiles that would have too many rules, with whose they are and how many.
    too_large: BTreeMap<(Table, Arc<str>), (Owner, usize)>,
}

impl Family {
    pub(super) fn new(renderer: Renderer, dataplane: Dataplane) -> Self {
        let marks = EndpointMarks::new(&renderer.config().marks);
        Self {
            renderer,
            dataplane,
            chains: Chains::default(),
            groups: GroupUse::default(),
            groups_of: HashMap::new(),
            chains_of: HashMap::new(),
            policy_chains: HashMap::new(),
            profile_chains: HashMap::new(),
            dispatch: BTreeSet::new(),
            host_dispatch: BTreeSet::new(),
            mapped: BTreeSet::new(),
            hosts: BTreeSet::new(),
            fixed_sets: ProgrammedSets::default(),
            marks,
            too_large: BTreeMap::new(),
        }
    }

    pub(super) fn ip_version(&self) -> IpVersion {
        self.renderer.ip_version()
    }

    pub(super) fn dataplane(&self) -> Dataplane {
        self.dataplane
    }

    pub(super) fn set_config(&mut self, config: &Arc<Config>) {
        self.renderer.set_config(Arc::clone(config));
    }

    /// Nothing has been told yet.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.renderer.clone(), self.dataplane);
    }

    /// What changes, given what changed in the desired state.
    pub(super) fn batch(&mut self, desired: &DesiredState, changed: &Changed) -> Batch {
        let version = self.ip_version();
        let mut batch = Batch {
            is_full: changed.everything,
            ..Batch::default()
        };
        batch.sets = if changed.everything {
            desired.sets.everything(version, self.dataplane)
        } else {
            desired.sets.changes(version, self.dataplane)
        };
        if changed.network || changed.everything {
            let marked = desired.marked_endpoints();
            let which = needed_sets(self.renderer.config());
            let wanted = desired
                .network
                .fixed_sets(version, &desired.interfaces, &marked, which);
            let sets = self.fixed_sets.changes(wanted, version, self.dataplane);
            batch.sets.extend(sets);
            self.network_chains(desired, &marked);
        }
        if changed.everything {
            batch.hooks = self.renderer.hooks();
            for chain in self.renderer.fixed_chains() {
                self.chains.put(chain);
            }
        }
        for id in &changed.policies {
            self.policy(desired, id);
        }
        for name in &changed.profiles {
            self.profile(desired, name);
        }
        for interface in &changed.workloads {
            self.workload(desired, interface);
        }
        if !changed.workloads.is_empty() || changed.everything {
            self.workload_dispatch(desired, changed.everything, &mut batch);
        }
        if changed.hosts || changed.everything {
            self.host_endpoints(desired);
        }
        if changed.everything {
            self.chains.make_roots(&targets(&batch.hooks));
        }
        // What goes, in the reverse order.
        for id in &changed.removed_policies {
            if let Some(chains) = self.policy_chains.remove(id) {
                self.remove_chains(chains);
            }
        }
        for name in &changed.removed_profiles {
            if let Some(chains) = self.profile_chains.remove(name) {
                self.remove_chains(chains);
            }
        }
        self.put_missing(desired);
        (batch.chains, batch.removed_chains) = self.chains.take_changes();
        batch
    }

    fn remove_chains(&mut self, chains: impl IntoIterator<Item = (Table, Arc<str>)>) {
        for (table, name) in chains {
            self.chains.remove(table, &name);
            self.too_large.remove(&(table, name));
        }
    }

    fn policy(&mut self, desired: &DesiredState, id: &Arc<PolicyId>) {
        let Some(policy) = desired.policies.get(id) else {
            return;
        };
        let version = self.ip_version();
        let layouts = &|set: &SetId| desired.sets.layout(set, version);
        let mut chains = Vec::new();
        for table in desired.tables_of(policy) {
            chains.extend(self.renderer.policy_chains(*table, id, policy, layouts));
        }
        let names: Vec<_> = chains.iter().map(key).collect();
        for chain in chains {
            let chain = self.bounded(chain, || Owner::policy(id));
            self.chains.put(chain);
        }
        if let Some(before) = self.policy_chains.insert(Arc::clone(id), names.clone()) {
            let gone = before.into_iter().filter(|key| !names.contains(key));
            self.remove_chains(gone.collect::<Vec<_>>());
        }
    }

    fn profile(&mut self, desired: &DesiredState, name: &Arc<str>) {
        let Some(profile) = desired.profiles.get(name) else {
            return;
        };
        let version = self.ip_version();
        let layouts = &|set: &SetId| desired.sets.layout(set, version);
        let mut names = Vec::new();
        for table in desired.profile_tables() {
            for chain in self.renderer.profile_chains(*table, name, profile, layouts) {
                names.push(key(&chain));
                let chain = self.bounded(chain, || Owner::profile(name));
                self.chains.put(chain);
            }
        }
        let before = self.profile_chains.insert(Arc::clone(name), names.clone());
        let gone = before
            .into_iter()
            .flatten()
            .filter(|key| !names.contains(key));
        self.remove_chains(gone.collect::<Vec<_>>());
    }

    fn workload(&mut self, desired: &DesiredState, interface: &Arc<str>) {
        let Some(endpoint) = desired.workloads.of_interface(interface) else {
            self.endpoint_chains(interface, Vec::new(), Vec::new());
            self.marks.release(interface);
            return;
        };
        let selectors: Selectors<'_> = &|id| desired.selector_of(id);
        let tiers = groups(&endpoint.tiers, selectors);
        let mut chains = self.renderer.workload_chains(Workload {
            interface,
            admin_up: endpoint.state == "active",
            tiers: &tiers,
            profiles: &endpoint.profile_ids,
            qos: endpoint.qos_controls.as_ref(),
        });
        if self.renderer.config().ipvs {
            let marked = self
                .renderer
                .endpoint_mark_chain(interface, &mut self.marks);
            chains.push(marked);
        }
        let groups = self.group_chains(Table::Filter, &tiers);
        self.endpoint_chains(interface, chains, groups);
    }

    fn group_chains(&self, table: Table, tiers: &[TierGroups]) -> Vec<Chain> {
        let groups = tiers.iter();
        let groups = groups.flat_map(|tier| tier.ingress.iter().chain(&tier.egress));
        let groups = groups.filter(|group| !group.should_be_inlined());
        groups
            .map(|group| self.renderer.group_chain(table, group))
            .collect()
    }

    /// Puts the chains of an endpoint, and removes those that it does not have any more.
    fn endpoint_chains(&mut self, owner: &Arc<str>, chains: Vec<Chain>, groups: Vec<Chain>) {
        let mut new_groups = Vec::with_capacity(groups.len());
        for group in groups {
            let (table, name) = key(&group);
            if self.groups.add(table, &name) {
                self.chains.put(group);
            }
            new_groups.push((table, name));
        }
        let mut names = Vec::with_capacity(chains.len());
        for chain in chains {
            names.push(key(&chain));
            // With nftables it is a map that leads to them.
            match self.dataplane {
                Dataplane::Nftables => self.chains.put_root(chain),
                Dataplane::Iptables => self.chains.put(chain),
            }
        }
        let before = if names.is_empty() {
            self.chains_of.remove(owner)
        } else {
            self.chains_of.insert(Arc::clone(owner), names.clone())
        };
        let gone = before
            .into_iter()
            .flatten()
            .filter(|key| !names.contains(key));
        self.remove_chains(gone.collect::<Vec<_>>());
        let before = if new_groups.is_empty() {
            self.groups_of.remove(owner)
        } else {
            self.groups_of.insert(Arc::clone(owner), new_groups)
        };
        for (table, name) in before.into_iter().flatten() {
            if self.groups.remove(table, &name) {
                self.chains.remove(table, &name);
            }
        }
    }

    fn workload_dispatch(&mut self, desired: &DesiredState, everything: bool, batch: &mut Batch) {
        let now: BTreeSet<Arc<str>> = desired.workloads.interfaces().cloned().collect();
        if now == self.mapped && !everything {
            return;
        }
        let names: Vec<&str> = now.iter().map(|name| &**name).collect();
        let chains = self.renderer.workload_dispatch_chains(&names);
        let keys: BTreeSet<_> = chains.iter().map(key).collect();
        let is_map = self.dataplane == Dataplane::Nftables;
        for chain in chains {
            // The chains around maps never change.
            if !is_map || everything {
                self.chains.put(chain);
            }
        }
        let gone: Vec<_> = self.dispatch.difference(&keys).cloned().collect();
        self.remove_chains(gone);
        self.dispatch = keys;
        if is_map {
            let before = std::mem::take(&mut self.mapped);
            let added: Vec<&str> = now.difference(&before).map(|name| &**name).collect();
            let removed: Vec<&str> = before.difference(&now).map(|name| &**name).collect();
            let added = self.renderer.workload_dispatch_maps(&added);
            let removed = self.renderer.workload_dispatch_maps(&removed);
            for (added, removed) in added.into_iter().zip(removed) {
                let elements = |elements: Vec<(String, Arc<str>)>| {
                    let elements = elements.into_iter();
                    elements.map(|(name, chain)| (name.into(), chain)).collect()
                };
                batch.maps.push(MapChange {
                    table: added.table,
                    name: added.name,
                    added: elements(added.elements),
                    removed: elements(removed.elements),
                });
            }
        }
        self.mapped = now;
        self.mark_dispatch(desired);
    }

    fn mark_dispatch(&mut self, desired: &DesiredState) {
        if !self.renderer.config().ipvs {
            return;
        }
        let workloads: Vec<&str> = desired.workloads.interfaces().map(|name| &**name).collect();
        let hosts: Vec<&str> = self.hosts.iter().map(|name| &**name).collect();
        let chains =
            self.renderer
                .endpoint_mark_dispatch_chains(&workloads, &hosts, &mut self.marks);
        for chain in chains {
            self.chains.put(chain);
        }
    }

    fn network_chains(&mut self, desired: &DesiredState, marked: &BTreeMap<IpAddr, u8>) {
        let version = self.ip_version();
        let renderer = &self.renderer;
        let nat = renderer.nat_outgoing_chain(desired.network.masquerades(version));
        let (dnat, snat) = if renderer.config().floating_addresses {
            desired.floating_addresses(version)
        } else {
            Default::default()
        };
        let floating = [
            renderer.floating_dnat_chain(&dnat),
            renderer.floating_snat_chain(&snat),
        ];
        let blocked = renderer.blocked_cidrs_chain(&desired.network.service_cidrs());
        let spoofing: Vec<(&str, IpNet)> = desired
            .workloads
            .active()
            .flat_map(|(interface, endpoint)| {
                let prefixes = endpoint.allow_spoofed_source_prefixes.iter();
                prefixes.map(|prefix| (&**interface, *prefix))
            })
            .collect();
        let spoofing = renderer.spoofing_chain(spoofing);
        let of_version = marked
            .iter()
            .filter(|(address, _)| address.is_ipv4() == (version == IpVersion::V4));
        let dscp = renderer.dscp_chain(of_version.map(|(address, value)| (*address, *value)));
        for chain in floating.into_iter().chain([nat, blocked, spoofing, dscp]) {
            self.chains.put_if_different(chain);
        }
    }
}

/// The chains that hooks lead to.
fn targets(hooks: &[Hook]) -> Vec<(Table, Arc<str>)> {
    let mut targets = Vec::new();
    for hook in hooks {
        let actions = hook
            .first
            .iter()
            .chain(&hook.last)
            .flat_map(|rule| &rule.actions);
        targets.extend(actions.filter_map(|action| match action {
            Action::Jump(target) => Some((hook.table, Arc::clone(target))),
            _ => None,
        }));
    }
    targets
}

fn key(chain: &Chain) -> (Table, Arc<str>) {
    (chain.table, Arc::clone(&chain.name))
}
