//! Which parameters of a node a verdict goes by.

use std::net::IpAddr;

use tortie_api::names::PolicyId;
use tortie_api::scalar::Protocol;
use tortie_config::{EndpointToHostAction, Sources};
use tortie_engine::input::{
    Configuration, HostEndpoint, HostEndpointKey, Node, WorkloadEndpointKey,
};
use tortie_engine::message::{Policy, Profile};
use tortie_engine::verdict::{
    By, Denial, End, EndpointKey, Flow, Gate, Hop, Kernel, Outcome, Place,
};
use tortie_engine::{Config, Engine, Scope, Update};

const TO_HOST: &str = "DefaultEndpointToHostAction";
const INBOUND: &str = "FailsafeInboundHostPorts";

/// Parameters by the name of their object, the selector for nodes, and what is set.
type Given<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// Two nodes with a host endpoint each; the second one has the label `gpu`.
fn engine(configurations: &[Given<'_>]) -> Engine {
    let mut engine = Engine::new(Config {
        scope: Scope::AllNodes,
        ..Config::for_node("")
    });
    for (node, label) in [("n1", "cpu"), ("n2", "gpu")] {
        let labels = [(label.to_owned(), String::new())].into();
        let known = Node {
            labels,
            ..Node::default()
        };
        engine.on_update(&Update::Node(node.to_owned(), Some(Box::new(known))));
        let endpoint = HostEndpoint {
            interface: "*".to_owned(),
            ..HostEndpoint::default()
        };
        engine.on_update(&Update::HostEndpoint(
            host_key(node),
            Some(Box::new(endpoint)),
        ));
    }
    for (name, selector, parameters) in configurations {
        let parameters = parameters.iter();
        let parameters = parameters.map(|(name, text)| ((*name).to_owned(), (*text).into()));
        let configuration = Configuration {
            node_selector: (*selector).to_owned(),
            created: None,
            parameters: parameters.collect(),
        };
        engine.on_update(&Update::Configuration(
            (*name).to_owned(),
            Some(configuration),
        ));
    }
    engine.on_in_sync();
    engine.flush();
    engine
}

fn host_key(node: &str) -> HostEndpointKey {
    HostEndpointKey {
        node: node.to_owned(),
        name: "all".to_owned(),
    }
}

fn flow(port: u16) -> Flow {
    let end = |address: [u8; 4]| End {
        address: IpAddr::from(address),
        endpoint: None,
    };
    Flow {
        source: end([203, 0, 113, 7]),
        destination: end([192, 0, 2, 1]),
        protocol: Some(Protocol::Tcp),
        source_port: None,
        destination_port: Some(port),
        icmp: None,
    }
}

fn to_host(node: &str, from: Gate) -> Hop {
    Hop {
        node: node.to_owned(),
        from,
        to: Gate::Host,
        all_interfaces: Some(EndpointKey::Host(host_key(node))),
        source: None,
        arrives_for: None,
        translates: false,
    }
}

/// What a node does with packets from its pods to itself, and whether that is set.
fn endpoint_to_host(
    engine: &Engine,
    kernel: Option<&dyn Kernel>,
    node: &str,
) -> (EndpointToHostAction, bool) {
    let pod = EndpointKey::Workload(WorkloadEndpointKey {
        node: node.to_owned(),
        orchestrator: "k8s".to_owned(),
        workload: "ns/pod".to_owned(),
        endpoint: "eth0".to_owned(),
    });
    let mut judge = kernel.map_or_else(|| engine.judge(), |kernel| engine.judge_with(kernel));
    let verdict = judge.pass(&flow(80), &[to_host(node, Gate::Workload(pod))]);
    match verdict.ingress.by {
        By::EndpointToHost {
            setting, is_set, ..
        } => (setting, is_set),
        other => panic!("{other:?}"),
    }
}

/// The failsafe port that lets a packet from elsewhere into a node, if one does.
fn failsafe(engine: &Engine, node: &str, port: u16) -> Option<String> {
    let hop = to_host(node, Gate::Interface(None));
    let verdict = engine.judge().pass(&flow(port), &[hop]);
    if let By::Failsafe { port, .. } = verdict.ingress.by {
        return Some(port);
    }
    assert_eq!(verdict.verdict, Outcome::Deny);
    None
}

#[test]
fn those_that_select_a_node_count_more_than_those_for_all_and_less_than_its_own() {
    use EndpointToHostAction::{Accept, Drop, Return};
    let for_all: Given<'_> = ("default", "", &[(TO_HOST, "Return"), (INBOUND, "tcp:1")]);
    let selected: Given<'_> = ("gpu", "has(gpu)", &[(TO_HOST, "Accept"), (INBOUND, "2")]);
    let own: Given<'_> = ("node.n2", "", &[(TO_HOST, "Drop"), (INBOUND, "tcp:3")]);
    let cases: [(&[Given<'_>], _, _); 4] = [
        (&[], (Drop, false), 22),
        (&[for_all], (Return, true), 1),
        (&[for_all, selected], (Accept, true), 2),
        (&[for_all, selected, own], (Drop, true), 3),
    ];
    for (configurations, action, open) in cases {
        let engine = engine(configurations);
        assert_eq!(endpoint_to_host(&engine, None, "n2"), action);
        let name = format!("tcp:{open}");
        assert_eq!(failsafe(&engine, "n2", open), Some(name));
        for closed in [1, 2, 3, 22].into_iter().filter(|port| *port != open) {
            assert_eq!(failsafe(&engine, "n2", closed), None, "{open}");
        }
        let (elsewhere, open) = match configurations {
            [] => ((Drop, false), 22),
            _ => ((Return, true), 1),
        };
        assert_eq!(endpoint_to_host(&engine, None, "n1"), elsewhere);
        assert!(failsafe(&engine, "n1", open).is_some());
        assert_eq!(failsafe(&engine, "n1", 2), None);
    }
}

#[test]
fn what_the_agent_does_not_take_does_not_count() {
    use EndpointToHostAction::{Drop, Return};
    let bad: Given<'_> = ("node.n1", "", &[(TO_HOST, "Reject"), (INBOUND, "sctp:9")]);
    assert_eq!(endpoint_to_host(&engine(&[bad]), None, "n1"), (Drop, false));
    assert_eq!(failsafe(&engine(&[bad]), "n1", 9), None);
    assert!(failsafe(&engine(&[bad]), "n1", 22).is_some());
    let for_all: Given<'_> = ("default", "", &[("defaultendpointtohostaction", "return")]);
    let both = engine(&[for_all, bad]);
    assert_eq!(endpoint_to_host(&both, None, "n1"), (Return, true));
    let none: Given<'_> = ("default", "", &[(INBOUND, "none")]);
    assert_eq!(failsafe(&engine(&[none]), "n1", 22), None);
}

/// The agent of the first node was started with a parameter.
struct Started(Sources);

impl Kernel for Started {
    fn denial_of_policy(&self, _: &Place<'_>, _: &PolicyId, _: &Policy) -> Option<Denial> {
        None
    }

    fn denial_of_profile(&self, _: &Place<'_>, _: &str, _: &Profile) -> Option<Denial> {
        None
    }

    fn denial_of_endpoint(&self, _: &Place<'_>, _: &EndpointKey, _: &str) -> Option<Denial> {
        None
    }

    fn started_with(&self, node: &str) -> Option<Sources> {
        (node == "n1").then(|| self.0.clone())
    }

    fn hides_behind_header(&self, _: &str) -> bool {
        false
    }
}

#[test]
fn what_the_agent_was_started_with_counts_most() {
    let mut sources = Sources::default();
    sources.file.insert(TO_HOST.to_owned(), "ACCEPT".to_owned());
    let kernel = Started(sources);
    let engine = engine(&[
        ("default", "", &[(TO_HOST, "Drop")]),
        ("node.n1", "", &[(TO_HOST, "Return")]),
    ]);
    let asked = |node| endpoint_to_host(&engine, Some(&kernel), node);
    assert_eq!(asked("n1"), (EndpointToHostAction::Accept, true));
    assert_eq!(asked("n2"), (EndpointToHostAction::Drop, true));
}
