//! Who is where: the pods and host endpoints of the node, and the addresses of everybody else.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use tortie_api::Resource;
use tortie_api::host_endpoint::HostEndpointSpec;
use tortie_api::scalar::Protocol;
use tortie_config::{FailsafeConfig, FailsafePort};
use tortie_engine::verdict::EndpointKey;

use crate::differential::evaluate::party::{host_key, nets, workload_key};
use crate::differential::world::{Object, World};

/// The node that is made of namespaces.
pub(crate) const NODE: &str = "n1";

/// Its interface to everybody else.
pub(crate) const UPLINK: &str = "eth0";

/// Its addresses there, those that host endpoints may expect among them.
pub(crate) const HOST_ADDRESSES: [&str; 4] =
    ["192.168.0.1", "192.168.0.9", "fd00:1::1", "fd00:1::9"];

/// Addresses outside of the node besides those that its pods could have.
const OUTSIDE: [&str; 6] = [
    "1.1.1.1",
    "10.0.0.99",
    "192.168.0.2",
    "203.0.113.5",
    "2001:db8::1",
    "2002::1",
];

/// Where a packet begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Pod(Arc<Pod>),
    Host,
    Outside,
}

/// A pod of the node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) interface: String,
    pub(crate) key: EndpointKey,
}

/// All that is needed to know where packets can go in a world.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) pods: Vec<(Arc<Pod>, Vec<IpAddr>)>,
    pub(crate) host: Vec<IpAddr>,
    pub(crate) outside: Vec<IpAddr>,
    pub(crate) host_endpoints: HostEndpoints,
    /// The ports of the node and of others that stay open.
    failsafes: Vec<FailsafePort>,
}

/// The host endpoints that are in force.
#[derive(Debug, Default)]
pub(crate) struct HostEndpoints {
    /// That of the uplink.
    pub(crate) uplink: Option<EndpointKey>,
    /// That of all interfaces that have none of their own, those of pods too.
    pub(crate) any: Option<EndpointKey>,
}

/// The interfaces of all pods that worlds can have.
pub(crate) fn all_interfaces() -> impl Iterator<Item = String> {
    let namespaces = ["blue", "green", "red"];
    let name = |namespace| move |number| format!("cali{namespace}pod{number}");
    namespaces
        .into_iter()
        .flat_map(move |namespace| (1..=3).map(name(namespace)))
}

/// The addresses that pods can have.
pub(crate) fn pod_addresses() -> impl Iterator<Item = IpAddr> {
    let of =
        |prefix: &'static str| (1..=8).map(move |number| address(&format!("{prefix}{number}")));
    of("10.0.0.").chain(of("fd00::"))
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Makes a world possible: on one node, each interface has one endpoint, and each address one interface. Makes it more
/// interesting, too: one of the host endpoints is of the node, and policies for hosts alone apply to all.
pub(crate) fn make_possible(world: &mut World) {
    let (mut interfaces, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    world.objects.retain(|_, object| match object {
        Object::Resource(Resource::WorkloadEndpoint(endpoint)) if endpoint.spec.node == NODE => {
            let spec = &mut endpoint.spec;
            spec.ip_networks.retain(|net| addresses.insert(net.clone()));
            interfaces.insert(spec.interface_name.clone())
        }
        Object::Resource(Resource::HostEndpoint(host)) => {
            if host.metadata.name == "host1" {
                NODE.clone_into(&mut host.spec.node);
            }
            true
        }
        Object::Resource(Resource::GlobalNetworkPolicy(policy)) => {
            let spec = &mut policy.spec;
            if spec.do_not_track || spec.pre_dnat {
                spec.selector.clear();
                spec.namespace_selector.clear();
                spec.service_account_selector.clear();
            }
            true
        }
        _ => true,
    });
}

impl Places {
    pub(crate) fn of(world: &World, failsafe: &FailsafeConfig) -> Self {
        let mut pods = Vec::new();
        let mut taken: BTreeSet<IpAddr> = BTreeSet::new();
        for resource in world.resources() {
            if let Resource::WorkloadEndpoint(endpoint) = resource
                && endpoint.spec.node == NODE
            {
                let addresses = nets(&endpoint.spec.ip_networks);
                let addresses: Vec<IpAddr> = addresses.iter().map(ipnet::IpNet::addr).collect();
                taken.extend(&addresses);
                let pod = Pod {
                    interface: endpoint.spec.interface_name.clone(),
                    key: workload_key(endpoint),
                };
                pods.push((Arc::new(pod), addresses));
            }
        }
        let fixed = OUTSIDE.iter().map(|text| address(text));
        let outside = fixed
            .chain(pod_addresses())
            .filter(|address| !taken.contains(address));
        let failsafes = failsafe.inbound.iter().chain(&failsafe.outbound);
        Self {
            failsafes: failsafes.copied().collect(),
            pods,
            host: HOST_ADDRESSES.map(address).into(),
            outside: outside.collect(),
            host_endpoints: HostEndpoints::of(world),
        }
    }
}

impl Places {
    /// Whether a packet may be the answer from a port that stays open. Before connection tracking, policy lets those pass.
    pub(crate) fn may_answer(&self, protocol: &Protocol, port: u16) -> bool {
        let is_it =
            |open: &FailsafePort| Protocol::from(open.protocol) == *protocol && open.port == port;
        self.host_endpoints.uplink.is_some() && self.failsafes.iter().any(is_it)
    }
}

impl HostEndpoints {
    /// Of several for one interface, the first by name is in force.
    fn of(world: &World) -> Self {
        let mut found = Self::default();
        // Worlds keep objects in the order of their names.
        for resource in world.resources() {
            let Resource::HostEndpoint(host) = resource else {
                continue;
            };
            let place = match host.spec.interface_name.as_str() {
                _ if host.spec.node != NODE => continue,
                "*" => &mut found.any,
                UPLINK => &mut found.uplink,
                "" if expects_us(&host.spec) => &mut found.uplink,
                _ => continue,
            };
            place.get_or_insert_with(|| host_key(&host.metadata, &host.spec));
        }
        found
    }
}

fn expects_us(spec: &HostEndpointSpec) -> bool {
    let expected = spec.expected_ips.iter();
    let mut expected = expected.map(|text| address(text));
    expected.any(|expected| HOST_ADDRESSES.map(address).contains(&expected))
}
