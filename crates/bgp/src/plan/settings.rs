//! What the plan has but once.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use sha2::{Digest, Sha256};
use tortie_api::kinds::bgp_configuration::BindMode;

use super::{MAX_PREFERENCE, Origin, Problems, shown};
use crate::text::InterfacePattern;
use crate::{Family, Inputs};

/// The AS number of nodes that nobody gave one.
pub(crate) const DEFAULT_AS: u32 = 64512;

/// The metric of routes to workloads, unless somebody says another.
const DEFAULT_PRIORITY: u32 = 1024;

/// What BIRD says about its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing.
    None,
    /// Changes of state, and of sessions also routes.
    Info,
    /// Everything.
    Debug,
}

/// The routes of which pools a program programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Programs {
    /// Those of pools with IP-in-IP.
    pub ipip: bool,
    /// Those of pools without encapsulation.
    pub no_encap: bool,
}

pub(super) struct Settings {
    pub(super) router_id: Ipv4Addr,
    pub(super) as_number: u32,
    /// That of nodes without one, in the eyes of a `BGPPeer`.
    pub(super) global_as: u32,
    pub(super) cluster_id: Option<Ipv4Addr>,
    pub(super) log: LogLevel,
    pub(super) ignored_interfaces: Vec<InterfacePattern>,
    pub(super) bird_programs: Programs,
    pub(super) agent_programs: Programs,
}

impl Programs {
    /// What `programClusterRoutes` says.
    fn read(text: &str) -> Option<Self> {
        let (ipip, no_encap) = match text {
            "Enabled" => (true, true),
            "Disabled" => (false, false),
            "EnabledIPIPOnly" => (true, false),
            "EnabledNoEncapOnly" => (false, true),
            _ => return None,
        };
        Some(Self { ipip, no_encap })
    }

    /// The value of `programClusterRoutes`.
    pub(crate) fn word(self) -> &'static str {
        match (self.ipip, self.no_encap) {
            (true, true) => "Enabled",
            (false, false) => "Disabled",
            (true, false) => "EnabledIPIPOnly",
            (false, true) => "EnabledNoEncapOnly",
        }
    }
}

impl Settings {
    pub(super) fn new(inputs: &Inputs, problems: &mut Problems) -> Self {
        let global_as = usable_as(
            inputs.configuration.as_number.map(|number| number.0),
            &configuration("spec.asNumber"),
            problems,
        );
        let global_as = global_as.unwrap_or(DEFAULT_AS);
        let node = inputs.local();
        let name = inputs.identity.node.as_str();
        let own_as = usable_as(
            node.and_then(|node| node.session.as_number),
            &Origin::new("Node", name, "spec.bgp.asNumber"),
            problems,
        );
        if node.is_none() {
            let problem = "there is no such Node, so that there are no addresses for sessions; name it as the datastore does";
            problems.push(Origin::new("Node", name, "metadata.name").problem(problem));
        }
        for (field, text) in node.into_iter().flat_map(|node| &node.session.unreadable) {
            let right = if field.ends_with("ClusterID") {
                "it is written like an IPv4 address, such as 10.0.0.1; the node is no route reflector"
            } else {
                "it is an address with the length of its network, such as 192.0.2.1/24; there are no sessions of that IP version"
            };
            let text = shown(text);
            problems.push(Origin::new("Node", name, *field).problem(format!("{text}: {right}")));
        }
        Self {
            router_id: router_id(inputs, problems),
            as_number: own_as.unwrap_or(global_as),
            global_as,
            cluster_id: node.and_then(|node| node.session.cluster_id),
            log: log_level(inputs),
            ignored_interfaces: ignored_interfaces(inputs, problems),
            bird_programs: bird_programs(inputs, problems),
            agent_programs: agent_programs(inputs, problems),
        }
    }
}

pub(super) fn network(inputs: &Inputs, family: Family) -> Option<IpNet> {
    let address = inputs.local()?.session.addresses.get(family).as_ref()?;
    Some(address.network)
}

pub(super) fn listen_address(inputs: &Inputs, family: Family) -> Option<IpAddr> {
    let is_bound = inputs.configuration.bind_mode == Some(BindMode::NodeIP);
    is_bound.then(|| inputs.local()?.address(family))?
}

pub(super) fn normal_priority(inputs: &Inputs, family: Family, problems: &mut Problems) -> u32 {
    let spec = &inputs.configuration;
    let (field, given) = match family {
        Family::V4 => (
            "spec.ipv4NormalRoutePriority",
            spec.ipv4_normal_route_priority,
        ),
        Family::V6 => (
            "spec.ipv6NormalRoutePriority",
            spec.ipv6_normal_route_priority,
        ),
    };
    let Some(given) = given else {
        return DEFAULT_PRIORITY;
    };
    priority(given).unwrap_or_else(|| {
        problems.push(configuration(field).problem(format!(
            "{given} is not a metric from 1 to {}; {DEFAULT_PRIORITY} is used",
            MAX_PREFERENCE - 1
        )));
        DEFAULT_PRIORITY
    })
}

