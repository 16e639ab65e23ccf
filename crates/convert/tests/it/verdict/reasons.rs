//! Why a rule does not match, in words: the text names the part of the rule that does not hold, and what the packet
//! has instead.

use serde_json::{Value, json};
use tortie_engine::verdict::{By, Flow, Step};

use crate::verdict::shop::{host, objects, outside, ping, pod, query, resource};
use crate::verdict::world::{Cluster, World};

/// Checks why the only rule of a policy on `db` does not match; an empty text if it does.
#[track_caller]
fn check(rule: &Value, flow: &Flow, expected: &str) {
    let kind = "GlobalNetworkPolicy";
    let metadata = json!({"name": "only"});
    check_in(kind, &metadata, "ingress", rule, flow, expected);
}

#[track_caller]
fn check_in(
    kind: &str,
    metadata: &Value,
    direction: &str,
    rule: &Value,
    flow: &Flow,
    expected: &str,
) {
    let mut rule = rule.clone();
    rule["action"] = json!("Allow");
    let policy = json!({"metadata": metadata, "spec": {direction: [rule]}});
    let objects = objects().into_iter().chain([resource(kind, &policy)]);
    let mut cluster = Cluster::new();
    cluster.become_world(&World::new(objects), 0);
    let verdict = cluster.engine.judge().verdict(flow);
    let side = if direction == "ingress" {
        verdict.ingress
    } else {
        verdict.egress
    };
    let step = match &side.trace[..] {
        [Step::Tier(tier), ..] => &tier.policies[0].rules[0],
        other => panic!("the policy was not asked: {other:?}"),
    };
    assert_eq!(step.matched, matches!(side.by, By::Rule { .. }));
    assert_eq!(
        step.reason.as_deref().unwrap_or_default(),
        expected,
        "of {policy}"
    );
}

#[test]
fn a_rule_that_matches_has_no_reason() {
    check(&json!({}), &query(), "");
    check(
        &json!({"protocol": "TCP", "destination": {"ports": ["sql"]}}),
        &query(),
        "",
    );
}

#[test]
fn ip_version_and_protocol() {
    let six = Flow {
        source: pod("web", "fd00::1"),
        destination: pod("db", "fd00::2"),
        ..query()
    };
    check(
        &json!({"ipVersion": 6}),
        &query(),
        "it is for IPv6, and the packet is IPv4",
    );
    check(
        &json!({"protocol": "ICMP"}),
        &six,
        "it is for IPv4, and the packet is IPv6",
    );
    check(
        &json!({"protocol": "UDP"}),
        &query(),
        "it is for protocol UDP, and the protocol is TCP",
    );
    check(
        &json!({"protocol": 47}),
        &query(),
        "it is for protocol 47, and the protocol is TCP",
    );
    let unknown = Flow {
        protocol: None,
        ..query()
    };
    check(
        &json!({"protocol": "UDP"}),
        &unknown,
        "it is for protocol UDP, and the protocol is not given",
    );
    check(
        &json!({"notProtocol": 6}),
        &query(),
        "it is not for protocol 6",
    );
    check(
        &json!({"source": {"notNets": ["10.0.0.0/8"]}}),
        &six,
        "it excludes 10.0.0.0/8, so it is for IPv4, and the packet is IPv6",
    );
}

#[test]
fn icmp_messages() {
    let unreachable = json!({"protocol": "ICMP", "icmp": {"type": 3}});
    check(&unreachable, &ping(), "it is for ICMP type 3");
    let other_code = json!({"protocol": "ICMP", "icmp": {"type": 8, "code": 1}});
    check(&other_code, &ping(), "it is for ICMP type 8 code 1");
    let not_ping = json!({"protocol": "ICMP", "notICMP": {"type": 8}});
    check(&not_ping, &ping(), "it is not for ICMP type 8");
    check(
        &json!({"notICMP": {"type": 8}}),
        &query(),
        "it is for ICMP, and the protocol is TCP",
    );
}

#[test]
fn networks() {
    check(
        &json!({"source": {"nets": ["10.1.0.0/16", "192.168.0.0/16"]}}),
        &query(),
        "source 10.0.0.1 is not in 10.1.0.0/16, 192.168.0.0/16",
    );
    check(
        &json!({"destination": {"notNets": ["10.0.0.0/30", "10.1.0.0/16"]}}),
        &query(),
        "destination 10.0.0.2 is in 10.0.0.0/30, which it excludes",
    );
}

#[test]
fn selectors_name_the_term_that_fails_and_the_label() {
    check(
        &json!({"source": {"selector": "has(app) && app == 'admin'"}}),
        &query(),
        r#"label app of source shop/web is "web", not "admin""#,
    );
    check(
        &json!({"source": {"selector": "has(role)"}}),
        &query(),
        "source shop/web has no label role",
    );
    check(
        &json!({"source": {"selector": "app == 'web'", "namespaceSelector": "env == 'test'"}}),
        &query(),
        r#"label env of namespace shop of source shop/web is "prod", not "test""#,
    );
    check(
        &json!({"source": {"namespaceSelector": "global()"}}),
        &query(),
        "it is for what is not in a namespace, and source shop/web is in namespace shop",
    );
    check(
        &json!({"source": {"serviceAccounts": {"names": ["cook"]}}}),
        &query(),
        "it is for service account cook, and of source shop/web it is web-account",
    );
}

