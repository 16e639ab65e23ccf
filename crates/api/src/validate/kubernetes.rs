//! Kubernetes' own objects, by the rules that its API server has for them.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::labels::{self, MAX_LABEL, MAX_NAME, is_label_text, is_port_name, is_subdomain_text};
use crate::net::parse_cidr;
use crate::problem::{Path, Problems};

/// What names of a kind may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// One DNS label.
    Label,
    /// DNS labels joined by dots.
    Subdomain,
    /// Whatever can stand between two slashes of a path.
    PathSegment,
}

/// Notes what is wrong with the metadata of an object.
pub fn check_kubernetes_metadata(meta: &ObjectMeta, rule: NameRule, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("metadata");
    let name = meta.name.as_deref().unwrap_or_default();
    check_name(&at.field("name"), name, rule, problems);
    let none = BTreeMap::new();
    let labels_at = at.field("labels");
    for (key, value) in meta.labels.as_ref().unwrap_or(&none) {
        labels::check(&labels_at, key, value, problems);
    }
    let annotations = meta.annotations.as_ref().unwrap_or(&none);
    labels::annotations(&at.field("annotations"), annotations, problems);
}

pub(super) fn check_name(at: &Path<'_>, name: &str, rule: NameRule, problems: &mut Problems) {
    let (is_right, text) = match rule {
        NameRule::Label => (
            name.len() <= MAX_LABEL && is_label_text(name),
            "must be at most 63 lower case letters, digits and `-`, starting and ending with a letter or digit",
        ),
        NameRule::Subdomain => (
            name.len() <= MAX_NAME && is_subdomain_text(name),
            "must be at most 253 lower case letters, digits, `-` and `.`, each part starting and ending with a letter or digit",
        ),
        NameRule::PathSegment => (
            name.len() <= MAX_NAME
                && name.contains(|c| c != '.')
                && !name.contains(|c: char| matches!(c, '/' | '%' | '\\') || c.is_control()),
            "must be at most 253 characters without `/`, `%`, `\\` and control characters, and not only dots",
        ),
    };
    if name.is_empty() {
        problems.add_missing(at, "must be given");
    } else if !is_right {
        problems.add(at, name, text);
    }
}

/// Notes what is wrong with a network policy of Kubernetes, beyond the types of its fields.
pub fn check_kubernetes_policy(policy: &NetworkPolicy, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("spec");
    let Some(spec) = &policy.spec else {
        problems.add_missing(&at, "must be given");
        return;
    };
    check_selector(
        &at.field("podSelector"),
        spec.pod_selector.as_ref(),
        problems,
    );
    for (index, rule) in spec.ingress.iter().flatten().enumerate() {
        let ingress = at.field("ingress");
        let rule_at = ingress.index(index);
        check_peers(&rule_at.field("from"), rule.from.as_deref(), problems);
        check_ports(&rule_at.field("ports"), rule.ports.as_deref(), problems);
    }
    for (index, rule) in spec.egress.iter().flatten().enumerate() {
        let egress = at.field("egress");
        let rule_at = egress.index(index);
        check_peers(&rule_at.field("to"), rule.to.as_deref(), problems);
        check_ports(&rule_at.field("ports"), rule.ports.as_deref(), problems);
    }
    let types_at = at.field("policyTypes");
    for (index, name) in spec.policy_types.iter().flatten().enumerate() {
        if !matches!(name.as_str(), "Ingress" | "Egress") {
            problems.add(&types_at.index(index), name, "must be Ingress or Egress");
        }
    }
}

fn check_peers(at: &Path<'_>, peers: Option<&[NetworkPolicyPeer]>, problems: &mut Problems) {
    for (index, peer) in peers.unwrap_or_default().iter().enumerate() {
        let at = at.index(index);
        let has_selector = peer.pod_selector.is_some() || peer.namespace_selector.is_some();
        match &peer.ip_block {
            Some(_) if has_selector => {
                problems.add_missing(&at.field("ipBlock"), "must not be given beside selectors");
            }
            Some(block) => check_block(&at.field("ipBlock"), block, problems),
            None if !has_selector => problems.add_missing(
                &at,
                "must have an ipBlock, a podSelector or a namespaceSelector",
            ),
            None => {}
        }
        check_selector(
            &at.field("podSelector"),
            peer.pod_selector.as_ref(),
            problems,
        );
        let namespaces = peer.namespace_selector.as_ref();
        check_selector(&at.field("namespaceSelector"), namespaces, problems);
    }
}

fn check_block(at: &Path<'_>, block: &IPBlock, problems: &mut Problems) {
    let Some(net) = parse_cidr(&block.cidr) else {
        problems.add(
            &at.field("cidr"),
            &block.cidr,
            "must be a network such as 10.0.0.0/8",
        );
        return;
    };
    let net = net.network();
    let except_at = at.field("except");
    for (index, text) in block.except.iter().flatten().enumerate() {
        let inner = parse_cidr(text).map(crate::net::Cidr::network);
        let is_inside = inner
            .is_some_and(|inner| net.contains(&inner) && inner.prefix_len() > net.prefix_len());
        if !is_inside {
            let rule = format!("must be a network that is a part of {net}");
            problems.add(&except_at.index(index), text, rule);
        }
    }
}

