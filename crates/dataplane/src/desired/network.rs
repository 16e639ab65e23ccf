//! What rules need to know of the network: pools, nodes, services, and the host's own addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::kinds::ip_pool::IpPoolAllowedUse;
use tortie_api::net::{Cidr, parse_cidr_or_ip};
use tortie_engine::message::{GlobalBgpConfig, Host, IpamPool, Member, Vtep};
use tortie_rules::{Dataplane, IpVersion, fixed_set, ip_set_name};

use super::DesiredState;
use crate::change::{Members, SetChange, SetKind};

/// The interfaces of the host, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// All of them, those of workloads too.
    pub all: BTreeMap<Arc<str>, InterfaceState>,
    /// What the names of workloads' interfaces begin with.
    pub workload_prefixes: Vec<String>,
}

/// What is known of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceState {
    /// Its number.
    pub index: u32,
    /// Whether it works.
    pub is_up: bool,
    pub addresses: BTreeSet<IpAddr>,
}

impl Interfaces {
    /// Those that are not workloads'.
    pub fn of_host(&self) -> impl Iterator<Item = (&Arc<str>, &InterfaceState)> {
        self.all.iter().filter(|(name, _)| !self.is_workload(name))
    }

    /// Whether it is a workload's.
    pub fn is_workload(&self, name: &str) -> bool {
        let mut prefixes = self.workload_prefixes.iter();
        prefixes.any(|prefix| name.starts_with(prefix.as_str()))
    }
}

/// What rules need to know of the network.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) hostname: String,
    pub(super) pools: BTreeMap<String, IpamPool>,
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) vteps: BTreeMap<String, Vtep>,
    pub(super) bgp: GlobalBgpConfig,
}

impl Network {
    /// Networks of services, to which packets must not go round in circles.
    pub(super) fn service_cidrs(&self) -> Vec<IpNet> {
        let bgp = &self.bgp;
        let lists = [
            &bgp.service_cluster_cidrs,
            &bgp.service_external_cidrs,
            &bgp.service_load_balancer_cidrs,
        ];
        let texts = lists.into_iter().flatten();
        texts.filter_map(|text| text.parse().ok()).collect()
    }

    /// Whether any pool of an IP version hides its addresses.
    pub(super) fn masquerades(&self, version: IpVersion) -> bool {
        let mut pools = self.pools.values();
        pools.any(|pool| pool.masquerade && is_of(&pool.cidr, version))
    }

    /// The members of the fixed sets.
    pub(super) fn fixed_sets(
        &self,
        version: IpVersion,
        interfaces: &Interfaces,
        marked: &BTreeMap<IpAddr, u8>,
        which: FixedSets,
    ) -> BTreeMap<&'static str, (SetKind, BTreeSet<Member>)> {
        let nets = |nets: &mut dyn Iterator<Item = IpNet>| -> BTreeSet<Member> {
            let nets: Vec<IpNet> = nets.filter(|net| is_of(net, version)).collect();
            // Pools of the same network, or one inside another, overlap.
            IpNet::aggregate(&nets)
                .into_iter()
                .map(Member::Net)
                .collect()
        };
        let pools = || self.pools.values();
        let masqueraded = pools().filter(|pool| pool.masquerade);
        let mut sets = BTreeMap::from([
            (
                fixed_set::POOLS,
                nets(
                    &mut pools()
                        .filter(|pool| !is_for_services_only(pool))
                        .map(|pool| pool.cidr),
                ),
            ),
            (
                fixed_set::MASQUERADED_POOLS,
                nets(&mut masqueraded.map(|pool| pool.cidr)),
            ),
            (
                fixed_set::DSCP,
                nets(&mut marked.keys().map(|address| IpNet::from(*address))),
            ),
        ]);
        if which.all_hosts {
            let hosts = self.hosts.values();
            let hosts = hosts.flat_map(|host| [&host.ipv4_addr, &host.ipv6_addr]);
            sets.insert(
                fixed_set::ALL_HOSTS,
                nets(&mut hosts.filter_map(|text| address(text)).map(IpNet::from)),
            );
        }
        if which.vxlan {
            let others = self
                .vteps
                .values()
                .filter(|vtep| vtep.node != self.hostname);
            let others = others.flat_map(|vtep| [vtep.parent_device_ip, vtep.parent_device_ipv6]);
            sets.insert(
                fixed_set::ALL_VXLAN,
                nets(&mut others.flatten().map(IpNet::from)),
            );
        }
        let mut all: BTreeMap<_, _> = sets
            .into_iter()
            .map(|(id, members)| (id, (SetKind::Networks, members)))
            .collect();
        // Not joined to networks: the set is of single addresses.
        let single = interfaces.of_host().flat_map(|(_, state)| &state.addresses);
        let single = single.map(|address| IpNet::from(*address));
        let single = single.filter(|net| is_of(net, version)).map(Member::Net);
        all.insert(fixed_set::THIS_HOST, (SetKind::Addresses, single.collect()));
        all
    }
}

impl DesiredState {
    /// The addresses that workloads speak BGP with, of each IP version that has one.
    pub fn peering_addresses(&self) -> impl Iterator<Item = IpAddr> {
        let bgp = &self.network.bgp;
        let v4 = bgp.local_workload_peering_ip_v4.parse().map(IpAddr::V4);
        let v6 = bgp.local_workload_peering_ip_v6.parse().map(IpAddr::V6);
        [v4, v6].into_iter().filter_map(Result::ok)
    }
}

/// Fixed sets that only some configurations need.
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedSets {
    pub(super) all_hosts: bool,
    pub(super) vxlan: bool,
}

/// The fixed sets as the kernel has them, for one IP version.
#[derive(Debug, Default)]
pub(super) struct ProgrammedSets {
    sets: BTreeMap<&'static str, BTreeSet<Member>>,
}

impl ProgrammedSets {
    /// What changes to give the sets these members.
    pub(super) fn changes(
        &mut self,
        wanted: BTreeMap<&'static str, (SetKind, BTreeSet<Member>)>,
        version: IpVersion,
        dataplane: Dataplane,
    ) -> Vec<SetChange> {
        let mut changes = Vec::new();
        for (id, (kind, members)) in wanted {
            let change = match self.sets.get(id) {
                Some(before) if *before == members => continue,
                Some(before) => Members::Delta {
                    added: members.difference(before).copied().collect(),
                    removed: before.difference(&members).copied().collect(),
                },
                None => Members::All(members.iter().copied().collect()),
            };
            changes.push(SetChange {
                name: ip_set_name(id, version, dataplane).into(),
                kind,
                change,
            });
            self.sets.insert(id, members);
        }
        changes
    }
}

/// Whether a network is of an IP version.
pub(crate) fn is_of(net: &IpNet, version: IpVersion) -> bool {
    matches!(net, IpNet::V4(_)) == (version == IpVersion::V4)
}

fn is_for_services_only(pool: &IpamPool) -> bool {
    matches!(
        pool.allowed_uses.as_slice(),
        [IpPoolAllowedUse::LoadBalancer]
    )
}

/// The address of a node, with or without the length of its network's prefix.
fn address(text: &str) -> Option<IpAddr> {
    parse_cidr_or_ip(text).map(Cidr::ip)
}
