//! A data plane that only keeps what it is told, and refuses what it could not have applied.
//!
//! # Invariants
//! - A policy or profile comes after the sets that its rules use, an endpoint after its policies and profiles; nothing
//!   goes while something that is still there uses it.
//! - Only what is there is removed, and a change of a set really changes it.
//! - After every flush, nothing is there that nothing uses.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::Serialize;
use tortie_engine::message::{
    HostEndpoint, HostEndpointId, IpSetDelta, Member, Policy, PolicyId, Profile, Rule, SetId,
    SetType, TierInfo, WorkloadEndpoint, WorkloadEndpointId,
};
use tortie_engine::{Message, Overlaps, rule_id};

use crate::states::flush_order::rank;

/// What a data plane knows.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct DataPlane {
    pub(crate) sets: BTreeMap<SetId, BTreeSet<Member>>,
    pub(crate) policies: BTreeMap<PolicyId, Policy>,
    pub(crate) profiles: BTreeMap<String, Profile>,
    pub(crate) workloads: BTreeMap<WorkloadEndpointId, WorkloadEndpoint>,
    pub(crate) hosts: BTreeMap<HostEndpointId, HostEndpoint>,
    /// Everything else: kind and name, and the content as JSON.
    pub(crate) network: BTreeMap<(&'static str, String), String>,
    /// Whether members of a set must not overlap.
    overlaps: Overlaps,
    is_in_sync: bool,
}

/// What is wrong with a message.
pub(crate) type Complaint = String;

impl DataPlane {
    pub(crate) fn new(overlaps: Overlaps) -> Self {
        Self {
            overlaps,
            ..Self::default()
        }
    }

    /// Takes in what one flush gave.
    pub(crate) fn apply(&mut self, messages: Vec<Message>) -> Result<(), Complaint> {
        let mut last_rank = 0;
        for message in messages {
            let text = format!("{message:?}");
            let rank = rank(&message);
            let complain = |complaint| format!("{complaint}\n  in {text}");
            if rank < last_rank {
                return Err(complain("too late in the flush".to_owned()));
            }
            last_rank = rank;
            self.take(message).map_err(complain)?;
        }
        self.check_use()
    }

