//! `networking.k8s.io` NetworkPolicy as a Calico NetworkPolicy of the default tier.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy as KubePolicy, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec as KubePolicySpec,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::ports::ProtocolPorts;
use super::{Converted, derived_metadata, selector};
use crate::kinds::NetworkPolicy;
use crate::kinds::network_policy::NetworkPolicySpec;
use crate::kinds::rule::{Action, EntityRule, PolicyType, Rule};
use crate::net;
use crate::problem::{Path, Problems};
use crate::scalar::Port;

/// The place of all converted policies in the default tier.
const ORDER: f64 = 1000.0;

/// The protocol of a port that names none.
const DEFAULT_PROTOCOL: &str = "TCP";

/// Converts a policy. Rules that cannot be converted are left out, which allows less.
pub fn network_policy(policy: &KubePolicy) -> Converted<NetworkPolicy> {
    Converted::from_fn(|problems| {
        let meta = &policy.metadata;
        let mut metadata = derived_metadata(meta, meta.name.clone().unwrap_or_default(), problems)?;
        metadata.namespace = meta.namespace.clone().unwrap_or_default();
        metadata.resource_version = meta.resource_version.clone().unwrap_or_default();

        let root = Path::ROOT;
        let at = root.field("spec");
        let empty = KubePolicySpec::default();
        let spec = policy.spec.as_ref().unwrap_or(&empty);
        let mut ingress = Vec::new();
        for (index, rule) in spec.ingress.iter().flatten().enumerate() {
            let at = at.field("ingress");
            if let Some(ports) = ports(&at.index(index), rule.ports.as_deref(), problems) {
                push_rules(
                    &mut ingress,
                    ports,
                    rule.from.as_deref(),
                    PolicyType::Ingress,
                );
            }
        }
        let mut egress = Vec::new();
        for (index, rule) in spec.egress.iter().flatten().enumerate() {
            let at = at.field("egress");
            if let Some(ports) = ports(&at.index(index), rule.ports.as_deref(), problems) {
                push_rules(&mut egress, ports, rule.to.as_deref(), PolicyType::Egress);
            }
        }
        let spec = NetworkPolicySpec {
            tier: "default".into(),
            order: Some(ORDER),
            selector: selector::of_pods(spec.pod_selector.as_ref()),
            types: types(spec.policy_types.as_deref().unwrap_or_default()),
            ingress,
            egress,
            ..NetworkPolicySpec::default()
        };
        Some(NetworkPolicy {
            metadata,
            spec,
            ..NetworkPolicy::default()
        })
    })
}

/// The directions in fixed order; a policy that names none covers ingress.
fn types(names: &[String]) -> Vec<PolicyType> {
    let has = |name: &str| names.iter().any(|given| given == name);
    match (has("Ingress"), has("Egress")) {
        (true, true) => vec![PolicyType::Ingress, PolicyType::Egress],
        (false, true) => vec![PolicyType::Egress],
        (_, false) => vec![PolicyType::Ingress],
    }
}

/// One rule for each protocol and peer.
fn push_rules(
    rules: &mut Vec<Rule>,
    ports: ProtocolPorts,
    peers: Option<&[NetworkPolicyPeer]>,
    direction: PolicyType,
) {
    let anyone = [NetworkPolicyPeer::default()];
    let peers = peers.filter(|peers| !peers.is_empty());
    for (protocol, ports) in ports.into_rules() {
        for peer in peers.unwrap_or(&anyone) {
            let peer = if peers.is_some() {
                entity(peer)
            } else {
                EntityRule::default()
            };
            let rule = Rule {
                action: Action::Allow,
                protocol: protocol.clone(),
                ..Rule::default()
            };
            let ports = ports.clone();
            rules.push(match direction {
                PolicyType::Ingress => Rule {
                    source: peer,
                    destination: EntityRule {
                        ports,
                        ..EntityRule::default()
                    },
                    ..rule
                },
                PolicyType::Egress => Rule {
                    destination: EntityRule { ports, ..peer },
                    ..rule
                },
            });
        }
    }
}

/// The conditions of a peer. An unreadable CIDR leaves none, and an unreadable exception none after it: see the
/// invariants of [`super`].
fn entity(peer: &NetworkPolicyPeer) -> EntityRule {
    let Some(block) = &peer.ip_block else {
        return EntityRule {
            selector: selector::of_pods(peer.pod_selector.as_ref()),
            namespace_selector: selector::of_namespaces(peer.namespace_selector.as_ref()),
            ..EntityRule::default()
        };
    };
    let Some(net) = network(&block.cidr) else {
        return EntityRule::default();
    };
    let not_nets = block
        .except
        .iter()
        .flatten()
        .map_while(|cidr| network(cidr))
        .collect();
    EntityRule {
        nets: vec![net],
        not_nets,
        ..EntityRule::default()
    }
}

/// The CIDR with the bits beyond the prefix cleared.
fn network(cidr: &str) -> Option<String> {
    net::parse_cidr(cidr).map(|cidr| cidr.network().to_string())
}

/// The ports of a rule, or nothing if one of them cannot be read.
fn ports(
    at: &Path<'_>,
    ports: Option<&[NetworkPolicyPort]>,
    problems: &mut Problems,
) -> Option<ProtocolPorts> {
    let ports = ports.unwrap_or_default();
    if ports.is_empty() {
        return Some(ProtocolPorts::any());
    }
    let at = at.field("ports");
    let mut gathered = ProtocolPorts::default();
    for (index, port) in ports.iter().enumerate() {
        let number = match &port.port {
            None => None,
            Some(number) => Some(parse_port(
                &at.index(index),
                number,
                port.end_port,
                problems,
            )?),
        };
        gathered.add(
            Some(port.protocol.as_deref().unwrap_or(DEFAULT_PROTOCOL)),
            number,
        );
    }
    Some(gathered)
}

fn parse_port(
    at: &Path<'_>,
    port: &IntOrString,
    end_port: Option<i32>,
    problems: &mut Problems,
) -> Option<Port> {
    let mut text = match port {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(name) => name.clone(),
    };
    if let Some(end) = end_port {
        text = format!("{text}:{end}");
    }
    match text.parse() {
        Ok(port) => Some(port),
        Err(error) => {
            problems.add(
                &at.field("port"),
                text,
                format!("{error}; the rule is left out"),
            );
            None
        }
    }
}
