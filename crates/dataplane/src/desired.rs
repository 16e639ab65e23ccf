//! All that the engine said, and what of it the kernel has been told.

mod chains;
mod cost;
mod endpoints;
mod family;
mod network;
mod owners;
mod sets;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tortie_engine::Message;
use tortie_engine::message::{
    HostEndpoint, HostEndpointId, NatInfo, Policy, PolicyId, Profile, Rule, SetId,
    WorkloadEndpoint, WorkloadEndpointId,
};
use tortie_rules::{Config, Dataplane, IpVersion, Renderer, Table};

use crate::change::{Batch, Refused};

pub use cost::PolicyCost;
use endpoints::{HostsByInterface, Workloads};
use family::Family;
pub(crate) use network::is_of;
use network::{FixedSets, Network};
pub use network::{InterfaceState, Interfaces};
use sets::Sets;

/// All that the engine said, and what of it the kernel has been told.
#[derive(Debug)]
pub struct DesiredState {
    policies: HashMap<Arc<PolicyId>, Arc<Policy>>,
    profiles: HashMap<Arc<str>, Arc<Profile>>,
    workloads: Workloads,
    hosts: BTreeMap<HostEndpointId, Box<HostEndpoint>>,
    hosts_by_interface: HostsByInterface,
    sets: Sets,
    network: Network,
    interfaces: Interfaces,
    changed: Changed,
    families: Vec<Family>,
}

/// What changed since the kernel was last told.
#[derive(Debug, Default)]
struct Changed {
    everything: bool,
    policies: BTreeSet<Arc<PolicyId>>,
    removed_policies: BTreeSet<Arc<PolicyId>>,
    /// Policies that select other endpoints now, which is part of the name of their groups.
    reselected: HashSet<Arc<PolicyId>>,
    profiles: BTreeSet<Arc<str>>,
    removed_profiles: BTreeSet<Arc<str>>,
    /// Interfaces.
    workloads: BTreeSet<Arc<str>>,
    hosts: bool,
    /// Pools, nodes, services, addresses of the host, and what endpoints have besides policies.
    network: bool,
}

impl Changed {
    fn is_empty(&self) -> bool {
        !self.everything
            && self.policies.is_empty()
            && self.removed_policies.is_empty()
            && self.profiles.is_empty()
            && self.removed_profiles.is_empty()
            && self.workloads.is_empty()
            && !self.hosts
            && !self.network
    }
}

impl DesiredState {
    /// A state in which nothing is wanted yet, rendered for the given IP versions.
    pub fn new(
        config: &Arc<Config>,
        dataplane: Dataplane,
        versions: &[IpVersion],
        hostname: &str,
    ) -> Self {
        let families = versions.iter().map(|version| {
            let renderer = Renderer::new(Arc::clone(config), dataplane, *version);
            Family::new(renderer, dataplane)
        });
        Self {
            policies: HashMap::new(),
            profiles: HashMap::new(),
            workloads: Workloads::default(),
            hosts: BTreeMap::new(),
            hosts_by_interface: HostsByInterface::default(),
            sets: Sets::default(),
            network: Network {
                hostname: hostname.to_owned(),
                ..Network::default()
            },
            interfaces: Interfaces {
                workload_prefixes: config.workload_prefixes.clone(),
                ..Interfaces::default()
            },
            changed: Changed::default(),
            families: families.collect(),
        }
    }

    /// The engine says something.
    pub fn on_message(&mut self, message: Message) {
        match message {
            Message::IpSetUpdate(update) => self.sets.update(update),
            Message::IpSetDeltaUpdate(delta) => self.sets.delta(delta),
            Message::IpSetRemove(id) => self.sets.remove(&id),
            Message::ActivePolicyUpdate(id, policy) => self.update_policy(id, policy),
            Message::ActivePolicyRemove(id) => {
                self.policies.remove(&id);
                self.changed.policies.remove(&id);
                self.changed.removed_policies.insert(id);
            }
            Message::ActiveProfileUpdate(name, profile) => {
                self.changed.removed_profiles.remove(&name);
                self.changed.profiles.insert(Arc::clone(&name));
                self.profiles.insert(name, profile);
            }
            Message::ActiveProfileRemove(name) => {
                self.profiles.remove(&name);
                self.changed.profiles.remove(&name);
                self.changed.removed_profiles.insert(name);
            }
            Message::WorkloadEndpointUpdate(id, endpoint) => {
                self.changed.network |= has_extras(&endpoint);
                self.workloads.update(id, endpoint);
            }
            Message::WorkloadEndpointRemove(id) => {
                self.changed.network = true;
                self.workloads.remove(&id);
            }
            Message::HostEndpointUpdate(id, endpoint) => {
                self.changed.network |= !endpoint.qos_policies.is_empty();
                self.changed.hosts = true;
                self.hosts.insert(id, endpoint);
            }
            Message::HostEndpointRemove(id) => {
                self.changed.network = true;
                self.changed.hosts = true;
                self.hosts.remove(&id);
            }
            other => self.on_network_message(other),
        }
    }

