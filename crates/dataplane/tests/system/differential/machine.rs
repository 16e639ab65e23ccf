//! A node in a network namespace, with a namespace for each pod that it can have and one that plays everybody else.
//!
//! Whatever comes in by the interface of a pod or of the rest of the world is for it, so that addresses can move from
//! one to another without being taken away and given anew. All hardware addresses are known from the start: host
//! policies may forbid to ask for them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use ipnet::IpNet;
use tortie_config::Config;
use tortie_dataplane::iptables::{Backend, IptablesDriver, Options, Variant};
use tortie_dataplane::nftables::NftablesDriver;
use tortie_dataplane::{Dataplane, Drift, Driver, LocalNetwork, RouteOptions};
use tortie_engine::Message;
use tortie_engine::message::Encapsulation;
use tortie_kernel::link::Mac;
use tortie_kernel::route::{Neighbour, Socket};
use tortie_rules::{Config as RulesConfig, Dataplane as Kind, IpVersion};
use tortie_testkit::net::{External, Namespace, Node, Pod, Prober, Site};

use crate::differential::places::{HOST_ADDRESSES, NODE, UPLINK, all_interfaces, pod_addresses};

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// The node's addresses on the link with the rest of the world, and that of the rest of the world.
const NEAR: [&str; 2] = ["192.0.2.1/24", "fd77::1/64"];
const FAR: [&str; 2] = ["192.0.2.9/24", "fd77::9/64"];

/// How `ip` is told the family, and all addresses of it.
const FAMILIES: [(&str, &str); 2] = [("-4", "0.0.0.0/0"), ("-6", "::/0")];

/// Where pods send everything.
const GATEWAYS: [&str; 2] = ["169.254.1.1", "fe80::ecee:eeff:feee:eeee"];

/// How connections are remembered.
const TRACKING: &str = "/proc/sys/net/netfilter";

/// What is under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    Nftables,
    Iptables(Variant),
}

/// The node, and everybody that it can talk to.
pub(crate) struct Machine {
    node: Node,
    plane: Plane,
    dataplane: Dataplane,
    network: LocalNetwork,
    config: Arc<RulesConfig>,
    pub(crate) prober: Prober,
    pub(crate) host: Site,
    pub(crate) outside: Site,
    pub(crate) pods: BTreeMap<String, Site>,
    _namespaces: Vec<Pod>,
    _external: External,
}

impl Plane {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables(Variant::Nft) => "iptables-nft",
            Self::Iptables(Variant::Legacy) => "iptables-legacy",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Nftables => Kind::Nftables,
            Self::Iptables(_) => Kind::Iptables,
        }
    }

    /// What follows for its rules, as an agent has it.
    fn rules(self, config: &Config) -> Arc<RulesConfig> {
        let rules = RulesConfig::new(config, self.kind(), Encapsulation::default());
        Arc::new(rules.expect("enough marks"))
    }

    fn driver(self, ip_version: IpVersion) -> Box<dyn Driver> {
        match self {
            Self::Nftables => Box::new(NftablesDriver::open(ip_version).expect("a socket")),
            Self::Iptables(variant) => {
                let options = Options {
                    backend: Backend::Only(variant),
                    ..Options::new(ip_version)
                };
                Box::new(IptablesDriver::new(&options).expect("the programs of iptables"))
            }
        }
    }

    /// The program that shows the rules.
    fn listings(self) -> &'static [&'static str] {
        match self {
            Self::Nftables => &["nft list ruleset"],
            Self::Iptables(Variant::Nft) => {
                &["iptables-nft-save", "ip6tables-nft-save", "ipset save"]
            }
            Self::Iptables(Variant::Legacy) => &[
                "iptables-legacy-save",
                "ip6tables-legacy-save",
                "ipset save",
            ],
        }
    }
}