#[test]
fn service_accounts_and_namespaces_are_called_so() {
    check(
        &json!({"source": {"serviceAccounts": {"selector": "role == 'cook'"}}}),
        &query(),
        r#"service account web-account of source shop/web has no label role, which must be "cook""#,
    );
    check(
        &json!({"source": {"namespaceSelector": "has(team)"}}),
        &query(),
        "namespace shop of source shop/web has no label team",
    );
    check_in(
        "NetworkPolicy",
        &json!({"namespace": "shop", "name": "only"}),
        "ingress",
        &json!({"source": {"selector": "all()"}}),
        &Flow {
            source: host(),
            ..query()
        },
        "it is for pods of namespace shop, and source host/n1-eth0 is in no namespace",
    );
    check(
        &json!({"source": {"selector": "app == 'a' || has(b)", "namespaceSelector": "all()"}}),
        &query(),
        r#"source shop/web is not what it is for: (app == "a" or label b)"#,
    );
}

#[test]
fn excluded_selectors() {
    check(
        &json!({"source": {"notSelector": "app == 'web'"}}),
        &query(),
        "source shop/web matches `app == 'web'`, which it excludes",
    );
    // Besides a selector they are one more term.
    check(
        &json!({"source": {"selector": "all()", "notSelector": "app == 'web'"}}),
        &query(),
        r#"label app of source shop/web is "web", which it excludes"#,
    );
}

#[test]
fn what_is_no_endpoint_is_named_by_its_address() {
    let from_partner = Flow {
        source: outside("203.0.113.9"),
        ..query()
    };
    check(
        &json!({"source": {"selector": "app == 'web'"}}),
        &from_partner,
        "it is for endpoints with app == \"web\", and source 203.0.113.9 is none of them, nor in a network set",
    );
    check(
        &json!({"source": {"notSelector": "role == 'partner'"}}),
        &from_partner,
        "source 203.0.113.9 matches `role == 'partner'`, which it excludes",
    );
    let from_host = Flow {
        source: host(),
        ..query()
    };
    check(
        &json!({"source": {"selector": "rack == '8'"}}),
        &from_host,
        r#"label rack of source host/n1-eth0 is "7", not "8""#,
    );
}

#[test]
fn ports() {
    let tcp = |side: Value| json!({"protocol": "TCP", "destination": side});
    check(
        &tcp(json!({"ports": [80, "8080:8090"]})),
        &query(),
        "destination port is 5432, not 80, 8080:8090",
    );
    check(
        &tcp(json!({"ports": ["http", "https", 443]})),
        &query(),
        "destination port is 5432, not 443, one that shop/db calls http, https",
    );
    check(
        &tcp(json!({"notPorts": ["5000:6000"]})),
        &query(),
        "destination port is 5432, and it excludes 5000:6000",
    );
    check(
        &tcp(json!({"notPorts": ["sql", 80]})),
        &query(),
        "destination port is 5432, and it excludes what shop/db calls sql",
    );
    check(
        &json!({"protocol": "TCP", "source": {"ports": [80]}}),
        &query(),
        "source port is 40000, not 80",
    );
    let without = Flow {
        destination_port: None,
        ..query()
    };
    check(
        &tcp(json!({"ports": [80]})),
        &without,
        "destination port is not given, not 80",
    );
    // Ports with names are looked for among what the selector matches.
    check(
        &tcp(json!({"selector": "app == 'web'", "ports": ["sql"]})),
        &query(),
        r#"label app of destination shop/db is "db", not "web""#,
    );
}

#[test]
fn services() {
    let metadata = json!({"namespace": "shop", "name": "only"});
    let behind = |service: &str| json!({"destination": {"services": {"name": service}}});
    let check = |rule: &Value, flow: &Flow, expected: &str| {
        check_in("NetworkPolicy", &metadata, "egress", rule, flow, expected);
    };
    check(&behind("db"), &query(), "");
    check(
        &behind("cache"),
        &query(),
        "destination shop/db port 5432 is no endpoint of service shop/cache",
    );
    let to_other_port = Flow {
        destination_port: Some(5433),
        ..query()
    };
    check(
        &behind("db"),
        &to_other_port,
        "destination shop/db port 5433 is no endpoint of service shop/db",
    );
    let from_service = json!({"source": {"services": {"name": "db"}}});
    check_in(
        "NetworkPolicy",
        &metadata,
        "ingress",
        &from_service,
        &query(),
        "source shop/web is not behind service shop/db",
    );
}

#[test]
fn a_policy_of_a_namespace_sees_only_that_namespace() {
    let from_partner = Flow {
        source: outside("203.0.113.9"),
        ..query()
    };
    check_in(
        "NetworkPolicy",
        &json!({"namespace": "shop", "name": "only"}),
        "ingress",
        &json!({"source": {"selector": "role == 'partner'"}}),
        &from_partner,
        "it is for endpoints with role == \"partner\" of namespace shop, and source 203.0.113.9 is none of them, \
         nor in a network set",
    );
}
