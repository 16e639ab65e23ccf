//! A node with two pods, and a data plane that is told about them.

use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tortie_api::rule::Action;
use tortie_dataplane::iptables::{Backend, IptablesDriver, Options, Variant};
use tortie_dataplane::nftables::NftablesDriver;
use tortie_dataplane::{Dataplane, Done, Drift, Driver, Error};
use tortie_engine::Message;
use tortie_engine::input::DefaultAction;
use tortie_engine::message::{
    IpSetUpdate, Member, Policy, Profile, QosControls, Rule, SetId, SetType, TierInfo,
    WorkloadEndpoint, WorkloadEndpointId,
};
use tortie_rules::{Config, Dataplane as Kind, IpVersion, PolicyId, PolicyKind};
use tortie_testkit::net::{Node, Packet, Pod, Ports, Probe, Prober, Site};

/// The interfaces and addresses of both.
const CLIENT: (&str, [&str; 2]) = ("cali1", ["10.65.0.1", "fd65::1"]);
pub(crate) const SERVER: (&str, [&str; 2]) = ("cali2", ["10.65.0.2", "fd65::2"]);

/// What drives the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    Nftables,
    Iptables(Variant),
}

pub(crate) struct Bed {
    node: Node,
    dataplane: Dataplane,
    said: Vec<Message>,
    prober: Prober,
    from: Site,
    to: Site,
    _pods: [Pod; 2],
}

impl Plane {
    pub(crate) const ALL: [Self; 3] = [
        Self::Nftables,
        Self::Iptables(Variant::Legacy),
        Self::Iptables(Variant::Nft),
    ];

    fn driver(self, ip_version: IpVersion, max_ipset_size: u32) -> Box<dyn Driver> {
        match self {
            Self::Nftables => Box::new(NftablesDriver::open(ip_version).expect("a socket")),
            Self::Iptables(variant) => {
                let options = Options {
                    backend: Backend::Only(variant),
                    max_ipset_size,
                    ..Options::new(ip_version)
                };
                Box::new(IptablesDriver::new(&options).expect("the programs of iptables"))
            }
        }
    }

    fn open(self, node: &Node, max_ipset_size: u32) -> Dataplane {
        let open = || {
            let versions = [IpVersion::V4, IpVersion::V6];
            let drivers = versions.map(|version| (version, self.driver(version, max_ipset_size)));
            let config = Arc::new(Config::default());
            Dataplane::new(&config, self.kind(), drivers.into(), "node")
        };
        node.namespace().run(open).expect("the node's namespace")
    }

    fn kind(self) -> Kind {
        match self {
            Self::Nftables => Kind::Nftables,
            Self::Iptables(_) => Kind::Iptables,
        }
    }
}

impl Bed {
    /// Two pods that may do everything, as long as no policy applies to the server.
    pub(crate) fn new(plane: Plane) -> Self {
        Self::with_max_ipset_size(plane, 1 << 20)
    }

    pub(crate) fn with_max_ipset_size(plane: Plane, max_ipset_size: u32) -> Self {
        let mut node = Node::new().expect("a node");
        let mut pod = |(interface, addresses): (&str, [&str; 2])| {
            let addresses = addresses.map(|text| text.parse().expect("an address"));
            let pod = node.add_pod(interface, &addresses).expect("a pod");
            node.route_to(&pod).expect("a route");
            pod
        };
        let pods = [pod(CLIENT), pod(SERVER)];
        let dataplane = plane.open(&node, max_ipset_size);
        let mut prober = Prober::new();
        let from = prober.add_site(&pods[0].namespace);
        let to = prober.add_site(&pods[1].namespace);
        let mut bed = Self {
            node,
            dataplane,
            said: Vec::new(),
            prober,
            from,
            to,
            _pods: pods,
        };
        let allow = vec![Rule {
            action: Action::Allow,
            ..Rule::default()
        }];
        let profile = Profile {
            inbound_rules: allow.clone(),
            outbound_rules: allow,
        };
        bed.say(Message::ActiveProfileUpdate(
            "open".into(),
            Arc::new(profile),
        ));
        bed.say(endpoint(CLIENT, &[], None));
        bed.say(endpoint(SERVER, &[], None));
        bed
    }

    pub(crate) fn say(&mut self, message: Message) {
        self.said.push(message.clone());
        self.dataplane.on_message(message);
    }

    /// Ends the data plane, and starts one that is told the same.
    pub(crate) fn restart(&mut self, plane: Plane) {
        self.dataplane = plane.open(&self.node, 1 << 20);
        for message in &self.said {
            self.dataplane.on_message(message.clone());
        }
        self.apply();
        let namespace = self.node.namespace().clone();
        let dataplane = &mut self.dataplane;
        let errors = namespace.run(|| dataplane.remove_left_overs());
        let errors = errors.expect("the node's namespace");
        assert!(errors.is_empty(), "{errors:?}");
    }