    fn on_network_message(&mut self, message: Message) {
        let network = &mut self.network;
        match message {
            Message::VtepUpdate(vtep) => {
                network.vteps.insert(vtep.node.clone(), vtep);
            }
            Message::VtepRemove(node) => {
                network.vteps.remove(&node);
            }
            Message::HostMetadataUpdate(host) => {
                network.hosts.insert(host.hostname.clone(), host);
            }
            Message::HostMetadataRemove(hostname) => {
                network.hosts.remove(&hostname);
            }
            Message::IpamPoolUpdate(id, pool) => {
                network.pools.insert(id, pool);
            }
            Message::IpamPoolRemove(id) => {
                network.pools.remove(&id);
            }
            Message::GlobalBgpConfigUpdate(bgp) => network.bgp = bgp,
            // What concerns routes, tunnels, names or the process itself.
            _ => return,
        }
        self.changed.network = true;
    }

    /// The interfaces of the host are these now.
    pub fn set_interfaces(&mut self, all: BTreeMap<Arc<str>, InterfaceState>) {
        if self.interfaces.all == all {
            return;
        }
        self.interfaces.all = all;
        self.changed.network = true;
        if !self.hosts.is_empty() {
            self.changed.hosts = true;
        }
    }

    /// Renders with other parameters from now on. The kernel must be told everything.
    pub fn set_config(&mut self, config: &Arc<Config>) {
        self.interfaces
            .workload_prefixes
            .clone_from(&config.workload_prefixes);
        for family in &mut self.families {
            family.set_config(config);
        }
    }

    /// The kernel takes an authentication header of IPv6 for the protocol, as nftables always does.
    pub fn hide_behind_header(&mut self) {
        for family in &mut self.families {
            family.renderer.hide_behind_header();
        }
    }

    /// The workloads of this node.
    pub fn workloads(&self) -> impl Iterator<Item = (&WorkloadEndpointId, &WorkloadEndpoint)> {
        self.workloads.all()
    }

    /// What changed since the last time, for each IP version.
    pub fn take_changes(&mut self) -> Vec<(IpVersion, Batch)> {
        let reshaped = self.sets.reshaped();
        if !reshaped.is_empty() {
            self.mark_those_with_sets(&reshaped);
        }
        let batches = self.batches();
        self.sets.told();
        batches
    }

    /// All that the kernel should have, for each IP version.
    pub fn take_everything(&mut self) -> Vec<(IpVersion, Batch)> {
        for family in &mut self.families {
            family.reset();
        }
        self.changed = Changed {
            everything: true,
            policies: self.policies.keys().cloned().collect(),
            profiles: self.profiles.keys().cloned().collect(),
            ..Changed::default()
        };
        self.workloads.mark_all_changed();
        let batches = self.batches();
        self.sets.all_told();
        batches
    }

    fn batches(&mut self) -> Vec<(IpVersion, Batch)> {
        let mut changed = std::mem::take(&mut self.changed);
        if !changed.reselected.is_empty() {
            self.workloads.mark_those_with(&changed.reselected);
            changed.hosts |= !self.hosts.is_empty();
        }
        changed.workloads = self.workloads.take_changed();
        if changed.hosts || changed.everything {
            let were_hosts = !self.hosts_by_interface.by_interface.is_empty();
            self.hosts_by_interface = HostsByInterface::resolve(&self.hosts, &self.interfaces);
            let are_hosts = !self.hosts_by_interface.by_interface.is_empty();
            if were_hosts != are_hosts {
                // The chains of host endpoints in the mangle table need them there too.
                changed.policies.extend(self.policies.keys().cloned());
                changed.profiles.extend(self.profiles.keys().cloned());
            }
        }
        let mut families = std::mem::take(&mut self.families);
        let batches = families.iter_mut().map(|family| {
            let version = family.ip_version();
            let batch = if changed.is_empty() {
                Batch {
                    sets: self.sets.changes(version, family.dataplane()),
                    ..Batch::default()
                }
            } else {
                family.batch(self, &changed)
            };
            (version, batch)
        });
        let batches = batches.collect();
        self.families = families;
        batches
    }

    fn update_policy(&mut self, id: Arc<PolicyId>, policy: Arc<Policy>) {
        self.changed.removed_policies.remove(&id);
        let before = self.policies.get(&id);
        if before.is_none_or(|before| before.original_selector != policy.original_selector) {
            self.changed.reselected.insert(Arc::clone(&id));
        }
        self.changed.policies.insert(Arc::clone(&id));
        self.policies.insert(id, policy);
    }

    fn mark_those_with_sets(&mut self, sets: &HashSet<SetId>) {
        let uses = |rules: &[Rule]| {
            rules.iter().any(|rule| {
                let sides = [&rule.src, &rule.dst];
                let mut used = sides
                    .into_iter()
                    .flat_map(|side| side.sets.iter().chain(&side.not_sets));
                used.any(|set| sets.contains(set))
            })
        };
        for (id, policy) in &self.policies {
            if uses(&policy.inbound_rules) || uses(&policy.outbound_rules) {
                self.changed.policies.insert(Arc::clone(id));
            }
        }
        for (name, profile) in &self.profiles {
            if uses(&profile.inbound_rules) || uses(&profile.outbound_rules) {
                self.changed.profiles.insert(Arc::clone(name));
            }
        }
    }

