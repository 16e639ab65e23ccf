//! `policy.networking.k8s.io` `ClusterNetworkPolicy` as a `GlobalNetworkPolicy` of one of the two Kubernetes tiers.

mod types;

use std::collections::BTreeMap;

pub use types::*;

use super::ports::ProtocolPorts;
use super::{Converted, derived_metadata, selector};
use crate::kinds::GlobalNetworkPolicy;
use crate::kinds::global_network_policy::GlobalNetworkPolicySpec;
use crate::kinds::rule::{Action, EntityRule, PolicyType, Rule, RuleMetadata};
use crate::net;
use crate::problem::{Path, Problems};
use crate::scalar::Port;

/// The annotation of a rule that keeps its name.
const RULE_NAME: &str = "name";

/// Converts a policy. A rule that cannot be converted is left out if it accepts, and denies everything otherwise.
/// There is no resource if it is unclear where the policy applies.
pub fn cluster_network_policy(policy: &ClusterNetworkPolicy) -> Converted<GlobalNetworkPolicy> {
    Converted::from_fn(|problems| {
        let root = Path::ROOT;
        let at = root.field("spec");
        let spec = &policy.spec;
        let tier = tier(&at, &spec.tier, problems)?;
        let (namespace_selector, selector) = subject(&at, &spec.subject, problems)?;

        let mut ingress = Vec::new();
        for (index, rule) in spec.ingress.iter().enumerate() {
            let at = at.field("ingress");
            let rules = convert_rule(
                &at.index(index),
                &rule.action,
                &rule.protocols,
                &rule.from,
                problems,
            );
            ingress.extend(named(rules, &rule.name, &rule.action));
        }
        let mut egress = Vec::new();
        for (index, rule) in spec.egress.iter().enumerate() {
            let at = at.field("egress");
            let rules = convert_rule(
                &at.index(index),
                &rule.action,
                &rule.protocols,
                &rule.to,
                problems,
            );
            egress.extend(named(rules, &rule.name, &rule.action));
        }

        let meta = &policy.metadata;
        let mut metadata = derived_metadata(meta, meta.name.clone().unwrap_or_default(), problems)?;
        metadata.resource_version = meta.resource_version.clone().unwrap_or_default();
        // The tiers pass by default, so that a direction without rules need not be covered.
        let types = [
            (PolicyType::Ingress, &ingress),
            (PolicyType::Egress, &egress),
        ];
        let types = types
            .into_iter()
            .filter(|(_, rules)| !rules.is_empty())
            .map(|(direction, _)| direction);
        let spec = GlobalNetworkPolicySpec {
            tier: tier.into(),
            order: Some(f64::from(spec.priority)),
            types: types.collect(),
            namespace_selector,
            selector,
            ingress,
            egress,
            ..GlobalNetworkPolicySpec::default()
        };
        Some(GlobalNetworkPolicy {
            metadata,
            spec,
            ..GlobalNetworkPolicy::default()
        })
    })
}