    /// A policy with these rules for packets to the endpoint.
    pub(crate) fn say_policy(&mut self, id: &Arc<PolicyId>, rules: Vec<Rule>) {
        let policy = Policy {
            tier: "default".to_owned(),
            inbound_rules: rules,
            original_selector: "all()".to_owned(),
            ..Policy::default()
        };
        self.say(Message::ActivePolicyUpdate(
            Arc::clone(id),
            Arc::new(policy),
        ));
    }

    /// These policies apply to packets to the server.
    pub(crate) fn select(&mut self, policies: &[Arc<PolicyId>]) {
        self.say(endpoint(SERVER, policies, None));
    }

    pub(crate) fn say_set(&mut self, id: &str, kind: SetType, members: Vec<Member>) {
        self.say(Message::IpSetUpdate(IpSetUpdate {
            id: SetId::from(id.to_owned()),
            r#type: kind,
            members,
        }));
    }

    pub(crate) fn try_apply(&mut self) -> Result<Done, Error> {
        let namespace = self.node.namespace().clone();
        let dataplane = &mut self.dataplane;
        namespace
            .run(|| dataplane.apply())
            .expect("the node's namespace")
    }

    pub(crate) fn apply(&mut self) -> Done {
        self.try_apply().expect("the kernel takes it")
    }

    pub(crate) fn set_first_retry(&mut self, delay: Duration) {
        self.dataplane.set_first_retry(delay);
    }

    /// What in the kernel is not what was written.
    pub(crate) fn check(&mut self) -> Vec<Drift> {
        let namespace = self.node.namespace().clone();
        let dataplane = &mut self.dataplane;
        let checked = namespace.run(|| dataplane.check());
        checked.expect("the node's namespace").expect("a listing")
    }

    pub(crate) fn dataplane(&self) -> &Dataplane {
        &self.dataplane
    }

    /// What a program says in the node's namespace.
    pub(crate) fn output_of(&self, program: &str) -> String {
        let mut words = program.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let output = self.node.namespace().run(|| command.output());
        let output = output.expect("the node's namespace").expect("the program");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Which of these packets arrive, from the client to the server.
    pub(crate) fn arrived(&mut self, version: IpVersion, packets: &[Packet]) -> Vec<bool> {
        let address = |(_, addresses): (&str, [&str; 2])| -> IpAddr {
            addresses[version as usize].parse().expect("an address")
        };
        let probes = packets.iter().map(|packet| Probe {
            from: self.from,
            to: self.to,
            source: address(CLIENT),
            destination: address(SERVER),
            packet: *packet,
        });
        let probes: Vec<Probe> = probes.collect();
        self.prober.probe_all(&probes).expect("packets are sent")
    }

    /// Whether a connection to this port begins.
    pub(crate) fn is_open(&mut self, version: IpVersion, port: u16) -> bool {
        self.arrived(version, &[Packet::Tcp(Ports::to(port))]) == [true]
    }
}

/// An endpoint with these policies for packets to it.
pub(crate) fn endpoint(
    (interface, addresses): (&str, [&str; 2]),
    policies: &[Arc<PolicyId>],
    qos_controls: Option<QosControls>,
) -> Message {
    let id = WorkloadEndpointId {
        orchestrator_id: "k8s".to_owned(),
        workload_id: format!("default/{interface}"),
        endpoint_id: "eth0".to_owned(),
    };
    let tiers: Vec<TierInfo> = if policies.is_empty() {
        Vec::new()
    } else {
        vec![TierInfo {
            name: "default".into(),
            ingress_policies: policies.to_vec(),
            egress_policies: Vec::new(),
            default_action: Some(DefaultAction::Deny),
        }]
    };
    let net = |text: &str| vec![format!("{text}/32").parse().expect("a network")];
    let net6 = |text: &str| vec![format!("{text}/128").parse().expect("a network")];
    let endpoint = WorkloadEndpoint {
        state: "active",
        name: interface.to_owned(),
        profile_ids: vec!["open".to_owned()],
        ipv4_nets: net(addresses[0]),
        ipv6_nets: net6(addresses[1]),
        tiers: tiers.into(),
        qos_controls,
        ..WorkloadEndpoint::default()
    };
    Message::WorkloadEndpointUpdate(id, Box::new(endpoint))
}

pub(crate) fn policy(name: &str) -> Arc<PolicyId> {
    Arc::new(PolicyId {
        kind: PolicyKind::NetworkPolicy,
        namespace: "default".to_owned(),
        name: name.to_owned(),
    })
}
