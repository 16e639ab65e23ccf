//! Objects of the datastore in few words.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::rule::PolicyType;
use tortie_api::scalar::Protocol;
use tortie_engine::Update;
use tortie_engine::input::{
    BgpPeer, DefaultAction, EndpointPort, EndpointSlice, HostEndpoint, HostEndpointKey, Labels,
    LiveMigration, MigrationSource, MigrationTarget, NetworkSet, Node, ObjectName, Policy,
    PolicyId, PolicyKind, Profile, SlicePort, Tier, WorkloadEndpoint, WorkloadEndpointKey,
};

use crate::states::rule::RuleOf;

/// The node that the engine works for.
pub(crate) const LOCAL: &str = "here";
/// Another node.
pub(crate) const REMOTE: &str = "there";

/// An object of the datastore.
#[derive(Clone)]
pub(crate) struct Object(pub(crate) Update);

// === Endpoints ===

/// The key of a pod's endpoint; the namespace is `default` where none is named.
pub(crate) fn pod_key(node: &str, name: &str) -> WorkloadEndpointKey {
    let namespace = if name.contains('/') { "" } else { "default/" };
    WorkloadEndpointKey {
        node: node.to_owned(),
        orchestrator: "k8s".to_owned(),
        workload: format!("{namespace}{name}"),
        endpoint: "eth0".to_owned(),
    }
}

/// A pod on this node.
pub(crate) fn pod(name: &str) -> Object {
    pod_on(LOCAL, name)
}

/// A pod on another node.
pub(crate) fn remote_pod(name: &str) -> Object {
    pod_on(REMOTE, name)
}

fn pod_on(node: &str, name: &str) -> Object {
    let endpoint = WorkloadEndpoint {
        interface: format!("cali-{name}"),
        ..WorkloadEndpoint::default()
    };
    Object(Update::WorkloadEndpoint(
        pod_key(node, name),
        Some(Box::new(endpoint)),
    ))
}

/// An interface `eth0` of this host.
pub(crate) fn host(name: &str) -> Object {
    host_on(LOCAL, name)
}

pub(crate) fn host_on(node: &str, name: &str) -> Object {
    let key = HostEndpointKey {
        node: node.to_owned(),
        name: name.to_owned(),
    };
    let endpoint = HostEndpoint {
        interface: "eth0".to_owned(),
        ..HostEndpoint::default()
    };
    Object(Update::HostEndpoint(key, Some(Box::new(endpoint))))
}

/// A network set; `namespace/name`, or `name` for a global one.
pub(crate) fn network_set(name: &str, nets: &[&str]) -> Object {
    let nets = nets.iter().map(|text| net(text)).collect();
    let set = NetworkSet {
        nets,
        ..NetworkSet::default()
    };
    Object(Update::NetworkSet(name.to_owned(), Some(set)))
}

pub(crate) fn profile(name: &str) -> Object {
    Object(Update::Profile(name.to_owned(), Some(Profile::default())))
}

// === Policies ===

/// A global policy for everything.
pub(crate) fn policy(name: &str) -> Object {
    policy_of(PolicyKind::GlobalNetworkPolicy, "", name)
}

