//! Kubernetes' own policies, and slices of what is behind services.

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::k8s::{
    ClusterNetworkPolicy, ClusterNetworkPolicyEgressPeer, ClusterNetworkPolicyEgressRule,
    ClusterNetworkPolicyIngressPeer, ClusterNetworkPolicyIngressRule, ClusterNetworkPolicyPort,
    ClusterNetworkPolicyPortRange, ClusterNetworkPolicyPorts, ClusterNetworkPolicyProtocol,
    ClusterNetworkPolicySpec, ClusterNetworkPolicySubject, NamespacedPods,
};

use super::words::{NAMESPACES, NETS4, NETS6, POLICIES, PORT_NAMES, PORTS, SERVICES};
use super::{metadata, some};
use crate::verdict::world::Object;

const POD_KEYS: [&str; 2] = ["app", "role"];
const NAMESPACE_KEYS: [&str; 2] = ["env", "team"];
const VALUES: [&str; 3] = ["a", "ab", "b"];

pub(super) fn network_policy() -> impl Strategy<Value = Object> {
    let parts = (some(&NAMESPACES), some(&POLICIES), spec());
    parts.prop_map(|(namespace, name, spec)| {
        Object::KubePolicy(NetworkPolicy {
            metadata: metadata(&namespace, &name),
            spec: Some(spec),
        })
    })
}

pub(super) fn spec() -> impl Strategy<Value = NetworkPolicySpec> {
    let types = select(vec![
        None,
        Some(vec![]),
        Some(vec!["Ingress"]),
        Some(vec!["Egress"]),
        Some(vec!["Egress", "Ingress"]),
    ]);
    let rule = || {
        (
            prop::option::of(vec(peer(), 0..3)),
            prop::option::of(vec(port(), 0..3)),
        )
    };
    let rules = || prop::option::of(vec(rule(), 0..3));
    let parts = (
        prop::option::of(selector(&POD_KEYS)),
        types,
        rules(),
        rules(),
    );
    parts.prop_map(|(pod_selector, types, ingress, egress)| NetworkPolicySpec {
        pod_selector,
        policy_types: types.map(|types| types.into_iter().map(str::to_owned).collect()),
        ingress: ingress.map(|rules| {
            rules
                .into_iter()
                .map(|(from, ports)| NetworkPolicyIngressRule { from, ports })
                .collect()
        }),
        egress: egress.map(|rules| {
            rules
                .into_iter()
                .map(|(to, ports)| NetworkPolicyEgressRule { to, ports })
                .collect()
        }),
    })
}

/// At most two conditions, in either form.
fn selector(keys: &'static [&'static str]) -> impl Strategy<Value = LabelSelector> + Clone {
    let labels = btree_map(some(keys), some(&VALUES), 0..2);
    let operator = select(vec!["In", "NotIn", "Exists", "DoesNotExist"]);
    let expression =
        (some(keys), operator, vec(some(&VALUES), 1..3)).prop_map(|(key, operator, values)| {
            let takes_values = operator.ends_with("In");
            LabelSelectorRequirement {
                key,
                operator: operator.to_owned(),
                values: takes_values.then_some(values),
            }
        });
    let some_expressions = prop::option::weighted(0.3, vec(expression, 0..2));
    (prop::option::of(labels), some_expressions).prop_map(|(match_labels, match_expressions)| {
        LabelSelector {
            match_labels,
            match_expressions,
        }
    })
}

fn peer() -> impl Strategy<Value = NetworkPolicyPeer> {
    let pods = prop::option::of(selector(&POD_KEYS));
    let namespaces = prop::option::of(selector(&NAMESPACE_KEYS));
    let selected = (pods, namespaces).prop_map(|(pods, namespaces)| {
        // One of them must be there.
        let pod_selector = pods.or_else(|| namespaces.is_none().then(LabelSelector::default));
        NetworkPolicyPeer {
            pod_selector,
            namespace_selector: namespaces,
            ip_block: None,
        }
    });
    let block = |nets: &'static [&'static str], excepted: &'static [&'static str]| {
        (select(nets), vec(some(excepted), 0..3)).prop_map(|(cidr, except)| NetworkPolicyPeer {
            ip_block: Some(IPBlock {
                cidr: cidr.to_owned(),
                except: Some(except).filter(|except| !except.is_empty()),
            }),
            ..NetworkPolicyPeer::default()
        })
    };
    prop_oneof![
        5 => selected,
        2 => block(&["0.0.0.0/0", "10.0.0.0/8", "10.0.0.1/29"], &["10.0.0.0/30", "10.0.0.2/32", "1.1.1.1/32"]),
        1 => block(&["::/0", "fd00::/16"], &["fd00::2/128", "fd00::/126"]),
    ]
}

fn port() -> impl Strategy<Value = NetworkPolicyPort> {
    let protocol = select(vec![None, Some("TCP"), Some("UDP"), Some("SCTP")]);
    let number = (
        select(PORTS.to_vec()),
        prop::option::weighted(0.3, 0..400_i32),
    )
        .prop_map(|(port, more)| {
            let port = i32::from(port);
            (Some(IntOrString::Int(port)), more.map(|more| port + more))
        });
    let port = prop_oneof![
        1 => Just((None, None)),
        3 => number,
        2 => some(&PORT_NAMES).prop_map(|name| (Some(IntOrString::String(name)), None)),
    ];
    (protocol, port).prop_map(|(protocol, (port, end_port))| NetworkPolicyPort {
        protocol: protocol.map(str::to_owned),
        port,
        end_port,
    })
}