    fn take(&mut self, message: Message) -> Result<(), Complaint> {
        match message {
            Message::IpSetUpdate(set) => {
                ensure(set.r#type == type_of(&set.id), "a set of another type")?;
                ensure(
                    set.members.is_sorted_by(|a, b| a < b),
                    "members out of order",
                )?;
                let members = set.members.into_iter().collect();
                ensure(
                    self.sets.insert(set.id.clone(), members).is_none(),
                    "a set that is there",
                )?;
                self.check_members(&set.id)
            }
            Message::IpSetDeltaUpdate(delta) => self.change_set(&delta),
            Message::IpSetRemove(id) => {
                let is_used = self.used_sets().contains(&id);
                ensure(!is_used, "a set that is in use")?;
                remove(&mut self.sets, &id)
            }
            Message::ActivePolicyUpdate(id, policy) => {
                self.check_rules(&policy.inbound_rules, &policy.outbound_rules)?;
                check_rule_ids(&policy.inbound_rules, |rules| {
                    rule_id::of_policy(&id, true, rules)
                })?;
                self.policies.insert((*id).clone(), (*policy).clone());
                Ok(())
            }
            Message::ActivePolicyRemove(id) => {
                let is_used = self.used_policies().contains(&*id);
                ensure(!is_used, "a policy that is in use")?;
                remove(&mut self.policies, &id)
            }
            Message::ActiveProfileUpdate(name, profile) => {
                self.check_rules(&profile.inbound_rules, &profile.outbound_rules)?;
                check_rule_ids(&profile.inbound_rules, |rules| {
                    rule_id::of_profile(&name, true, rules)
                })?;
                self.profiles.insert(name.to_string(), (*profile).clone());
                Ok(())
            }
            Message::ActiveProfileRemove(name) => {
                let is_used = self.used_profiles().contains(&*name);
                ensure(!is_used, "a profile that is in use")?;
                remove(&mut self.profiles, &name.to_string())
            }
            Message::WorkloadEndpointUpdate(id, endpoint) => {
                self.check_endpoint(&endpoint.profile_ids, &[&endpoint.tiers])?;
                self.workloads.insert(id, *endpoint);
                Ok(())
            }
            Message::WorkloadEndpointRemove(id) => remove(&mut self.workloads, &id),
            Message::HostEndpointUpdate(id, endpoint) => {
                self.check_endpoint(&endpoint.profile_ids, &tiers_of_host(&endpoint))?;
                self.hosts.insert(id, *endpoint);
                Ok(())
            }
            Message::HostEndpointRemove(id) => remove(&mut self.hosts, &id),
            Message::InSync => {
                let was_in_sync = std::mem::replace(&mut self.is_in_sync, true);
                ensure(!was_in_sync, "in sync for the second time")
            }
            other => self.take_network(other),
        }
    }

    fn take_network(&mut self, message: Message) -> Result<(), Complaint> {
        let network = &mut self.network;
        let mut put = |kind, name, value: &dyn erased::Json| {
            network.insert((kind, name), value.json());
            Ok(())
        };
        let gone = match message {
            Message::RouteUpdate(route) => return put("route", route.dst.to_string(), &route),
            Message::VtepUpdate(vtep) => return put("vtep", vtep.node.clone(), &vtep),
            Message::HostMetadataUpdate(host) => return put("node", host.hostname.clone(), &host),
            Message::IpamPoolUpdate(id, pool) => return put("pool", id, &pool),
            Message::Encapsulation(tunnels) => return put("tunnels", String::new(), &tunnels),
            Message::GlobalBgpConfigUpdate(bgp) => return put("bgp", String::new(), &bgp),
            Message::ConfigUpdate(config) => return put("config", String::new(), &config),
            Message::RouteRemove(dst) => ("route", dst.to_string()),
            Message::VtepRemove(node) => ("vtep", node),
            Message::HostMetadataRemove(node) => ("node", node),
            Message::IpamPoolRemove(id) => ("pool", id),
            other => return Err(format!("not expected here: {other:?}")),
        };
        remove(network, &gone)
    }

    fn change_set(&mut self, delta: &IpSetDelta) -> Result<(), Complaint> {
        let members = self.sets.get_mut(&delta.id).ok_or("a set not sent")?;
        let is_empty = delta.added.is_empty() && delta.removed.is_empty();
        ensure(!is_empty, "a change of nothing")?;
        for member in &delta.removed {
            ensure(members.remove(member), "removes what is no member")?;
        }
        for member in &delta.added {
            let is_back = delta.removed.contains(member);
            ensure(
                members.insert(*member) && !is_back,
                "adds what is a member already",
            )?;
        }
        self.check_members(&delta.id)
    }

    fn check_members(&self, id: &SetId) -> Result<(), Complaint> {
        let members = &self.sets[id];
        let are_ports = type_of(id) == SetType::IpAndPort;
        for member in members {
            let is_port = matches!(member, Member::Port(..));
            ensure(is_port == are_ports, "a member of the wrong kind")?;
            if let Member::Net(net) = member {
                ensure(net.prefix_len() > 0, "a network of everything")?;
                ensure(net.trunc() == *net, "a network with bits behind its prefix")?;
            }
        }
        // Networks are ordered by address, then length, so one that covers others comes before them.
        let is_single = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
        let nets: Vec<IpNet> = members
            .iter()
            .filter_map(|member| match member {
                Member::Net(net) => Some(*net),
                Member::Port(..) => None,
            })
            .filter(|net| self.overlaps != Overlaps::AddressesSent || !is_single(net))
            .collect();
        let overlap = nets.windows(2).find(|pair| pair[0].contains(&pair[1]));
        ensure(
            self.overlaps == Overlaps::Sent || overlap.is_none(),
            "members overlap",
        )
    }

    fn check_rules(&self, inbound: &[Rule], outbound: &[Rule]) -> Result<(), Complaint> {
        for (id, expected) in inbound.iter().chain(outbound).flat_map(set_uses) {
            ensure(self.sets.contains_key(id), "uses a set that is not there")?;
            let is_port_set = type_of(id) == SetType::IpAndPort;
            ensure(
                is_port_set == (expected == SetType::IpAndPort),
                "a set of the wrong type",
            )?;
        }
        Ok(())
    }

    fn check_endpoint(&self, profiles: &[String], lists: &[&[TierInfo]]) -> Result<(), Complaint> {
        for name in profiles {
            ensure(
                self.profiles.contains_key(name),
                "uses a profile that is not there",
            )?;
        }
        for tier in lists.iter().copied().flatten() {
            let policies = tier.ingress_policies.iter().chain(&tier.egress_policies);
            let mut policies = policies.peekable();
            ensure(policies.peek().is_some(), "a tier without policies")?;
            for id in policies {
                let policy = self.policies.get(&**id);
                let policy = policy.ok_or("uses a policy that is not there")?;
                ensure(*policy.tier == *tier.name, "a policy in the wrong tier")?;
            }
        }
        Ok(())
    }

    /// Nothing is there that nothing uses.
    fn check_use(&self) -> Result<(), Complaint> {
        let sets = self.used_sets();
        let is_lost = |id: &&SetId| !sets.contains(id);
        let lost = self.sets.keys().find(is_lost);
        ensure(lost.is_none(), &format!("nothing uses the set {lost:?}"))?;
        let policies = self.used_policies();
        // Workloads and some directions have no place for policies of the special kinds.
        let may_idle =
            |policy: &Policy| policy.untracked || policy.pre_dnat || !policy.perf_hints.is_empty();
        let is_lost = |(id, policy): &(_, &Policy)| !policies.contains(id) && !may_idle(policy);
        let lost = self.policies.iter().find(is_lost);
        ensure(lost.is_none(), &format!("nothing uses the policy {lost:?}"))?;
        let profiles = self.used_profiles();
        let lost = self
            .profiles
            .keys()
            .find(|name| !profiles.contains(&***name));
        ensure(
            lost.is_none(),
            &format!("nothing uses the profile {lost:?}"),
        )
    }

    fn used_sets(&self) -> BTreeSet<&SetId> {
        let of_policies = self
            .policies
            .values()
            .flat_map(|policy| policy.inbound_rules.iter().chain(&policy.outbound_rules));
        let of_profiles = self
            .profiles
            .values()
            .flat_map(|profile| profile.inbound_rules.iter().chain(&profile.outbound_rules));
        let uses = of_policies.chain(of_profiles).flat_map(set_uses);
        uses.map(|(id, _)| id).collect()
    }

    fn used_policies(&self) -> BTreeSet<&PolicyId> {
        let of_workloads = self.workloads.values().map(|endpoint| &*endpoint.tiers);
        let of_hosts = self.hosts.values().flat_map(tiers_of_host);
        of_workloads
            .chain(of_hosts)
            .flatten()
            .flat_map(|tier| tier.ingress_policies.iter().chain(&tier.egress_policies))
            .map(|id| &**id)
            .collect()
    }

    fn used_profiles(&self) -> BTreeSet<&str> {
        let of_workloads = self.workloads.values().flat_map(|e| &e.profile_ids);
        let of_hosts = self.hosts.values().flat_map(|e| &e.profile_ids);
        of_workloads.chain(of_hosts).map(|name| &**name).collect()
    }
}

/// Values of different types in one place.
mod erased {
    use super::Serialize;

    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).expect("a message as JSON")
        }
    }
}

