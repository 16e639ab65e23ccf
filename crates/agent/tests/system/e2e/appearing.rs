//! Pods that appear: what is known about them is in force before the first packet reaches them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use serde_json::json;

use crate::e2e::flow::{Machine, PATIENCE, eventually};
use crate::e2e::objects::policy;
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

on_all_data_planes!(
    a_pod_is_closed_from_its_first_moment,
    a_route_never_comes_before_the_rules,
);

/// The port that policy lets through, and one that it does not.
const OPEN: u16 = 7000;
const CLOSED: u16 = 7001;

/// So many policies come with each pod, so that there is something to write.
const POLICIES: u16 = 30;

/// Writes policies for pods of a role. All but one allow ports that nobody asks for.
fn put_policies(setting: &Setting, role: &str) {
    for number in 0..POLICIES {
        let port = if number + 1 == POLICIES {
            OPEN
        } else {
            9000 + number
        };
        let allow = json!({"action": "Allow", "protocol": "UDP", "destination": {"ports": [port]}});
        let spec = json!({
            "order": number,
            "selector": format!("role == '{role}'"),
            "types": ["Ingress"],
            "ingress": [allow],
        });
        setting.put(policy(&format!("{role}-{number}"), &spec));
    }
}

fn a_pod_is_closed_from_its_first_moment(plane: Plane) {
    let mut setting = Setting::new();
    let client = setting.add_pod("client", 1, &json!({}));
    let _agent = setting.start_agent(plane, &[]);
    for number in 10..16 {
        let name = format!("guest{number}");
        let (guest, endpoint) = setting.prepare_pod(&name, number, &json!({"role": name}));
        if number % 2 == 0 {
            // Somebody else lets packets come as far as the rules.
            setting.route(IpNet::from(guest.ipv4()), &format!("cali{name}"));
        }
        let closed = client.datagrams(&guest, CLOSED);
        let open = client.datagrams(&guest, OPEN);
        closed.go_on();
        assert_eq!(open.arrived(), 0, "{name} was open before it was known");
        put_policies(&setting, &name);
        setting.put(endpoint);
        open.await_arrivals();
        closed.go_on();
        assert_eq!(closed.arrived(), 0, "{name} was open at first");
    }
}

fn a_route_never_comes_before_the_rules(plane: Plane) {
    let mut setting = Setting::new();
    let _agent = setting.start_agent(plane, &[]);
    for number in 10..14 {
        let name = format!("guest{number}");
        let (guest, endpoint) = setting.prepare_pod(&name, number, &json!({"role": name}));
        put_policies(&setting, &name);
        setting.put(endpoint);
        await_route_after_rules(&setting, plane, &guest);
    }
}

/// While rules cannot be written, a pod that appears gets no route and is not said to be ready.
#[test]
fn a_pod_without_rules_gets_no_route() {
    let plane = Plane::Nftables;
    let mut setting = Setting::new();
    setting.add_pod("server", 1, &json!({"role": "server"}));
    let rule = json!({"action": "Allow", "source": {"selector": "role == 'guest'"}});
    let spec = json!({"selector": "role == 'server'", "types": ["Ingress"], "ingress": [rule]});
    let with_set = policy("with-set", &spec);
    setting.put(with_set.clone());
    let agent = setting.start_agent(plane, &[]);
    let sets = setting.run("nft", "list sets ip");
    let set = sets.lines().find(|line| line.contains("set cali40s-"));
    let set = set.unwrap().trim().trim_start_matches("set ");
    let set = set.trim_end_matches([' ', '{']);
    // A set that another rule looks into cannot go, and with it goes nothing else either.
    setting.run("nft", "add chain ip calico theirs");
    setting.run(
        "nft",
        &format!("add rule ip calico theirs ip saddr @{set} counter"),
    );
    setting.delete(&with_set);
    eventually("the kernel refuses", &true, || {
        agent.metrics.failures.get() > 0
    });
    let (guest, endpoint) = setting.prepare_pod("guest", 9, &json!({"role": "guest"}));
    setting.put(endpoint);
    await_route_after_rules(&setting, plane, &guest);
}

/// Waits for the route to a pod, and asserts that its rules were there first.
#[track_caller]
fn await_route_after_rules(setting: &Setting, plane: Plane, pod: &Machine) {
    let end = Instant::now() + PATIENCE;
    while !has_route(setting, pod.ipv4()) {
        assert!(Instant::now() < end, "no route to {}", pod.name);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(
        has_rules(setting, plane, &pod.name),
        "there was a route to {} before its rules",
        pod.name
    );
}

fn has_route(setting: &Setting, address: IpAddr) -> bool {
    let routes = setting.run("ip", &format!("-4 route show {address}"));
    !routes.trim().is_empty()
}

fn has_rules(setting: &Setting, plane: Plane, pod: &str) -> bool {
    let chain = format!("cali-tw-cali{pod}");
    match plane.save_programs().first() {
        None => {
            let chains = setting.run("nft", "list chains ip");
            chains.contains(&format!("chain filter-{chain} "))
        }
        Some(save) => {
            let saved = setting.run(save, "-t filter");
            saved.contains(&format!(":{chain} "))
        }
    }
}