pub(super) fn cluster_network_policy() -> impl Strategy<Value = Object> {
    let subject =
        selected().prop_map(|(namespaces, pods)| ClusterNetworkPolicySubject { namespaces, pods });
    let action = || some(&["Accept", "Deny", "Pass"]);
    let protocols = || vec(protocol(), 0..3);
    let ingress_peer = selected()
        .prop_map(|(namespaces, pods)| ClusterNetworkPolicyIngressPeer { namespaces, pods });
    let egress_peer = prop_oneof![
        2 => selected().prop_map(|(namespaces, pods)| ClusterNetworkPolicyEgressPeer {
            namespaces,
            pods,
            networks: Vec::new(),
        }),
        1 => prop_oneof![vec(some(&NETS4[..5]), 1..3), vec(some(&NETS6[..3]), 1..3)]
            .prop_map(|networks| ClusterNetworkPolicyEgressPeer { networks, ..ClusterNetworkPolicyEgressPeer::default() }),
    ];
    let ingress =
        (action(), vec(ingress_peer, 1..3), protocols()).prop_map(|(action, from, protocols)| {
            ClusterNetworkPolicyIngressRule {
                name: String::new(),
                action,
                from,
                protocols,
            }
        });
    let egress =
        (action(), vec(egress_peer, 1..3), protocols()).prop_map(|(action, to, protocols)| {
            ClusterNetworkPolicyEgressRule {
                name: "named".to_owned(),
                action,
                to,
                protocols,
            }
        });
    let parts = (
        some(&POLICIES),
        some(&["Admin", "Baseline"]),
        0..3_i32,
        subject,
        vec(ingress, 0..3),
        vec(egress, 0..3),
    );
    parts.prop_map(|(name, tier, priority, subject, ingress, egress)| {
        Object::ClusterPolicy(ClusterNetworkPolicy {
            metadata: metadata("", &name),
            spec: ClusterNetworkPolicySpec {
                tier,
                priority,
                subject,
                ingress,
                egress,
            },
        })
    })
}

/// Namespaces, or pods: exactly one of them.
fn selected() -> impl Strategy<Value = (Option<LabelSelector>, Option<NamespacedPods>)> {
    let pods = (selector(&NAMESPACE_KEYS), selector(&POD_KEYS)).prop_map(
        |(namespace_selector, pod_selector)| NamespacedPods {
            namespace_selector,
            pod_selector,
        },
    );
    prop_oneof![
        selector(&NAMESPACE_KEYS).prop_map(|namespaces| (Some(namespaces), None)),
        pods.prop_map(|pods| (None, Some(pods))),
    ]
}

fn protocol() -> impl Strategy<Value = ClusterNetworkPolicyProtocol> {
    let number = select(PORTS.to_vec()).prop_map(|port| ClusterNetworkPolicyPort {
        number: port.into(),
        range: None,
    });
    let range =
        (select(PORTS.to_vec()), 0..400_i32).prop_map(|(port, more)| ClusterNetworkPolicyPort {
            number: 0,
            range: Some(ClusterNetworkPolicyPortRange {
                start: port.into(),
                end: i32::from(port) + more,
            }),
        });
    let port = prop::option::weighted(0.8, prop_oneof![number, range]);
    let by_number = (0..3_u8, port).prop_map(|(which, destination_port)| {
        let ports = |n| {
            (which == n).then(|| ClusterNetworkPolicyPorts {
                destination_port: destination_port.clone(),
            })
        };
        ClusterNetworkPolicyProtocol {
            tcp: ports(0),
            udp: ports(1),
            sctp: ports(2),
            ..ClusterNetworkPolicyProtocol::default()
        }
    });
    let by_name =
        some(&PORT_NAMES).prop_map(|destination_named_port| ClusterNetworkPolicyProtocol {
            destination_named_port,
            ..ClusterNetworkPolicyProtocol::default()
        });
    prop_oneof![3 => by_number, 1 => by_name]
}

/// A slice of one IP version; several may belong to one service, and some ports have no number.
pub(super) fn slice() -> impl Strategy<Value = Object> {
    let port = (
        select(vec![None, Some("TCP"), Some("UDP"), Some("SCTP")]),
        prop::option::weighted(0.9, select(PORTS.to_vec())),
    );
    let port = port.prop_map(|(protocol, port)| EndpointPort {
        protocol: protocol.map(str::to_owned),
        port: port.map(i32::from),
        ..EndpointPort::default()
    });
    let names = (
        some(&NAMESPACES),
        some(&["slice1", "slice2", "slice3"]),
        prop::option::weighted(0.95, some(&SERVICES)),
    );
    let parts = (
        names,
        prop::bool::weighted(0.3),
        vec(1..9_u8, 0..4),
        vec(port, 0..3),
    );
    parts.prop_map(|((namespace, name, service), is_v6, addresses, ports)| {
        let address = |n: u8| {
            if is_v6 {
                format!("fd00::{n}")
            } else {
                format!("10.0.0.{n}")
            }
        };
        let labels = service.map(|service| ("kubernetes.io/service-name".to_owned(), service));
        Object::Slice(EndpointSlice {
            metadata: ObjectMeta {
                labels: Some(labels.into_iter().collect()),
                ..metadata(&namespace, &name)
            },
            address_type: if is_v6 { "IPv6" } else { "IPv4" }.to_owned(),
            endpoints: Some(
                addresses
                    .into_iter()
                    .map(|n| Endpoint {
                        addresses: vec![address(n)],
                        ..Endpoint::default()
                    })
                    .collect(),
            ),
            ports: Some(ports),
        })
    })
}
