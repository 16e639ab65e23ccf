//! Policies, tiers and profiles.

use serde_json::{Value, json};
use tortie_api::Kind;

use super::super::policy_id;
use super::{convert, only_update, problems, resource, value_of};
use tortie_engine::input::{PolicyKind, Update};

/// Checks the selector of a policy with this spec.
#[track_caller]
fn check_selector(kind: Kind, spec: &Value, expected: &str) {
    let namespace = if kind.is_namespaced() { "shop" } else { "" };
    match only_update(&resource(kind, namespace, "a", spec)) {
        Update::Policy(_, Some(policy)) => assert_eq!(policy.selector, expected, "{spec}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_policy_applies_in_its_namespace_only() {
    let check = |spec: Value, expected: &str| {
        check_selector(Kind::NetworkPolicy, &spec, expected);
        check_selector(Kind::StagedNetworkPolicy, &spec, expected);
    };
    check(json!({}), "projectcalico.org/namespace == 'shop'");
    check(
        json!({"selector": "a == \"b\" ||c in {'d'}"}),
        "(a == \"b\" ||c in {'d'}) && projectcalico.org/namespace == 'shop'",
    );
    check(
        json!({"serviceAccountSelector": "x == 'y' || has(z)"}),
        "(projectcalico.org/namespace == 'shop') && (pcsa.x == \"y\" || has(pcsa.z))",
    );
    check(
        json!({"selector": "all()", "serviceAccountSelector": "all()"}),
        "((all()) && projectcalico.org/namespace == 'shop') && all()",
    );
}

#[test]
fn a_global_policy_keeps_its_selector_until_something_is_added() {
    let check = |spec: Value, expected: &str| {
        check_selector(Kind::GlobalNetworkPolicy, &spec, expected);
        check_selector(Kind::StagedGlobalNetworkPolicy, &spec, expected);
    };
    check(json!({}), "");
    check(json!({"selector": " all()&&a=='b'"}), " all()&&a=='b'");
    check(
        json!({"namespaceSelector": "all()"}),
        "has(projectcalico.org/namespace)",
    );
    check(
        json!({"selector": "all() || a == 'b'", "namespaceSelector": "x == 'y'"}),
        "(has(projectcalico.org/namespace) || a == 'b') && pcns.x == \"y\"",
    );
    check(
        json!({"selector": "all()", "serviceAccountSelector": "all()"}),
        "(has(projectcalico.org/serviceaccount)) && has(projectcalico.org/serviceaccount)",
    );
    check(
        json!({
            "selector": "a == 'b'", "namespaceSelector": "all()", "serviceAccountSelector": "all()"
        }),
        "((a == 'b') && has(projectcalico.org/namespace)) && has(projectcalico.org/serviceaccount)",
    );
}

#[test]
fn the_flags_of_a_policy_are_kept() {
    let spec = json!({
        "tier": "t", "order": 1.5, "selector": "a == 'b'", "types": ["Egress"],
        "doNotTrack": true, "preDNAT": true, "applyOnForward": true,
        "performanceHints": ["AssumeNeededOnEveryNode"],
        "ingress": [{"action": "Pass"}], "egress": [{"action": "Log"}, {"action": "Deny"}],
    });
    let policy = json!({
        "tier": "t", "order": 1.5, "selector": "a == 'b'", "types": ["Egress"],
        "untracked": true, "preDnat": true, "applyOnForward": true,
        "assumeNeededOnEveryNode": true,
        "inbound": [{"action": "Pass"}], "outbound": [{"action": "Log"}, {"action": "Deny"}],
    });
    let update = only_update(&resource(Kind::GlobalNetworkPolicy, "", "a", &spec));
    assert_eq!(value_of(&update), policy);
    let update = only_update(&resource(Kind::GlobalNetworkPolicy, "", "a", &json!({})));
    assert_eq!(
        value_of(&update),
        json!({"tier": "default", "selector": ""})
    );
}

#[track_caller]
fn check_id(kind: Kind, namespace: &str, name: &str, expected: Option<&str>) {
    let id = policy_id(kind, namespace, name).map(|id| id.to_string());
    assert_eq!(id.as_deref(), expected, "{kind} {namespace}/{name}");
}

#[test]
fn policies_from_kubernetes_go_under_their_own_kind_and_name() {
    check_id(
        Kind::NetworkPolicy,
        "ns",
        "default.a",
        Some("np/ns/default.a"),
    );
    check_id(
        Kind::NetworkPolicy,
        "ns",
        "knp.default.a.b",
        Some("knp/ns/a.b"),
    );
    check_id(Kind::NetworkPolicy, "ns", "knp.default.", None);
    check_id(
        Kind::NetworkPolicy,
        "ns",
        "ossg.default.a",
        Some("np/ns/ossg.default.a"),
    );
    check_id(Kind::NetworkPolicy, "", "a", None);
    check_id(Kind::GlobalNetworkPolicy, "", "a", Some("gnp/a"));
    check_id(Kind::GlobalNetworkPolicy, "", "kcnp.a", Some("kcnp/a"));
    check_id(
        Kind::StagedNetworkPolicy,
        "ns",
        "knp.default.a",
        Some("snp/ns/knp.default.a"),
    );
    check_id(Kind::StagedGlobalNetworkPolicy, "", "a", Some("sgnp/a"));
    check_id(
        Kind::StagedKubernetesNetworkPolicy,
        "ns",
        "a",
        Some("sknp/ns/a"),
    );
    check_id(Kind::Tier, "", "a", None);
}

#[test]
fn the_trial_of_a_deletion_is_nothing() {
    for kind in [
        Kind::StagedNetworkPolicy,
        Kind::StagedGlobalNetworkPolicy,
        Kind::StagedKubernetesNetworkPolicy,
    ] {
        let namespace = if kind.is_namespaced() { "ns" } else { "" };
        let staged =
            |action: &str| resource(kind, namespace, "a", &json!({"stagedAction": action}));
        for action in ["Set", "Learn", "Ignore"] {
            assert_ne!(
                value_of(&only_update(&staged(action))),
                Value::Null,
                "{kind} {action}"
            );
        }
        assert_eq!(
            value_of(&only_update(&staged("Delete"))),
            Value::Null,
            "{kind}"
        );
    }
}

#[test]
fn the_trial_of_a_kubernetes_policy_is_converted_as_one() {
    let spec = json!({
        "podSelector": {"matchLabels": {"a": "b"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}],
    });
    let staged = resource(Kind::StagedKubernetesNetworkPolicy, "ns", "p", &spec);
    let Update::Policy(id, Some(policy)) = only_update(&staged) else {
        panic!("it is computed")
    };
    assert_eq!(id.kind, PolicyKind::StagedKubernetesNetworkPolicy);
    assert_eq!(
        (policy.order, policy.tier.as_str()),
        (Some(1000.0), "default")
    );
    let own = "projectcalico.org/orchestrator == 'k8s' && a == 'b'";
    let selector = format!("({own}) && projectcalico.org/namespace == 'ns'");
    assert_eq!(policy.selector, selector);
    let peer = "(projectcalico.org/namespace == 'ns') && (projectcalico.org/orchestrator == 'k8s')";
    assert_eq!(policy.inbound[0].source.selector, peer);

    let spec = json!({
        "podSelector": {},
        "ingress": [{"ports": [{"port": 80}]}, {"ports": [{"port": 80, "protocol": "XYZ"}]}],
    });
    let staged = resource(Kind::StagedKubernetesNetworkPolicy, "ns", "p", &spec);
    let converted = convert(&staged);
    assert_eq!(
        value_of(&converted.updates[0]),
        Value::Null,
        "{converted:?}"
    );
    assert!(!converted.problems.is_empty());
}

#[test]
fn a_tier_denies_unless_it_passes() {
    let check = |spec: Value, expected: Value| {
        assert_eq!(
            value_of(&only_update(&resource(Kind::Tier, "", "t", &spec))),
            expected
        );
    };
    check(json!({}), json!({"defaultAction": "Deny"}));
    check(
        json!({"order": 5, "defaultAction": "Pass"}),
        json!({"order": 5.0, "defaultAction": "Pass"}),
    );
    check(
        json!({"defaultAction": "Log"}),
        json!({"defaultAction": "Deny"}),
    );
}

#[test]
fn a_profile_has_labels_and_rules() {
    let spec = json!({
        "labelsToApply": {"pcns.a": "b"},
        "ingress": [{"action": "Allow", "source": {"selector": "x == 'y'"}}],
        "egress": [{"action": "Deny"}],
    });
    let update = only_update(&resource(Kind::Profile, "", "p", &spec));
    let rule = json!({
        "action": "Allow", "source": {"selector": "x == 'y'", "originalSelector": "x == 'y'"}
    });
    let expected = json!({
        "labels": {"pcns.a": "b"}, "inbound": [rule], "outbound": [{"action": "Deny"}]
    });
    assert_eq!(value_of(&update), expected);
}

#[test]
fn a_policy_that_cannot_be_converted_counts_as_absent_and_every_reason_is_named() {
    let spec = json!({
        "selector": "a =", "serviceAccountSelector": "b ==",
        "ingress": [
            {"action": "Allow"},
            {"action": "Allow", "source": {"nets": ["10.0.0.0/8", "x"], "notNets": ["1.2.3.4/33"]}},
        ],
        "egress": [{"action": "Allow", "ipVersion": 5, "destination": {"namespaceSelector": "("}}],
    });
    let converted = convert(&resource(Kind::NetworkPolicy, "ns", "p", &spec));
    assert_eq!(value_of(&converted.updates[0]), Value::Null);
    let text = problems(&converted).join("\n");
    for field in [
        "NetworkPolicy(ns/p): spec.selector = \"a =\": ",
        "spec.serviceAccountSelector = \"b ==\": ",
        "spec.ingress[1].source.nets[1] = \"x\": must be an address or a CIDR",
        "spec.ingress[1].source.notNets[0] = \"1.2.3.4/33\"",
        "spec.egress[0].ipVersion = 5: must be 4 or 6",
        "spec.egress[0].destination.namespaceSelector = \"(\"",
    ] {
        assert!(text.contains(field), "{field} in {text}");
    }
    assert_eq!(converted.problems.len(), 6, "{text}");
}

#[test]
fn a_policy_without_a_complete_name_has_no_key() {
    let converted = convert(&resource(Kind::NetworkPolicy, "", "p", &json!({})));
    assert_eq!(converted.updates, []);
    assert_eq!(converted.problems.len(), 1);
}

#[test]
fn selectors_that_are_valid_alone_must_be_valid_together() {
    let spec =
        json!({"selector": "  ", "ingress": [{"action": "Allow", "source": {"selector": " "}}]});
    let converted = convert(&resource(Kind::NetworkPolicy, "ns", "p", &spec));
    assert_eq!(value_of(&converted.updates[0]), Value::Null);
    assert_eq!(converted.problems.len(), 2, "{:?}", problems(&converted));
    let converted = convert(&resource(Kind::NetworkPolicy, "a'b", "p", &json!({})));
    assert_eq!(value_of(&converted.updates[0]), Value::Null);
}