pub(crate) fn policy_of(kind: PolicyKind, namespace: &str, name: &str) -> Object {
    let id = PolicyId {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let policy = Policy {
        tier: "default".to_owned(),
        selector: "all()".to_owned(),
        ..Policy::default()
    };
    Object(Update::Policy(id, Some(policy)))
}

/// A tier without an order that ends in a drop.
pub(crate) fn tier(name: &str) -> Object {
    Object(Update::Tier(name.to_owned(), Some(Tier::default())))
}

// === Other objects ===

fn object_name(name: &str) -> ObjectName {
    let (namespace, name) = name.split_once('/').expect("namespace/name");
    ObjectName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// A slice `namespace/name` of a service in the same namespace; ports as `tcp:80`.
pub(crate) fn slice(name: &str, service: &str, addresses: &[&str], ports: &[&str]) -> Object {
    let port = |text: &&str| {
        let (protocol, port) = text.split_once(':').expect("protocol:port");
        SlicePort {
            protocol: parse_protocol(protocol),
            port: port.parse().expect("a port"),
        }
    };
    let slice = EndpointSlice {
        service: service.to_owned(),
        addresses: addresses
            .iter()
            .map(|ip| ip.parse().expect("an address"))
            .collect(),
        ports: ports.iter().map(port).collect(),
    };
    Object(Update::EndpointSlice(object_name(name), Some(slice)))
}

/// A node with labels and nothing else.
pub(crate) fn node(name: &str, labels: &[(&str, &str)]) -> Object {
    let node = Node {
        labels: make_labels(labels),
        ..Node::default()
    };
    Object(Update::Node(name.to_owned(), Some(Box::new(node))))
}

pub(crate) fn peer(name: &str, workloads: &str, nodes: &str) -> Object {
    let peer = BgpPeer {
        node_selector: nodes.to_owned(),
        local_workload_selector: workloads.to_owned(),
        ..BgpPeer::default()
    };
    Object(Update::BgpPeer(name.to_owned(), Some(peer)))
}

pub(crate) fn migration(
    uid: &str,
    source: Option<MigrationSource>,
    target: Option<MigrationTarget>,
) -> Object {
    let migration = LiveMigration {
        uid: uid.to_owned(),
        source,
        target,
    };
    let name = object_name(&format!("default/{uid}"));
    Object(Update::LiveMigration(name, Some(migration)))
}

// === impl Object ===

impl Object {
    fn change_policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        match &mut self.0 {
            Update::Policy(_, Some(policy)) => change(policy),
            other => panic!("not a policy: {other:?}"),
        }
        self
    }

    pub(crate) fn selector(self, selector: &str) -> Self {
        self.change_policy(|policy| selector.clone_into(&mut policy.selector))
    }

    pub(crate) fn in_tier(self, tier: &str) -> Self {
        self.change_policy(|policy| tier.clone_into(&mut policy.tier))
    }

    pub(crate) fn order(self, order: f64) -> Self {
        self.change_policy(|policy| policy.order = Some(order))
    }

    pub(crate) fn ingress_only(self) -> Self {
        self.change_policy(|policy| policy.types = vec![PolicyType::Ingress])
    }

    pub(crate) fn egress_only(self) -> Self {
        self.change_policy(|policy| policy.types = vec![PolicyType::Egress])
    }

    pub(crate) fn untracked(self) -> Self {
        self.change_policy(|policy| policy.untracked = true)
    }

    pub(crate) fn pre_dnat(self) -> Self {
        self.change_policy(|policy| policy.pre_dnat = true)
    }

    pub(crate) fn on_forward(self) -> Self {
        self.change_policy(|policy| policy.apply_on_forward = true)
    }

    pub(crate) fn always(self) -> Self {
        self.change_policy(|policy| policy.assume_needed_on_every_node = true)
    }

    /// One more rule for packets to the endpoint, of a policy or profile.
    pub(crate) fn inbound(mut self, rule: RuleOf) -> Self {
        match &mut self.0 {
            Update::Policy(_, Some(policy)) => policy.inbound.push(rule.0),
            Update::Profile(_, Some(profile)) => profile.inbound.push(rule.0),
            other => panic!("no rules: {other:?}"),
        }
        self
    }

    /// One more rule for packets from the endpoint, of a policy or profile.
    pub(crate) fn outbound(mut self, rule: RuleOf) -> Self {
        match &mut self.0 {
            Update::Policy(_, Some(policy)) => policy.outbound.push(rule.0),
            Update::Profile(_, Some(profile)) => profile.outbound.push(rule.0),
            other => panic!("no rules: {other:?}"),
        }
        self
    }

    fn change_tier(mut self, change: impl FnOnce(&mut Tier)) -> Self {
        match &mut self.0 {
            Update::Tier(_, Some(tier)) => change(tier),
            other => panic!("not a tier: {other:?}"),
        }
        self
    }

    pub(crate) fn tier_order(self, order: f64) -> Self {
        self.change_tier(|tier| tier.order = Some(order))
    }

    pub(crate) fn passes(self) -> Self {
        self.change_tier(|tier| tier.default_action = DefaultAction::Pass)
    }

    pub(crate) fn change_pod(mut self, change: impl FnOnce(&mut WorkloadEndpoint)) -> Self {
        match &mut self.0 {
            Update::WorkloadEndpoint(_, Some(endpoint)) => change(endpoint),
            other => panic!("not a pod: {other:?}"),
        }
        self
    }

    pub(crate) fn change_host(mut self, change: impl FnOnce(&mut HostEndpoint)) -> Self {
        match &mut self.0 {
            Update::HostEndpoint(_, Some(endpoint)) => change(endpoint),
            other => panic!("not a host endpoint: {other:?}"),
        }
        self
    }

    pub(crate) fn ip(mut self, address: &str) -> Self {
        match (&mut self.0, net(address)) {
            (Update::WorkloadEndpoint(_, Some(endpoint)), net @ IpNet::V4(_)) => {
                endpoint.ipv4_nets.push(net);
            }
            (Update::WorkloadEndpoint(_, Some(endpoint)), net) => endpoint.ipv6_nets.push(net),
            (Update::HostEndpoint(_, Some(endpoint)), net) => {
                endpoint.expected_ips.push(net.addr());
            }
            (other, _) => panic!("no address: {other:?}"),
        }
        self
    }

    pub(crate) fn label(mut self, name: &str, value: &str) -> Self {
        let labels = match &mut self.0 {
            Update::WorkloadEndpoint(_, Some(endpoint)) => &mut endpoint.labels,
            Update::HostEndpoint(_, Some(endpoint)) => &mut endpoint.labels,
            Update::NetworkSet(_, Some(set)) => &mut set.labels,
            Update::Profile(_, Some(profile)) => &mut profile.labels,
            other => panic!("no labels: {other:?}"),
        };
        labels.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn profiles(mut self, names: &[&str]) -> Self {
        let profiles = match &mut self.0 {
            Update::WorkloadEndpoint(_, Some(endpoint)) => &mut endpoint.profiles,
            Update::HostEndpoint(_, Some(endpoint)) => &mut endpoint.profiles,
            Update::NetworkSet(_, Some(set)) => &mut set.profiles,
            other => panic!("no profiles: {other:?}"),
        };
        *profiles = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// One more port with a name.
    pub(crate) fn port(mut self, name: &str, protocol: &str, number: u16) -> Self {
        let ports = match &mut self.0 {
            Update::WorkloadEndpoint(_, Some(endpoint)) => &mut endpoint.ports,
            Update::HostEndpoint(_, Some(endpoint)) => &mut endpoint.ports,
            other => panic!("no ports: {other:?}"),
        };
        ports.push(EndpointPort {
            name: name.to_owned(),
            protocol: parse_protocol(protocol),
            port: number,
        });
        self
    }
}

fn make_labels(labels: &[(&str, &str)]) -> Labels {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    labels.iter().map(owned).collect()
}

/// A network, or an address as a network of one.
pub(crate) fn net(text: &str) -> IpNet {
    match text.parse::<IpAddr>() {
        Ok(address) => address.into(),
        Err(_) => text.parse().expect("a network"),
    }
}

/// A protocol by name, in any case, or by number.
pub(crate) fn parse_protocol(text: &str) -> Protocol {
    match text {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        "icmp" => Protocol::Icmp,
        "icmpv6" => Protocol::Icmpv6,
        "udplite" => Protocol::UdpLite,
        number => Protocol::Number(number.parse().expect("a protocol")),
    }
}