fn check_ports(at: &Path<'_>, ports: Option<&[NetworkPolicyPort]>, problems: &mut Problems) {
    let is_port = |number: i32| (1..=65535).contains(&number);
    for (index, port) in ports.unwrap_or_default().iter().enumerate() {
        let at = at.index(index);
        if let Some(protocol) = &port.protocol
            && !matches!(protocol.as_str(), "TCP" | "UDP" | "SCTP")
        {
            problems.add(&at.field("protocol"), protocol, "must be TCP, UDP or SCTP");
        }
        match &port.port {
            Some(IntOrString::Int(number)) if !is_port(*number) => {
                problems.add(&at.field("port"), number, "must be between 1 and 65535");
            }
            Some(IntOrString::String(name)) if !is_port_name(name) => problems.add(
                &at.field("port"),
                name,
                "must be the name of a port: at most 15 lower case letters, digits and `-`, with a letter",
            ),
            _ => {}
        }
        match (port.end_port, &port.port) {
            (Some(end), Some(IntOrString::Int(start))) if end >= *start && is_port(end) => {}
            (Some(end), _) => problems.add(
                &at.field("endPort"),
                end,
                "must be at least the number in port, and at most 65535",
            ),
            (None, _) => {}
        }
    }
}

pub(super) fn check_selector(
    at: &Path<'_>,
    selector: Option<&LabelSelector>,
    problems: &mut Problems,
) {
    let Some(selector) = selector else {
        return;
    };
    let labels_at = at.field("matchLabels");
    for (key, value) in selector.match_labels.iter().flatten() {
        labels::check(&labels_at, key, value, problems);
    }
    let expressions_at = at.field("matchExpressions");
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let at = expressions_at.index(index);
        labels::check(&at.field("key"), &expression.key, "", problems);
        let count = expression.values.as_ref().map_or(0, Vec::len);
        let rule = match expression.operator.as_str() {
            "In" | "NotIn" if count == 0 => "must have values with In and NotIn",
            "Exists" | "DoesNotExist" if count > 0 => {
                "must have no values with Exists and DoesNotExist"
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => continue,
            other => {
                problems.add(
                    &at.field("operator"),
                    other,
                    "must be In, NotIn, Exists or DoesNotExist",
                );
                continue;
            }
        };
        problems.add(&at.field("values"), &expression.values, rule);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn fields(spec: &Value) -> Vec<String> {
        let policy = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec}));
        let mut problems = Problems::default();
        check_kubernetes_policy(&policy.unwrap(), &mut problems);
        problems
            .iter()
            .map(|problem| problem.field.clone())
            .collect()
    }

    #[test]
    fn right_policies_pass() {
        let spec = json!({
            "podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            "ingress": [{
                "from": [
                    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
                    {"podSelector": {}, "namespaceSelector": {}},
                ],
                "ports": [{"port": 80, "endPort": 90, "protocol": "TCP"}, {"port": "http"}, {}],
            }],
            "egress": [{}],
            "policyTypes": ["Ingress", "Egress"],
        });
        assert_eq!(fields(&spec), [""; 0]);
    }

    #[test]
    fn every_wrong_field_is_named() {
        let spec = json!({
            "podSelector": {"matchExpressions": [{"key": "a", "operator": "Is", "values": ["b"]}]},
            "ingress": [{
                "from": [
                    {},
                    {"ipBlock": {"cidr": "10.0.0.0/33"}},
                    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}},
                    {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
                ],
                "ports": [{"port": 0}, {"port": "-"}, {"port": 9, "endPort": 8}, {"protocol": "tcp"}],
            }],
            "policyTypes": ["ingress"],
        });
        let expected = [
            "spec.podSelector.matchExpressions[0].operator",
            "spec.ingress[0].from[0]",
            "spec.ingress[0].from[1].ipBlock.cidr",
            "spec.ingress[0].from[2].ipBlock.except[0]",
            "spec.ingress[0].from[3].ipBlock",
            "spec.ingress[0].ports[0].port",
            "spec.ingress[0].ports[1].port",
            "spec.ingress[0].ports[2].endPort",
            "spec.ingress[0].ports[3].protocol",
            "spec.policyTypes[0]",
        ];
        assert_eq!(fields(&spec), expected);
    }

    #[test]
    fn names_and_labels_are_checked() {
        let check = |name: &str, rule| {
            let meta = ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some([("a".to_owned(), "b c".to_owned())].into()),
                ..ObjectMeta::default()
            };
            let mut problems = Problems::default();
            check_kubernetes_metadata(&meta, rule, &mut problems);
            problems.iter().count() - 1
        };
        assert_eq!(check("a.b", NameRule::Subdomain), 0);
        assert_eq!(check("a.b", NameRule::Label), 1);
        assert_eq!(check("A", NameRule::Subdomain), 1);
        assert_eq!(check("", NameRule::Subdomain), 1);
    }
}