fn ensure(holds: bool, complaint: &str) -> Result<(), Complaint> {
    if holds {
        Ok(())
    } else {
        Err(complaint.to_owned())
    }
}

fn remove<K: Ord, V>(objects: &mut BTreeMap<K, V>, key: &K) -> Result<(), Complaint> {
    let removed = objects.remove(key);
    ensure(removed.is_some(), "removes what is not there")
}

fn check_rule_ids(rules: &[Rule], ids: impl Fn(&[Rule]) -> Vec<String>) -> Result<(), Complaint> {
    let ids = ids(rules);
    let are_long = ids.iter().all(|id| id.len() == 16);
    let different: BTreeSet<&String> = ids.iter().collect();
    ensure(
        are_long && different.len() == rules.len(),
        "bad identifiers of rules",
    )
}

/// The sets that a rule uses, with the type that the place calls for.
fn set_uses(rule: &Rule) -> impl Iterator<Item = (&SetId, SetType)> {
    [&rule.src, &rule.dst].into_iter().flat_map(|side| {
        let nets = side.sets.iter().chain(&side.not_sets);
        let ports = side.named_port_sets.iter();
        let ports = ports
            .chain(&side.not_named_port_sets)
            .chain(&side.port_sets);
        let nets = nets.map(|id| (id, SetType::Net));
        nets.chain(ports.map(|id| (id, SetType::IpAndPort)))
    })
}

fn tiers_of_host(endpoint: &HostEndpoint) -> [&[TierInfo]; 4] {
    [
        &endpoint.tiers,
        &endpoint.untracked_tiers,
        &endpoint.pre_dnat_tiers,
        &endpoint.forward_tiers,
    ]
}

/// The type that a set has, by what its identifier starts with.
fn type_of(id: &SetId) -> SetType {
    match id.as_str().split_once(':') {
        Some(("n" | "svc", _)) => SetType::IpAndPort,
        _ => SetType::Net,
    }
}
