//! Kubernetes' own policies, by what Kubernetes says of them: which pods they select, and which packets they allow.

use k8s_openapi::api::networking::v1::{NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tortie_api::k8s::{
    ClusterNetworkPolicyPorts, ClusterNetworkPolicyProtocol, ClusterNetworkPolicySpec,
    NamespacedPods,
};
use tortie_api::rule::{Action, PolicyType};
use tortie_api::scalar::Protocol;
use tortie_engine::verdict::Flow;

use super::Evaluator;
use super::party::{Labels, NAMESPACE, Party, net, same};

/// The peer of one rule: who it selects at an address, or that it has the address in a range.
enum Selected<'a> {
    Parties(Vec<&'a Party<'a>>),
    Range(bool),
}

// === Network policies ===

/// Ingress is always covered, and egress where there are rules for it, if the policy does not say.
pub(super) fn covers(spec: &NetworkPolicySpec, direction: PolicyType) -> bool {
    let types = spec.policy_types.as_deref().unwrap_or_default();
    match direction {
        PolicyType::Ingress => types.is_empty() || types.iter().any(|is| is == "Ingress"),
        PolicyType::Egress if types.is_empty() => {
            spec.egress.as_ref().is_some_and(|rules| !rules.is_empty())
        }
        PolicyType::Egress => types.iter().any(|is| is == "Egress"),
    }
}

pub(super) fn is_selected(spec: &NetworkPolicySpec, namespace: &str, party: &Party<'_>) -> bool {
    let selector = spec.pod_selector.as_ref();
    party.is_pod()
        && party.is_in(namespace)
        && selector.is_none_or(|selector| holds(selector, &party.labels))
}

