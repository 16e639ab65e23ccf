//! Named ports and large sets.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;
use tortie_api::{Kind, Resource};

use crate::e2e::flow::Machine;
use crate::e2e::objects::{labelled, policy};
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

on_all_data_planes!(a_named_port_is_the_number_that_each_pod_gives_it);

on_both_data_planes!(a_set_of_100000_members_has_exactly_its_members);

const MEMBERS: u32 = 100_000;

/// Objects that make the set together.
const PARTS: u32 = 10;

/// What is not in every version of the set.
const CHANGED: u32 = 100;

fn a_named_port_is_the_number_that_each_pod_gives_it(plane: Plane) {
    let mut setting = Setting::new();
    // The port `http` of a pod is 8000 and its number.
    let one = setting.add_pod("one", 1, &json!({"role": "server"}));
    let two = setting.add_pod("two", 2, &json!({"role": "server"}));
    let client = setting.add_pod("client", 3, &json!({"role": "client"}));
    let _agent = setting.start_agent(plane, &[]);
    let rule = |what: &str| {
        json!([{
            "action": "Allow",
            "protocol": "TCP",
            what: {"selector": "role == 'server'", "ports": ["http"]},
        }])
    };
    let expected = [
        (client.tcp(&one, 8001), true),
        (client.tcp(&one, 8002), false),
        (client.tcp(&two, 8001), false),
        (client.tcp(&two, 8002), true),
        (client.udp(&one, 8001), false),
    ];
    let ingress = policy(
        "named",
        &json!({"selector": "role == 'server'", "types": ["Ingress"], "ingress": rule("destination")}),
    );
    setting.put(ingress.clone());
    setting.await_flows(&expected);
    setting.delete(&ingress);
    setting.await_flows(&expected.map(|(flow, _)| (flow, true)));
    let egress = policy(
        "named",
        &json!({"selector": "role == 'client'", "types": ["Egress"], "egress": rule("destination")}),
    );
    setting.put(egress);
    setting.await_flows(&expected);
    // A pod that comes later has its port as soon as it has its address.
    let three = setting.add_pod("three", 4, &json!({"role": "server"}));
    setting.await_flows(&[
        (client.tcp(&three, 8004), true),
        (client.tcp(&three, 8001), false),
    ]);
}

fn a_set_of_100000_members_has_exactly_its_members(plane: Plane) {
    let mut setting = Setting::new();
    let server = setting.add_pod("server", 1, &json!({"role": "server"}));
    let (outside, _) = setting.add_external("ext0", 1);
    setting.route("172.16.0.0/12".parse().unwrap(), "ext0");
    for part in 0..PARTS {
        setting.put(part_of_set(part, 0));
    }
    setting.put(policy(
        "members",
        &json!({
            "selector": "role == 'server'",
            "types": ["Ingress"],
            "ingress": [{"action": "Allow", "source": {"selector": "list == 'large'"}}],
        }),
    ));
    let sources: Vec<(u32, Machine)> =
        [0, 1, 4_999, 50_000, 65_535, 99_899, 99_900, 99_999, 100_000]
            .map(|number| (number, outside.with_address(member(number))))
            .into();
    let expected = |count: u32| -> Vec<_> {
        let flows = sources.iter();
        let flows = flows.map(|(number, source)| (source.tcp(&server, 80), *number < count));
        flows.collect()
    };
    let _agent = setting.start_agent(plane, &[]);
    setting.await_flows(&expected(MEMBERS));
    setting.put(part_of_set(PARTS - 1, CHANGED));
    setting.await_flows(&expected(MEMBERS - CHANGED));
    setting.put(part_of_set(PARTS - 1, 0));
    setting.await_flows(&expected(MEMBERS));
    for part in 0..PARTS {
        setting.delete(&part_of_set(part, 0));
    }
    setting.await_flows(&expected(0));
}

/// A part of the set, without so many at its end.
fn part_of_set(part: u32, without: u32) -> Resource {
    let length = MEMBERS / PARTS;
    let members = part * length..(part + 1) * length - without;
    let nets: Vec<String> = members.map(|number| member(number).to_string()).collect();
    let name = format!("part-{part}");
    let labels = json!({"list": "large"});
    labelled(
        Kind::GlobalNetworkSet,
        "",
        &name,
        &labels,
        &json!({"nets": nets}),
    )
}

/// A member: no two of them are neighbours, so that they cannot be told as ranges.
fn member(number: u32) -> IpAddr {
    let first = u32::from(Ipv4Addr::new(172, 16, 0, 1));
    Ipv4Addr::from(first + 3 * number).into()
}