fn tier(at: &Path<'_>, tier: &str, problems: &mut Problems) -> Option<&'static str> {
    match tier {
        "Admin" => Some("kube-admin"),
        "Baseline" => Some("kube-baseline"),
        other => {
            problems.add(
                &at.field("tier"),
                other,
                "must be `Admin` or `Baseline`; the policy is not applied",
            );
            None
        }
    }
}

/// Selectors of the namespaces and of the pods that the policy covers.
fn subject(
    at: &Path<'_>,
    subject: &ClusterNetworkPolicySubject,
    problems: &mut Problems,
) -> Option<(String, String)> {
    match (&subject.namespaces, &subject.pods) {
        (Some(namespaces), _) => Some((
            selector::of_namespaces(Some(namespaces)),
            selector::of_pods(None),
        )),
        (None, Some(pods)) => Some(pods.selectors()),
        (None, None) => {
            let rule = "must have `namespaces` or `pods`; the policy is not applied";
            problems.add_missing(&at.field("subject"), rule);
            None
        }
    }
}

/// The rules with their name, or what stands in for a rule that could not be converted.
fn named(rules: Option<Vec<Rule>>, name: &str, action: &str) -> Vec<Rule> {
    let Some(mut rules) = rules else {
        let denies = matches!(action, "Deny" | "Pass");
        return if denies {
            vec![Rule {
                action: Action::Deny,
                ..Rule::default()
            }]
        } else {
            Vec::new()
        };
    };
    if !name.is_empty() {
        let annotations = BTreeMap::from([(RULE_NAME.to_owned(), name.to_owned())]);
        for rule in &mut rules {
            rule.metadata = Some(RuleMetadata {
                annotations: annotations.clone(),
            });
        }
    }
    rules
}

/// One rule for each protocol and peer, or nothing if any part cannot be converted.
fn convert_rule<P: Peer>(
    at: &Path<'_>,
    action: &str,
    protocols: &[ClusterNetworkPolicyProtocol],
    peers: &[P],
    problems: &mut Problems,
) -> Option<Vec<Rule>> {
    let action = match action {
        "Accept" => Action::Allow,
        "Deny" => Action::Deny,
        "Pass" => Action::Pass,
        other => {
            problems.add(
                &at.field("action"),
                other,
                "must be `Accept`, `Deny` or `Pass`",
            );
            return None;
        }
    };
    let ports = gather_ports(&at.field("protocols"), protocols, problems)?;
    let mut entities = Vec::with_capacity(peers.len());
    for (index, peer) in peers.iter().enumerate() {
        entities.push(peer.entity(&at.field(P::FIELD).index(index), problems)?);
    }
    let mut rules = Vec::new();
    for (protocol, ports) in ports.into_rules() {
        for entity in &entities {
            let rule = Rule {
                action,
                protocol: protocol.clone(),
                ..Rule::default()
            };
            rules.push(P::rule(rule, entity.clone(), ports.clone()));
        }
    }
    Some(rules)
}

/// The other side of a rule.
trait Peer {
    /// The field of the rule that holds the peers.
    const FIELD: &'static str;

    /// The conditions on the peer.
    fn entity(&self, at: &Path<'_>, problems: &mut Problems) -> Option<EntityRule>;

    /// Adds the conditions on both sides to a rule.
    fn rule(rule: Rule, entity: EntityRule, ports: Vec<Port>) -> Rule;
}

impl Peer for ClusterNetworkPolicyIngressPeer {
    const FIELD: &'static str = "from";

    fn entity(&self, at: &Path<'_>, problems: &mut Problems) -> Option<EntityRule> {
        let entity = selected(self.namespaces.as_ref(), self.pods.as_ref());
        if entity.is_none() {
            problems.add_missing(
                at,
                "must have `namespaces` or `pods`; other peers are not supported",
            );
        }
        entity
    }

    fn rule(rule: Rule, entity: EntityRule, ports: Vec<Port>) -> Rule {
        Rule {
            source: entity,
            destination: EntityRule {
                ports,
                ..EntityRule::default()
            },
            ..rule
        }
    }
}

impl Peer for ClusterNetworkPolicyEgressPeer {
    const FIELD: &'static str = "to";

    fn entity(&self, at: &Path<'_>, problems: &mut Problems) -> Option<EntityRule> {
        let entity = selected(self.namespaces.as_ref(), self.pods.as_ref());
        if entity.is_none() && self.networks.is_empty() {
            let rule =
                "must have `namespaces`, `pods` or `networks`; other peers are not supported";
            problems.add_missing(at, rule);
            return None;
        }
        let mut entity = entity.unwrap_or_default();
        for (index, network) in self.networks.iter().enumerate() {
            let Some(cidr) = net::parse_cidr(network) else {
                let at = at.field("networks");
                problems.add(
                    &at.index(index),
                    network,
                    "must be a CIDR such as 10.0.0.0/8",
                );
                return None;
            };
            entity.nets.push(cidr.network().to_string());
        }
        Some(entity)
    }

    fn rule(rule: Rule, entity: EntityRule, ports: Vec<Port>) -> Rule {
        Rule {
            destination: EntityRule { ports, ..entity },
            ..rule
        }
    }
}

fn selected(
    namespaces: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector>,
    pods: Option<&NamespacedPods>,
) -> Option<EntityRule> {
    let (namespace_selector, selector) = match (namespaces, pods) {
        (_, Some(pods)) => pods.selectors(),
        (Some(namespaces), None) => (selector::of_namespaces(Some(namespaces)), String::new()),
        (None, None) => return None,
    };
    Some(EntityRule {
        selector,
        namespace_selector,
        ..EntityRule::default()
    })
}

impl NamespacedPods {
    /// Selectors of the namespaces and of the pods.
    fn selectors(&self) -> (String, String) {
        let namespaces = selector::of_namespaces(Some(&self.namespace_selector));
        (namespaces, selector::of_pods(Some(&self.pod_selector)))
    }
}

fn gather_ports(
    at: &Path<'_>,
    protocols: &[ClusterNetworkPolicyProtocol],
    problems: &mut Problems,
) -> Option<ProtocolPorts> {
    if protocols.is_empty() {
        return Some(ProtocolPorts::any());
    }
    let mut gathered = ProtocolPorts::default();
    for (index, protocol) in protocols.iter().enumerate() {
        let at = at.index(index);
        let known = [
            ("TCP", "tcp", &protocol.tcp),
            ("UDP", "udp", &protocol.udp),
            ("SCTP", "sctp", &protocol.sctp),
        ];
        let known = known
            .into_iter()
            .find_map(|(name, field, ports)| Some((name, field, ports.as_ref()?)));
        if let Some((name, field, ports)) = known {
            let at = at.field(field);
            let port = match &ports.destination_port {
                Some(port) => number(&at.field("destinationPort"), port, problems)?,
                None => None,
            };
            gathered.add(Some(name), port);
        } else if protocol.destination_named_port.is_empty() {
            // An entry without any member covers everything, whatever the others say.
            return Some(ProtocolPorts::any());
        } else {
            let name = protocol.destination_named_port.as_str();
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            if name.len() > 128 || !name.bytes().all(is_name) {
                problems.add(
                    &at.field("destinationNamedPort"),
                    name,
                    "must be the name of a port",
                );
                return None;
            }
            gathered.add(None, Some(Port::Named(name.into())));
        }
    }
    Some(gathered)
}

/// A port or a range; `Some(None)` for all ports.
#[expect(
    clippy::option_option,
    reason = "the outer one is failure, the inner one all ports"
)]
fn number(
    at: &Path<'_>,
    port: &ClusterNetworkPolicyPort,
    problems: &mut Problems,
) -> Option<Option<Port>> {
    let (low, high) = match (&port.range, port.number) {
        (None, 0) => return Some(None),
        (Some(range), 0) => (range.start, range.end),
        (_, number) => (number, number),
    };
    match (u16::try_from(low), u16::try_from(high)) {
        (Ok(low), Ok(high)) if low <= high => Some(Some(Port::Range(low, high))),
        _ => {
            problems.add(
                at,
                port,
                "must be a port up to 65535, or a range from a lower to a higher one",
            );
            None
        }
    }
}