impl Evaluator<'_> {
    /// ANY rule allows the packet: ANY of its peers and ANY of its ports match.
    pub(super) fn kubernetes_allows(
        &self,
        spec: &NetworkPolicySpec,
        namespace: &str,
        flow: &Flow,
        direction: PolicyType,
    ) -> bool {
        let ingress = spec
            .ingress
            .iter()
            .flatten()
            .map(|rule| (&rule.from, &rule.ports));
        let egress = spec
            .egress
            .iter()
            .flatten()
            .map(|rule| (&rule.to, &rule.ports));
        let mut rules: Box<dyn Iterator<Item = _>> = match direction {
            PolicyType::Ingress => Box::new(ingress),
            PolicyType::Egress => Box::new(egress),
        };
        rules.any(|(peers, ports)| {
            let peers = peers.as_deref().unwrap_or_default();
            let ports = ports.as_deref().unwrap_or_default();
            let matches = |peer: Selected<'_>| {
                self.reaches(&peer, flow, direction, |names| {
                    // No ports are all ports.
                    ports.is_empty() || ports.iter().any(|port| is_port(port, flow, names))
                })
            };
            // No peers are all peers.
            (peers.is_empty() && matches(Selected::Range(true)))
                || peers
                    .iter()
                    .any(|peer| matches(self.peer(peer, namespace, flow, direction)))
        })
    }

    /// Either a range of addresses, or ALL of what is said about pods and their namespaces.
    fn peer(
        &self,
        peer: &NetworkPolicyPeer,
        namespace: &str,
        flow: &Flow,
        direction: PolicyType,
    ) -> Selected<'_> {
        let address = far_end(flow, direction);
        if let Some(block) = &peer.ip_block {
            let excepted = block
                .except
                .iter()
                .flatten()
                .any(|text| net(text).contains(&address));
            return Selected::Range(net(&block.cidr).contains(&address) && !excepted);
        }
        let parties = self.parties.iter().filter(|party| {
            let is_in_namespace = match &peer.namespace_selector {
                None => party.is_in(namespace),
                Some(selector) => holds(selector, &party.namespace_labels),
            };
            let pods = peer.pod_selector.as_ref();
            party.has(address)
                && party.is_pod()
                && is_in_namespace
                && pods.is_none_or(|selector| holds(selector, &party.labels))
        });
        Selected::Parties(parties.collect())
    }

    /// Whether the peer is there, and the ports are right. Names of ports are those of the destination: on the way
    /// out of a pod that is the peer.
    fn reaches(
        &self,
        peer: &Selected<'_>,
        flow: &Flow,
        direction: PolicyType,
        ports: impl Fn(&[&Party<'_>]) -> bool,
    ) -> bool {
        let there = self
            .parties
            .iter()
            .filter(|party| party.has(flow.destination.address));
        let there: Vec<&Party<'_>> = there.collect();
        match (peer, direction) {
            (Selected::Range(false), _) => false,
            (Selected::Parties(parties), _) if parties.is_empty() => false,
            (Selected::Parties(parties), PolicyType::Egress) => ports(parties),
            _ => ports(&there),
        }
    }
}

fn is_port(port: &NetworkPolicyPort, flow: &Flow, there: &[&Party<'_>]) -> bool {
    let wanted: Protocol = port
        .protocol
        .as_deref()
        .unwrap_or("TCP")
        .parse()
        .expect("any text parses");
    let is_number = match &port.port {
        None => true,
        Some(IntOrString::Int(first)) => {
            let last = port.end_port.unwrap_or(*first);
            flow.destination_port
                .is_some_and(|number| (*first..=last).contains(&number.into()))
        }
        Some(IntOrString::String(name)) => is_named(name, flow, there),
    };
    same(flow.protocol.as_ref(), &wanted) && is_number
}

fn is_named(name: &str, flow: &Flow, there: &[&Party<'_>]) -> bool {
    let protocol = flow.protocol.as_ref().and_then(Protocol::number);
    let names = |number| {
        there
            .iter()
            .any(|party| party.names_port(name, protocol, number))
    };
    flow.destination_port.is_some_and(names)
}

// === Cluster network policies ===

pub(super) fn is_subject(spec: &ClusterNetworkPolicySpec, party: &Party<'_>) -> bool {
    let subject = &spec.subject;
    party.is_pod()
        && subject
            .namespaces
            .as_ref()
            .is_none_or(|namespaces| holds(namespaces, &party.namespace_labels))
        && subject
            .pods
            .as_ref()
            .is_none_or(|pods| is_one_of(pods, party))
}

impl Evaluator<'_> {
    /// The action of the FIRST rule with ANY of its peers and ANY of its protocols.
    pub(super) fn cluster_action(
        &self,
        spec: &ClusterNetworkPolicySpec,
        flow: &Flow,
        direction: PolicyType,
    ) -> Option<Action> {
        let address = far_end(flow, direction);
        let selected = |namespaces: Option<&LabelSelector>, pods: Option<&NamespacedPods>| {
            let parties = self.parties.iter().filter(|party| {
                party.has(address)
                    && namespaces.is_none_or(|selector| is_there(selector, party))
                    && pods.is_none_or(|pods| is_one_of(pods, party))
            });
            Selected::Parties(parties.collect())
        };
        let matches = |peer: &Selected<'_>, protocols: &[ClusterNetworkPolicyProtocol]| {
            self.reaches(peer, flow, direction, |there| {
                protocols.is_empty()
                    || protocols
                        .iter()
                        .any(|protocol| is_protocol(protocol, flow, there))
            })
        };
        let found = match direction {
            PolicyType::Ingress => spec.ingress.iter().find_map(|rule| {
                let mut peers = rule
                    .from
                    .iter()
                    .map(|peer| selected(peer.namespaces.as_ref(), peer.pods.as_ref()));
                peers
                    .any(|peer| matches(&peer, &rule.protocols))
                    .then_some(&rule.action)
            }),
            PolicyType::Egress => spec.egress.iter().find_map(|rule| {
                let mut peers = rule.to.iter().map(|peer| match &peer.networks[..] {
                    [] => selected(peer.namespaces.as_ref(), peer.pods.as_ref()),
                    networks => {
                        Selected::Range(networks.iter().any(|text| net(text).contains(&address)))
                    }
                });
                peers
                    .any(|peer| matches(&peer, &rule.protocols))
                    .then_some(&rule.action)
            }),
        };
        found.map(|action| match action.as_str() {
            "Accept" => Action::Allow,
            "Pass" => Action::Pass,
            _ => Action::Deny,
        })
    }
}

fn is_one_of(pods: &NamespacedPods, party: &Party<'_>) -> bool {
    party.is_pod()
        && holds(&pods.namespace_selector, &party.namespace_labels)
        && holds(&pods.pod_selector, &party.labels)
}

/// Kubernetes means the pods of these namespaces. Calico takes in all else that has labels of such a namespace; and
/// what is in no namespace has none, which is enough for a selector that only asks for the absence of labels.
fn is_there(selector: &LabelSelector, party: &Party<'_>) -> bool {
    let is_empty = selector.match_labels.iter().flatten().count() == 0
        && selector.match_expressions.iter().flatten().count() == 0;
    holds(selector, &party.namespace_labels) && (!is_empty || party.labels.contains_key(NAMESPACE))
}

fn is_protocol(wanted: &ClusterNetworkPolicyProtocol, flow: &Flow, there: &[&Party<'_>]) -> bool {
    let is = |protocol: Protocol, ports: &ClusterNetworkPolicyPorts| {
        let is_port = ports.destination_port.as_ref().is_none_or(|port| {
            let (first, last) = port
                .range
                .as_ref()
                .map_or((port.number, port.number), |range| (range.start, range.end));
            flow.destination_port
                .is_some_and(|number| (first..=last).contains(&number.into()))
        });
        same(flow.protocol.as_ref(), &protocol) && is_port
    };
    let by_number = [
        (Protocol::Tcp, &wanted.tcp),
        (Protocol::Udp, &wanted.udp),
        (Protocol::Sctp, &wanted.sctp),
    ];
    by_number
        .into_iter()
        .any(|(protocol, ports)| ports.as_ref().is_some_and(|ports| is(protocol, ports)))
        || (!wanted.destination_named_port.is_empty()
            && is_named(&wanted.destination_named_port, flow, there))
}

// === Both ===

/// The address of the peer.
fn far_end(flow: &Flow, direction: PolicyType) -> std::net::IpAddr {
    match direction {
        PolicyType::Ingress => flow.source.address,
        PolicyType::Egress => flow.destination.address,
    }
}

/// ALL labels and ALL expressions hold.
fn holds(selector: &LabelSelector, labels: &Labels) -> bool {
    let mut equal = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|expression| {
            let value = labels.get(&expression.key);
            let is_in = || {
                value.is_some_and(|value| expression.values.iter().flatten().any(|is| is == value))
            };
            match expression.operator.as_str() {
                "In" => is_in(),
                "NotIn" => !is_in(),
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}
