//! What cannot be read is reported with object, field, value and what would be right, and takes nothing else down.

use serde_json::{Value, json};
use tortie_bgp::{Plan, render};

use crate::world::{configuration, node, object, peer, plan, sessions};

/// The one problem that an object makes, as `kind(name): field: reason`; the mesh stays.
#[track_caller]
fn check(object: Value, expected: &str) -> Plan {
    let plan = plan(&[object]);
    let problems: Vec<String> = plan.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, [expected]);
    assert!(
        sessions(&plan).contains(&"Mesh_192_0_2_2"),
        "{:?}",
        sessions(&plan)
    );
    plan
}

#[track_caller]
fn check_peer(spec: Value, expected: &str) {
    let plan = check(peer("tor", spec), &format!("BGPPeer(tor): {expected}"));
    assert_eq!(sessions(&plan), ["Mesh_192_0_2_2"]);
}

/// A peer that has its session, but for this.
#[track_caller]
fn check_option(mut spec: Value, expected: &str) {
    spec["peerIP"] = "192.0.2.254".into();
    spec["asNumber"] = 65000.into();
    let plan = check(peer("tor", spec), &format!("BGPPeer(tor): {expected}"));
    assert_eq!(sessions(&plan), ["Global_192_0_2_254", "Mesh_192_0_2_2"]);
}

#[test]
fn peers_without_a_neighbour_have_no_session() {
    let right = "is not an address of a peer, which may have a port, such as 192.0.2.1, 192.0.2.1:1179 or \
                 [2001:db8::1]:1179; no session is opened";
    for wrong in ["192.0.2.300", "fe80::1", "0.0.0.0", "x\\\"; } #", ""] {
        let shown = wrong.escape_debug();
        check_peer(
            json!({"peerIP": wrong, "asNumber": 65000}),
            &format!("spec.peerIP: `{shown}` {right}"),
        );
    }
    check_peer(
        json!({"peerIP": "192.0.2.254"}),
        "spec.asNumber: it is missing or 0: say the neighbour's AS number, 1 to 4294967295; no session is opened",
    );
    check_peer(
        json!({"peerIP": "192.0.2.254", "asNumber": 1, "reachableBy": "2001:db8::1"}),
        "spec.reachableBy: `2001:db8::1` is not the IPv4 address of a gateway to 192.0.2.254; no session is opened",
    );
    check_peer(
        json!({"peerIP": "2001:db8::9", "asNumber": 1}),
        "spec.peerIP: Node(node1) has no IPv6 address from which a session with 2001:db8::9 could start: its \
         spec.bgp.ipv6Address is empty or cannot be read",
    );
}

#[test]
fn a_session_whose_password_is_missing_is_not_opened() {
    let password = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    check_peer(
        json!({"peerIP": "192.0.2.254", "asNumber": 1, "password": password}),
        "spec.password.secretKeyRef: there is no secret `s` with the key `k`; no session is opened",
    );
    let plan = plan(&[configuration(json!({ "nodeMeshPassword": password }))]);
    assert_eq!(sessions(&plan), [""; 0]);
    assert_eq!(
        plan.problems[0].to_string(),
        "BGPConfiguration(default): spec.nodeMeshPassword.secretKeyRef: there is no secret `s` with the key `k`; the mesh \
         has no sessions"
    );
}

#[test]
fn selectors_that_cannot_be_read_select_nobody() {
    let plan = plan(&[
        peer(
            "a",
            json!({"nodeSelector": "has(", "peerIP": "192.0.2.9", "asNumber": 1}),
        ),
        peer("b", json!({"peerSelector": "all() ||"})),
        peer("c", json!({"localWorkloadSelector": "==", "asNumber": 1})),
    ]);
    let fields: Vec<(&str, &str)> = plan
        .problems
        .iter()
        .map(|problem| (problem.name.as_str(), &*problem.field))
        .collect();
    let expected = [
        ("a", "spec.nodeSelector"),
        ("b", "spec.peerSelector"),
        ("c", "spec.localWorkloadSelector"),
    ];
    assert_eq!(fields, expected);
    assert!(
        plan.problems[0]
            .reason
            .starts_with("`has(` is not a selector: "),
        "{}",
        plan.problems[0]
    );
    assert_eq!(sessions(&plan), ["Mesh_192_0_2_2"]);
}

