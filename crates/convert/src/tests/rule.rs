//! Rules, and the selectors of their sides.

use serde_json::{Value, json};
use tortie_api::Kind;

use super::{convert, only_update, problems, resource, value_of};
use crate::Fidelity;
use tortie_engine::input::{Rule, Update};

/// The first ingress rule of a policy in a namespace, or of one for the cluster.
#[track_caller]
fn rule_in(namespace: &str, rule: &Value) -> Rule {
    let kind = if namespace.is_empty() {
        Kind::GlobalNetworkPolicy
    } else {
        Kind::NetworkPolicy
    };
    let spec = json!({"ingress": [rule]});
    match only_update(&resource(kind, namespace, "p", &spec)) {
        Update::Policy(_, Some(mut policy)) => policy.inbound.remove(0),
        other => panic!("{other:?}"),
    }
}

/// Checks the selector that one side of a rule gets, on both sides.
#[track_caller]
fn check_selector(namespace: &str, entity: &Value, expected: &str) {
    let rule = rule_in(
        namespace,
        &json!({"action": "Allow", "source": entity, "destination": entity}),
    );
    assert_eq!(rule.source.selector, expected, "{entity}");
    assert_eq!(rule.source, rule.destination);
}

#[test]
fn a_side_of_a_rule_is_limited_to_the_namespace_of_the_policy() {
    let own = "projectcalico.org/namespace == 'ns'";
    check_selector("ns", &json!({}), "");
    check_selector("ns", &json!({"nets": ["10.0.0.0/8"]}), "");
    check_selector(
        "ns",
        &json!({"selector": "a=='b'"}),
        &format!("({own}) && (a=='b')"),
    );
    check_selector(
        "ns",
        &json!({"selector": "all()"}),
        &format!("({own}) && (all())"),
    );
    check_selector("ns", &json!({"notSelector": "a == 'b'"}), own);
    check_selector(
        "ns",
        &json!({"serviceAccounts": {"names": ["y", "x"]}}),
        &format!("({own}) && (projectcalico.org/serviceaccount in {{\"x\", \"y\"}})"),
    );
    check_selector("", &json!({"selector": "a=='b'"}), "a=='b'");
    check_selector("", &json!({"notSelector": "a=='b'"}), "");
}

#[test]
fn a_namespace_selector_replaces_the_namespace() {
    for namespace in ["", "ns"] {
        check_selector(
            namespace,
            &json!({"namespaceSelector": "x=='y'", "selector": "a=='b'"}),
            "(pcns.x == \"y\") && (a=='b')",
        );
        check_selector(
            namespace,
            &json!({"namespaceSelector": "all()"}),
            "has(projectcalico.org/namespace)",
        );
        check_selector(
            namespace,
            &json!({"namespaceSelector": "global()", "selector": "all()"}),
            "(!has(projectcalico.org/namespace)) && (all())",
        );
        check_selector(
            namespace,
            &json!({"namespaceSelector": "has(x)"}),
            "has(pcns.x)",
        );
    }
}

#[test]
fn service_accounts_are_found_by_name_and_by_label() {
    check_selector(
        "",
        &json!({"serviceAccounts": {"selector": "x == 'y'"}}),
        "pcsa.x == \"y\"",
    );
    check_selector(
        "",
        &json!({"serviceAccounts": {"names": ["s"], "selector": "x == 'y'"}, "selector": "a == 'b'"}),
        "((pcsa.x == \"y\") && (projectcalico.org/serviceaccount in {\"s\"})) && (a == 'b')",
    );
    check_selector(
        "",
        &json!({"serviceAccounts": {}, "selector": "a == 'b'"}),
        "a == 'b'",
    );
}

#[test]
fn a_rule_keeps_all_its_conditions() {
    let rule = json!({
        "action": "Allow", "ipVersion": 4, "protocol": "TCP", "notProtocol": 17,
        "icmp": {"type": 8}, "notICMP": {"type": 3, "code": 1},
        "source": {
            "nets": ["10.0.0.0/8", "192.0.2.1"], "notNets": ["10.1.2.3/16"],
            "ports": [80, "1000:2000", "http"], "notPorts": ["dns"],
            "selector": "a == 'b'", "notSelector": "c == 'd'", "namespaceSelector": "e == 'f'",
            "serviceAccounts": {"names": ["s"]},
        },
        "destination": {"nets": ["fd00::1/64"], "services": {"name": "web"}},
        "http": {"methods": ["GET"]},
        "metadata": {"annotations": {"k": "v"}},
    });
    let selector =
        "(pcns.e == \"f\") && ((projectcalico.org/serviceaccount in {\"s\"}) && (a == 'b'))";
    let expected = json!({
        "action": "Allow", "ipVersion": 4, "protocol": "TCP", "notProtocol": 17,
        "icmp": {"type": 8}, "notIcmp": {"type": 3, "code": 1},
        "source": {
            "nets": ["10.0.0.0/8", "192.0.2.1/32"], "notNets": ["10.1.0.0/16"],
            "ports": [80, "1000:2000", "http"], "notPorts": ["dns"],
            "selector": selector, "notSelector": "c == 'd'",
            "originalSelector": "a == 'b'", "originalNotSelector": "c == 'd'",
            "originalNamespaceSelector": "e == 'f'",
            "originalServiceAccounts": {"names": ["s"]},
        },
        "destination": {"nets": ["fd00::/64"], "service": {"name": "web", "namespace": "ns"}},
        "http": {"methods": ["GET"]},
        "metadata": {"annotations": {"k": "v"}},
    });
    assert_eq!(
        serde_json::to_value(rule_in("ns", &rule)).unwrap(),
        expected
    );
}

#[test]
fn a_service_may_be_of_another_namespace() {
    let service = json!({"name": "web", "namespace": "other"});
    let rule = rule_in(
        "ns",
        &json!({"action": "Allow", "source": {"services": service}}),
    );
    assert_eq!(rule.source.service.unwrap().namespace, "other");
    assert_eq!(rule.source.selector, "");
}

#[test]
fn conditions_that_make_no_sense_make_the_policy_deny() {
    let check = |rule: Value, expected: &str| {
        let spec = json!({"egress": [rule]});
        let converted = convert(&resource(Kind::GlobalNetworkPolicy, "", "p", &spec));
        let policy = value_of(&converted.updates[0]);
        assert_eq!(policy["outbound"], json!([{"action": "Deny"}]), "{spec}");
        assert_eq!(converted.fidelity, Fidelity::Closed);
        let problems = problems(&converted);
        assert!(problems[0].contains(expected), "{problems:?}");
    };
    check(
        json!({"action": "Allow", "protocol": "XYZ"}),
        "spec.egress[0].protocol = \"XYZ\"",
    );
    check(
        json!({"action": "Allow", "notProtocol": 0}),
        "spec.egress[0].notProtocol = 0",
    );
    check(
        json!({"action": "Allow", "icmp": {"type": 256}}),
        "spec.egress[0].icmp.type = 256",
    );
    check(
        json!({"action": "Allow", "notICMP": {"code": 1}}),
        "spec.egress[0].notICMP.type",
    );
    check(
        json!({"action": "Allow", "source": {"notSelector": "!"}}),
        "spec.egress[0].source.notSelector = \"!\"",
    );
    check(
        json!({"action": "Allow", "source": {"serviceAccounts": {"names": ["a'b"]}}}),
        "spec.egress[0].source.serviceAccounts.names",
    );
}