/// A metric that leaves a preference on both sides.
pub(super) fn priority(value: i64) -> Option<u32> {
    let value = u32::try_from(value).ok()?;
    (1..MAX_PREFERENCE).contains(&value).then_some(value)
}

pub(super) fn configuration(field: &'static str) -> Origin {
    Origin::new("BGPConfiguration", "default", field)
}

fn usable_as(given: Option<u32>, origin: &Origin, problems: &mut Problems) -> Option<u32> {
    if given == Some(0) {
        problems.push(origin.problem(
            "0 is no AS number; they are 1 to 4294967295, and 64512 to 65534 are for own use",
        ));
    }
    given.filter(|number| *number != 0)
}

/// What the text of `CALICO_ROUTER_ID` asks for. A node without an IPv4 address has one of its name, which confd would make only
/// when asked to.
fn router_id(inputs: &Inputs, problems: &mut Problems) -> Ipv4Addr {
    let identity = &inputs.identity;
    let own = || match inputs.local().and_then(|node| node.address(Family::V4)) {
        Some(IpAddr::V4(address)) => address,
        _ => hashed_router_id(&identity.node),
    };
    match identity.router_id.as_deref() {
        None | Some("") => own(),
        Some("hash") => hashed_router_id(&identity.node),
        Some(text) => match text.parse() {
            Ok(address) if address != Ipv4Addr::UNSPECIFIED => address,
            _ => {
                let origin =
                    Origin::new("Environment", tortie_variables::CALICO_ROUTER_ID, "value");
                problems.push(origin.problem(format!(
                    "{} is neither an IPv4 address nor `hash`; {} is used",
                    shown(text),
                    own()
                )));
                own()
            }
        },
    }
}

/// The first bytes of a hash of the name, as an address that is no multicast address.
fn hashed_router_id(node: &str) -> Ipv4Addr {
    let hash = Sha256::digest(node);
    let first = if hash[0] > 223 { hash[0] - 32 } else { hash[0] };
    Ipv4Addr::new(first, hash[1], hash[2], hash[3])
}

fn log_level(inputs: &Inputs) -> LogLevel {
    let own = &inputs.node_configuration.log_severity_screen;
    let severity = if own.is_empty() {
        &inputs.configuration.log_severity_screen
    } else {
        own
    };
    match severity.to_ascii_lowercase().as_str() {
        "debug" => LogLevel::Debug,
        "" | "info" => LogLevel::Info,
        _ => LogLevel::None,
    }
}

fn ignored_interfaces(inputs: &Inputs, problems: &mut Problems) -> Vec<InterfacePattern> {
    let mut patterns = Vec::new();
    for (index, text) in inputs.configuration.ignored_interfaces.iter().enumerate() {
        match InterfacePattern::new(text).filter(|_| text != "*") {
            Some(pattern) => patterns.push(pattern),
            None => problems.push(
                Origin::new(
                    "BGPConfiguration",
                    "default",
                    format!("spec.ignoredInterfaces[{index}]"),
                )
                .problem(format!(
                    "{} is not {}, and not `*` alone; it is left out",
                    shown(text),
                    InterfacePattern::EXPECTED
                )),
            ),
        }
    }
    patterns
}

fn bird_programs(inputs: &Inputs, problems: &mut Problems) -> Programs {
    let default = Programs {
        ipip: false,
        no_encap: true,
    };
    let Some(text) = &inputs.configuration.program_cluster_routes else {
        return default;
    };
    Programs::read(text).unwrap_or_else(|| {
        let origin = configuration("spec.programClusterRoutes");
        problems.push(origin.problem(format!(
            "{} is not Enabled, Disabled, EnabledIPIPOnly or EnabledNoEncapOnly; it counts as EnabledNoEncapOnly",
            shown(text)
        )));
        default
    })
}

fn agent_programs(inputs: &Inputs, problems: &mut Problems) -> Programs {
    let default = Programs {
        ipip: true,
        no_encap: false,
    };
    let [global, own] = &inputs.agent_programs;
    let (name, text) = match (own, global) {
        (Some(text), _) => (format!("node.{}", inputs.identity.node), text),
        (None, Some(text)) => ("default".to_owned(), text),
        (None, None) => return default,
    };
    Programs::read(text).unwrap_or_else(|| {
        let origin = Origin::new("FelixConfiguration", name, "spec.programClusterRoutes");
        problems.push(origin.problem(format!(
            "{} is not Enabled, Disabled, EnabledIPIPOnly or EnabledNoEncapOnly; it counts as EnabledIPIPOnly",
            shown(text)
        )));
        default
    })
}