#[test]
fn options_that_bird_cannot_keep_to_are_left_out() {
    check_option(
        json!({"maxRestartTime": "2h"}),
        "spec.maxRestartTime: 7200s is not from 0s to 4095s, which is what BIRD can keep to; its default is used",
    );
    check_option(
        json!({"keepaliveTime": "241s"}),
        "spec.keepaliveTime: 241s is not from 1s to 240s, which is what BIRD can keep to; its default is used",
    );
    check_option(
        json!({"numAllowedLocalASNumbers": -1}),
        "spec.numAllowedLocalASNumbers: -1 is not how often something may be: 0 or more; it counts as 0",
    );
    check_option(
        json!({"filters": ["x'() {"]}),
        "spec.filters[0]: there is no BGPFilter `x\\'() {`; the session is without it",
    );
}

#[test]
fn communities_are_left_out_one_by_one() {
    let spec = json!({
        "communities": [{"name": "big", "value": "70000:1"}],
        "prefixAdvertisements": [{"cidr": "10.0.0.0/16", "communities": ["1:2", "big", "1:2)); reject; (("]}],
    });
    let plan = plan(&[configuration(spec)]);
    let problems: Vec<String> = plan.problems.iter().map(ToString::to_string).collect();
    let right = "a community: two numbers up to 65535, or three up to 4294967295, joined by `:`";
    let field = "BGPConfiguration(default): spec.prefixAdvertisements[0].communities";
    let expected = [
        format!("{field}[1]: `big` stands for `70000:1`, which is not {right}; it is left out"),
        format!(
            "{field}[2]: `1:2)); reject; ((` is neither {right} nor a name in spec.communities; it is left out"
        ),
    ];
    assert_eq!(problems, expected);
    let text = render::bird2(&plan);
    assert!(text.contains("bgp_community.add((1, 2));"), "{text}");
    assert_eq!(text.matches("bgp_community.add").count(), 1, "{text}");
}

#[test]
fn a_rule_that_cannot_be_read_lets_nothing_more_pass() {
    let spec = json!({"exportV4": [
        {"action": "Accept", "cidr": "10.0.0.0/8", "matchOperator": "In", "interface": "a b"},
        {"action": "Reject", "cidr": "10.0.0.0/8", "matchOperator": "In", "prefixLength": {"max": 40}},
        {"action": "Reject", "cidr": "10.1.0.0/16", "matchOperator": "Equal", "interface": "a\"b"},
    ]});
    let plan = plan(&[object("BGPFilter", "f", spec)]);
    let problems: Vec<String> = plan.problems.iter().map(ToString::to_string).collect();
    let expected = [
        "BGPFilter(f): spec.exportV4[0].interface: `a b` is not a name of an interface: 1 to 15 letters, digits, `_`, `.`, \
         `-` or, for any characters, `*`; the rule is left out",
        "BGPFilter(f): spec.exportV4[1].prefixLength: 40 is not a prefix length from 0 to 32; the rule rejects by its other \
         conditions",
        "BGPFilter(f): spec.exportV4[2].interface: `a\\\"b` is not a name of an interface: 1 to 15 letters, digits, `_`, \
         `.`, `-` or, for any characters, `*`; the rule rejects by its other conditions",
    ];
    assert_eq!(problems, expected);
    let text = render::bird2(&plan);
    let function = "function 'bgp_f_exportFilterV4'() {\n  reject;\n  if ((net = 10.1.0.0/16)) then { reject; }\n}";
    assert!(text.contains(function), "{text}");
}