impl Machine {
    pub(crate) fn new(plane: Plane, config: &Config) -> Self {
        let mut node = Node::new().expect("a node");
        let mut pods = Vec::new();
        for (number, interface) in all_interfaces().enumerate() {
            // Its own addresses only give it routes; packets have others.
            let own = [
                format!("172.31.0.{}", number + 1),
                format!("fd99::{}", number + 1),
            ];
            let own = own.map(|text| text.parse().expect("an address"));
            let pod = node.add_pod(&interface, &own).expect("a pod");
            let gateways = GATEWAYS.map(|gateway| (gateway.to_owned(), Mac::CALICO));
            receive_everything(&pod.namespace, &gateways);
            pods.push(pod);
        }
        let nets = |texts: &[&str]| -> Vec<IpNet> {
            let texts = texts.iter();
            texts.map(|text| text.parse().expect("a network")).collect()
        };
        let mut near = nets(&NEAR);
        near.extend(
            HOST_ADDRESSES.map(|text| IpNet::from(text.parse::<IpAddr>().expect("an address"))),
        );
        let external = node
            .add_external(UPLINK, &near, &nets(&FAR))
            .expect("a link");
        join_uplink(&node, &external);
        name_pods(&mut node, &pods);

        let namespace = node.namespace().clone();
        let drivers = || {
            VERSIONS
                .map(|version| (version, plane.driver(version)))
                .into()
        };
        let kind = plane.kind();
        let config = plane.rules(config);
        let open = || {
            let options = RouteOptions {
                protocol: 80,
                metrics: [1024, 1024],
                sources: [None, None],
                ipv6: true,
                remove_foreign: true,
            };
            let network = LocalNetwork::open(options).expect("a socket");
            (Dataplane::new(&config, kind, drivers(), NODE), network)
        };
        let (mut dataplane, mut network) = namespace.run(open).expect("the node's namespace");
        dataplane.set_interfaces(network.interfaces().expect("a listing"));

        let mut prober = Prober::new();
        let host = prober.add_site(&namespace);
        let outside = prober.add_site(&external.namespace);
        let sites = pods
            .iter()
            .map(|pod| (pod.interface.clone(), prober.add_site(&pod.namespace)));
        Self {
            pods: sites.collect(),
            node,
            plane,
            dataplane,
            network,
            config,
            prober,
            host,
            outside,
            _namespaces: pods,
            _external: external,
        }
    }

    /// Renders with other parameters from now on.
    pub(crate) fn set_config(&mut self, config: &Config) {
        let config = self.plane.rules(config);
        if self.config != config {
            self.dataplane.set_config(&config);
            self.config = config;
        }
    }

    /// Brings what the engine said into the kernel.
    pub(crate) fn apply(&mut self, messages: Vec<Message>) -> Result<(), String> {
        let namespace = self.node.namespace().clone();
        let work = || {
            for message in messages {
                self.dataplane.on_message(message);
            }
            let applied = self.dataplane.apply();
            applied.map(|_| ()).map_err(|error| error.to_string())
        };
        namespace.run(work).expect("the node's namespace")
    }

    /// Brings the routes to pods into the kernel.
    pub(crate) fn route(&mut self) -> Result<(), String> {
        let namespace = self.node.namespace().clone();
        let work = || {
            forget_connections();
            let dataplane = &mut self.dataplane;
            self.network.apply(dataplane.desired())
        };
        let refused = namespace.run(work).expect("the node's namespace");
        match refused.map_err(|error| error.to_string())?.as_slice() {
            [] => Ok(()),
            problems => Err(format!("routes: {problems:?}")),
        }
    }

    /// What in the kernel is not as it should be.
    pub(crate) fn compare(&mut self) -> Vec<Drift> {
        let namespace = self.node.namespace().clone();
        let compared = namespace.run(|| self.dataplane.compare());
        compared.expect("the node's namespace").expect("a listing")
    }