    /// The endpoints that a policy selects, in its own words.
    fn selector_of(&self, id: &PolicyId) -> Arc<str> {
        let policy = self.policies.get(id);
        policy.map_or_else(
            || "".into(),
            |policy| policy.original_selector.as_str().into(),
        )
    }

    /// The tables that a policy's chains may be needed in.
    fn tables_of(&self, policy: &Policy) -> &'static [Table] {
        if policy.untracked {
            &[Table::Raw]
        } else if policy.pre_dnat {
            &[Table::Mangle]
        } else {
            self.profile_tables()
        }
    }

    /// The tables that a profile's chains may be needed in.
    fn profile_tables(&self) -> &'static [Table] {
        if self.hosts.is_empty() {
            &[Table::Filter]
        } else {
            &[Table::Filter, Table::Mangle]
        }
    }

    /// Endpoints whose packets get a class of service.
    fn marked_endpoints(&self) -> BTreeMap<IpAddr, u8> {
        let mut marked = BTreeMap::new();
        for (_, endpoint) in self.workloads.active() {
            let nets = endpoint.ipv4_nets.iter().chain(&endpoint.ipv6_nets);
            for policy in &endpoint.qos_policies {
                marked.extend(nets.clone().map(|net| (net.addr(), policy.dscp)));
            }
        }
        for host in self.hosts.values() {
            let addresses = host
                .expected_ipv4_addrs
                .iter()
                .chain(&host.expected_ipv6_addrs);
            for policy in &host.qos_policies {
                marked.extend(addresses.clone().map(|address| (*address, policy.dscp)));
            }
        }
        marked
    }

    /// Floating addresses to those of endpoints, and the reverse.
    fn floating_addresses(
        &self,
        version: IpVersion,
    ) -> (BTreeMap<IpAddr, IpAddr>, BTreeMap<IpAddr, IpAddr>) {
        let (mut dnat, mut snat) = (BTreeMap::new(), BTreeMap::new());
        // Of several, the lowest address counts.
        let keep_lowest = |map: &mut BTreeMap<IpAddr, IpAddr>, from, to| {
            let kept = map.entry(from).or_insert(to);
            *kept = (*kept).min(to);
        };
        for (_, endpoint) in self.workloads.active() {
            let nats: &[NatInfo] = match version {
                IpVersion::V4 => &endpoint.ipv4_nat,
                IpVersion::V6 => &endpoint.ipv6_nat,
            };
            for nat in nats {
                keep_lowest(&mut dnat, nat.ext_ip, nat.int_ip);
                keep_lowest(&mut snat, nat.int_ip, nat.ext_ip);
            }
        }
        (dnat, snat)
    }

    /// How many endpoints there are, of workloads and of the host.
    pub fn endpoint_count(&self) -> usize {
        self.workloads.all().count() + self.hosts.len()
    }

    /// How many policies apply here.
    pub fn policy_count(&self) -> usize {
        self.policies.len()
    }

    /// Policies and profiles that deny because they need too many rules.
    pub fn too_large(&self) -> Vec<Refused> {
        self.families.iter().flat_map(Family::too_large).collect()
    }

    /// How many sets policies refer to.
    pub fn set_count(&self) -> usize {
        self.sets.count()
    }

    /// What is known of an interface.
    pub fn interface(&self, name: &str) -> Option<&InterfaceState> {
        self.interfaces.all.get(name)
    }

    /// The interfaces of workloads, with or without an endpoint.
    pub fn workload_interfaces(&self) -> impl Iterator<Item = (&Arc<str>, &InterfaceState)> {
        let all = self.interfaces.all.iter();
        all.filter(|(name, _)| self.interfaces.is_workload(name))
    }

    /// The endpoint of an interface. Of several, the one with the lowest identity counts.
    pub fn workload_of(&self, interface: &str) -> Option<&WorkloadEndpoint> {
        self.workloads.of_interface(interface)
    }

    /// The endpoints that count, with their interfaces.
    pub fn active_workloads(&self) -> impl Iterator<Item = (&Arc<str>, &WorkloadEndpoint)> {
        self.workloads.active()
    }
}

/// Which of the fixed sets rules refer to.
fn needed_sets(config: &Config) -> FixedSets {
    let tunnels = &config.tunnels;
    FixedSets {
        all_hosts: tunnels.ipip || config.nat_outgoing.exclude_hosts,
        vxlan: tunnels.vxlan || tunnels.vxlan_v6,
    }
}

/// Whether an endpoint has anything besides policies that rules depend on.
fn has_extras(endpoint: &WorkloadEndpoint) -> bool {
    !(endpoint.qos_policies.is_empty()
        && endpoint.ipv4_nat.is_empty()
        && endpoint.ipv6_nat.is_empty()
        && endpoint.allow_spoofed_source_prefixes.is_empty())
}