#[test]
fn addresses_that_several_nodes_have_are_one_session() {
    let plan = plan(&[
        node("node3", "192.0.2.2/24"),
        node("node4", "192.0.2.1/24"),
        object(
            "Node",
            "node5",
            json!({"bgp": {"ipv4Address": "192.0.2.5"}}),
        ),
    ]);
    assert_eq!(sessions(&plan), ["Mesh_192_0_2_2", "Mesh_192_0_2_5"]);
    let problems: Vec<String> = plan.problems.iter().map(ToString::to_string).collect();
    let expected = |node: &str, address: &str, first: &str| {
        format!(
            "Node({node}): spec.bgp: {address} is the address of Node({first}) too; there is one session, for the first of them"
        )
    };
    assert_eq!(
        problems,
        [
            expected("node3", "192.0.2.2", "node2"),
            expected("node4", "192.0.2.1", "node1")
        ]
    );
}

#[test]
fn what_nobody_or_both_program_is_said() {
    let pool = object("IPPool", "p", json!({"cidr": "10.0.0.0/16"}));
    let disabled = configuration(json!({"programClusterRoutes": "Disabled"}));
    let reasons = |resources: &[Value]| -> Vec<String> {
        let problems = plan(resources).problems.into_iter();
        problems.map(|problem| problem.reason).collect()
    };
    let nobody = reasons(&[pool.clone(), disabled.clone()]);
    assert!(
        nobody[0].starts_with("nobody programs routes of pools without encapsulation"),
        "{nobody:?}"
    );
    let felix = object(
        "FelixConfiguration",
        "default",
        json!({"programClusterRoutes": "Enabled"}),
    );
    assert_eq!(reasons(&[pool.clone(), disabled, felix.clone()]), [""; 0]);
    let both = reasons(&[pool, felix]);
    assert!(
        both[0].starts_with("both BIRD and the agent program routes of pools without"),
        "{both:?}"
    );
}

#[test]
fn tunnels_are_not_for_bird_2() {
    let plan = plan(&[
        object(
            "IPPool",
            "p",
            json!({"cidr": "10.0.0.0/16", "ipipMode": "Always"}),
        ),
        configuration(json!({"programClusterRoutes": "Enabled"})),
        object(
            "FelixConfiguration",
            "default",
            json!({"programClusterRoutes": "Disabled"}),
        ),
    ]);
    assert_eq!(plan.problems, []);
    let problems = render::bird2_problems(&plan);
    assert_eq!(
        problems[0].to_string(),
        "BGPConfiguration(default): spec.programClusterRoutes: BIRD 2 programs no routes with IP-in-IP, which IPPool(p) and 0 \
         others have: set EnabledNoEncapOnly here, and EnabledIPIPOnly in spec.programClusterRoutes of the \
         FelixConfiguration, so that the agent does"
    );
    assert!(render::bird2(&plan).contains("if net ~ 10.0.0.0/16 then reject;"));
    let [_, _, (_, ipam), ..] = render::bird1(&plan)
        .files()
        .map(|(name, text)| (name, text.to_owned()));
    assert!(ipam.contains("if (net ~ 10.0.0.0/16) then { krt_tunnel=\"tunl0\"; accept; }"));
}

#[test]
fn settings_that_cannot_be_are_replaced_by_what_holds_without() {
    let wrong = json!({
        "asNumber": 0,
        "ipv4NormalRoutePriority": 0,
        "ignoredInterfaces": ["eth0", "*", "a b"],
        "programClusterRoutes": "Some",
        "serviceClusterIPs": [{"cidr": "10.96.0.0/40"}],
    });
    let plan = plan(&[configuration(wrong)]);
    let fields: Vec<&str> = plan
        .problems
        .iter()
        .map(|problem| &*problem.field)
        .collect();
    let expected = [
        "spec.asNumber",
        "spec.ignoredInterfaces[1]",
        "spec.ignoredInterfaces[2]",
        "spec.ipv4NormalRoutePriority",
        "spec.programClusterRoutes",
        "spec.serviceClusterIPs[0].cidr",
    ];
    assert_eq!(fields, expected);
    assert_eq!(plan.as_number, 64512);
    assert_eq!(plan.families.v4.normal_priority, 1024);
    assert!(render::bird2(&plan).contains("interface -\"eth0\", -\"cali*\","));
}
