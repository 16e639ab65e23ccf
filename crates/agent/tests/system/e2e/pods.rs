//! What pods may do, and what their labels change.

use serde_json::{Value, json};
use tortie_api::{Kind, Resource};

use crate::e2e::flow::Machine;
use crate::e2e::objects::{policy, resource};
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

on_all_data_planes!(
    a_pod_cannot_send_from_an_address_that_is_not_its_own,
    pods_reach_the_node_only_if_the_configuration_says_so,
    a_pod_that_gets_other_labels_is_treated_by_them,
    a_tier_decides_before_the_next_and_may_leave_it_to_that,
);

fn a_pod_cannot_send_from_an_address_that_is_not_its_own(plane: Plane) {
    let mut setting = Setting::new();
    let client = setting.add_pod("client", 1, &json!({}));
    let other = setting.add_pod("other", 2, &json!({}));
    let server = setting.add_pod("server", 3, &json!({}));
    let (outside, _) = setting.add_external("ext0", 1);
    let _agent = setting.start_agent(plane, &[]);
    let pretending = |to_be: &Machine| Machine {
        addresses: to_be.addresses.clone(),
        ..client.clone()
    };
    let (as_other, as_outside) = (pretending(&other), pretending(&outside));
    setting.await_flows(&[
        (client.tcp(&server, 80), true),
        (other.tcp(&server, 80), true),
        (outside.tcp(&server, 80), true),
        (as_other.tcp(&server, 80), false),
        (as_other.udp(&server, 80), false),
        (as_outside.tcp(&server, 80), false),
    ]);
}

fn pods_reach_the_node_only_if_the_configuration_says_so(plane: Plane) {
    let mut setting = Setting::new();
    let pod = setting.add_pod("pod", 1, &json!({}));
    let (outside, node) = setting.add_external("ext0", 1);
    let _agent = setting.start_agent(plane, &[]);
    setting.await_flows(&[
        (pod.tcp(&outside, 80), true),
        (outside.tcp(&node, 80), true),
        (pod.tcp(&node, 80), false),
    ]);
    for (action, is_allowed) in [("Accept", true), ("Drop", false), ("Return", true)] {
        let spec = json!({"defaultEndpointToHostAction": action});
        setting.put(resource(Kind::FelixConfiguration, "", "default", &spec));
        setting.await_flows(&[
            (pod.tcp(&node, 80), is_allowed),
            (pod.tcp(&outside, 80), true),
        ]);
    }
}

fn a_pod_that_gets_other_labels_is_treated_by_them(plane: Plane) {
    let mut setting = Setting::new();
    let server = setting.add_pod("server", 1, &json!({"role": "server"}));
    let (guest, mut endpoint) = setting.prepare_pod("guest", 2, &json!({}));
    setting.put(endpoint.clone());
    let rule = json!([{"action": "Allow", "source": {"selector": "role == 'trusted'"}}]);
    for role in ["server", "closed"] {
        setting.put(policy(
            role,
            &json!({"selector": format!("role == '{role}'"), "types": ["Ingress"], "ingress": rule}),
        ));
    }
    let _agent = setting.start_agent(plane, &[]);
    let (out, back) = (guest.tcp(&server, 80), server.tcp(&guest, 80));
    setting.await_flows(&[(out, false), (back, true)]);
    for (role, goes_out, comes_back) in [
        ("trusted", true, true),
        ("closed", false, false),
        ("trusted", true, true),
        ("none", false, true),
    ] {
        let labels = &mut endpoint.metadata_mut().labels;
        labels.insert("role".into(), role.into());
        setting.put(endpoint.clone());
        setting.await_flows(&[(out, goes_out), (back, comes_back)]);
    }
}

fn a_tier_decides_before_the_next_and_may_leave_it_to_that(plane: Plane) {
    let mut setting = Setting::new();
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    setting.put(resource(
        Kind::Tier,
        "",
        "first",
        &json!({"order": 10, "defaultAction": "Deny"}),
    ));
    let rule = |action: &str, port: u16| json!({"action": action, "protocol": "TCP", "destination": {"ports": [port]}});
    let first = |rules: Value| tiered("first", &rules);
    setting.put(first(json!([
        rule("Allow", 80),
        rule("Deny", 81),
        rule("Pass", 82),
        rule("Pass", 83),
    ])));
    setting.put(tiered(
        "default",
        &json!([
            rule("Deny", 80),
            rule("Allow", 81),
            rule("Allow", 82),
            rule("Allow", 84)
        ]),
    ));
    let _agent = setting.start_agent(plane, &[]);
    let ports = |expected: [bool; 5]| {
        let ports = (80..).zip(expected);
        ports.map(|(port, is_allowed)| (client.tcp(&server, port), is_allowed))
    };
    let expected: Vec<_> = ports([true, false, true, false, false]).collect();
    setting.await_flows(&expected);
    // Without a policy for the pod, the tier has no say.
    setting.delete(&first(json!([])));
    let expected: Vec<_> = ports([false, true, true, false, true]).collect();
    setting.await_flows(&expected);
}

/// A policy of a tier for what the server receives.
fn tiered(tier: &str, rules: &Value) -> Resource {
    resource(
        Kind::GlobalNetworkPolicy,
        "",
        &format!("{tier}.server"),
        &json!({
            "tier": tier,
            "selector": "role == 'server'",
            "types": ["Ingress"],
            "ingress": rules,
        }),
    )
}