    /// The rules, sets and routes as the kernel's tools show them.
    pub(crate) fn listing(&self) -> String {
        let routes = ["ip route", "ip -6 route"].iter();
        let programs = self.plane.listings().iter().chain(routes);
        let listings = programs.map(|program| {
            let mut words = program.split(' ');
            let mut command = Command::new(words.next().unwrap_or_default());
            command.args(words);
            let output = self.node.namespace().run(|| command.output());
            let output = output.expect("the node's namespace").expect("the program");
            format!("=== {program}\n{}", String::from_utf8_lossy(&output.stdout))
        });
        listings.collect()
    }
}

/// Every packet begins a connection: those that were seen are forgotten at once.
///
/// The kernel shows these settings once a rule asks for the state of connections.
fn forget_connections() {
    let Ok(settings) = fs::read_dir(TRACKING) else {
        return;
    };
    for setting in settings.flatten() {
        let name = setting.file_name();
        let name = name.to_string_lossy();
        // Right checksums of UDP-Lite are wrong to the kernel, which takes them for those of UDP.
        let is_checksum = name == "nf_conntrack_checksum";
        if is_checksum || name.contains("_timeout") && !name.contains("frag6") {
            fs::write(setting.path(), "0").expect("a setting of the namespace");
        }
    }
}

/// All that comes in is for whoever is in the namespace, which knows its gateways.
fn receive_everything(namespace: &Namespace, gateways: &[(String, Mac)]) {
    for (family, everything) in FAMILIES {
        let lines = [
            "rule add iif eth0 lookup 100".to_owned(),
            format!("route add local {everything} dev lo table 100"),
        ];
        ip(namespace, Some(family), &lines);
    }
    let neighbours = gateways
        .iter()
        .map(|(address, mac)| neighbour(address, *mac));
    ip(namespace, None, &neighbours.collect::<Vec<_>>());
}

/// The node and the rest of the world know each other.
fn join_uplink(node: &Node, external: &External) {
    let mac = |namespace: &Namespace| -> Mac {
        let find = || Socket::open().and_then(|mut socket| socket.link(UPLINK));
        let found = namespace
            .run(find)
            .expect("a namespace")
            .expect("a listing");
        found
            .and_then(|link| link.mac)
            .expect("an interface with a hardware address")
    };
    let (here, there) = (mac(node.namespace()), mac(&external.namespace));
    let without_length = |text: &str| text.split('/').next().unwrap_or_default().to_owned();
    let near = NEAR.map(|text| (without_length(text), here));
    receive_everything(&external.namespace, &near);
    let far = FAR.map(without_length);
    let mut lines: Vec<String> = far
        .iter()
        .map(|address| neighbour(address, there))
        .collect();
    for ((_, everything), gateway) in FAMILIES.iter().zip(&far) {
        lines.push(format!(
            "route add {everything} via {gateway} dev {UPLINK} metric 1"
        ));
    }
    ip(node.namespace(), None, &lines);
}

/// The node knows the hardware address of each pod, whatever addresses it has.
fn name_pods(node: &mut Node, pods: &[Pod]) {
    let add = |batch: &mut tortie_kernel::route::Batch| {
        for pod in pods {
            for address in pod_addresses() {
                batch.set_neighbour(&Neighbour {
                    device: pod.index,
                    address,
                    mac: pod.mac,
                });
            }
        }
    };
    node.socket().execute(add).expect("neighbours");
}

fn neighbour(address: &str, mac: Mac) -> String {
    format!("neigh replace {address} lladdr {mac} dev eth0 nud permanent")
}

/// Runs commands of `ip`, for a family or for that of each address.
fn ip(namespace: &Namespace, family: Option<&str>, lines: &[String]) {
    let run = || {
        let mut child = Command::new("ip")
            .args(family.into_iter().chain(["-batch", "-"]))
            .stdin(Stdio::piped())
            .spawn()?;
        let text = lines.join("\n") + "\n";
        child
            .stdin
            .take()
            .map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()))?;
        child.wait()
    };
    let status = namespace.run(run).expect("a namespace").expect("ip runs");
    assert!(status.success(), "ip -batch of {lines:?}");
}
