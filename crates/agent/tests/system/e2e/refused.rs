//! What the kernel refuses denies, is named, and keeps nothing else from being enforced.

use serde_json::json;
use tortie_api::Kind;

use crate::e2e::flow::eventually;
use crate::e2e::objects::{labelled, policy};
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

/// So many members fit into a set.
const SIZE: usize = 4;

fn check_a_set_that_is_too_large(plane: Plane) {
    let mut setting = Setting::new();
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let other = setting.add_pod("other", 3, &json!({"role": "other"}));
    let size = SIZE.to_string();
    let agent = setting.start_agent(plane, &[("maxipsetsize", &size)]);
    let open = [
        (client.tcp(&server, 80), true),
        (client.tcp(&other, 80), true),
    ];
    setting.await_flows(&open);

    let put_list = |setting: &Setting, members: usize| {
        let of_both = |n| [format!("172.30.{n}.0/24"), format!("fd00:30:{n}::/48")];
        let nets: Vec<String> = (0..members).flat_map(of_both).collect();
        let labels = json!({"list": "long"});
        let spec = json!({"nets": nets});
        setting.put(labelled(Kind::GlobalNetworkSet, "", "long", &labels, &spec));
    };
    let put_policy = |setting: &Setting, name: &str, role: &str, ingress: serde_json::Value| {
        let selector = format!("role == '{role}'");
        let spec = json!({"selector": selector, "types": ["Ingress"], "ingress": ingress});
        setting.put(policy(name, &spec));
    };
    put_list(&setting, SIZE + 1);
    let but_list = json!([{"action": "Allow", "source": {"notSelector": "list == 'long'"}}]);
    put_policy(&setting, "uses", "server", but_list);
    let denied = [
        (client.tcp(&server, 80), false),
        (client.tcp(&other, 80), true),
    ];
    setting.await_flows(&denied);
    // One for each IP version.
    eventually("counted", &2, || agent.metrics.refused.get());
    let problem = agent.health.readiness().expect_err("one is refused");
    let is_named = problem.contains("GlobalNetworkPolicy default.uses was refused and denies");
    assert!(is_named, "{problem}");

    let status = agent.report.status();
    let refused = |version| {
        let mut refused = status.refused.iter();
        refused.find(|one| one.ip_version == version).unwrap()
    };
    for version in [4, 6] {
        let one = refused(version);
        assert_eq!((&*one.what, &one.chain), ("IP set", &None), "{one:?}");
        assert!(problem.contains(&one.name), "{one:?}");
    }
    assert_eq!(status.dataplane, "iptables");
    assert!(!status.ready);
    assert_eq!(status.problems[0].what, "data plane");

    // What comes later is enforced.
    put_policy(&setting, "later", "other", json!([]));
    let both = [
        (client.tcp(&server, 80), false),
        (client.tcp(&other, 80), false),
    ];
    setting.await_flows(&both);

    put_list(&setting, SIZE);
    let repaired = [
        (client.tcp(&server, 80), true),
        (client.tcp(&other, 80), false),
    ];
    setting.await_flows(&repaired);
    eventually("none is refused", &0, || agent.metrics.refused.get());
    assert_eq!(agent.health.readiness(), Ok(()));
    assert_eq!(agent.report.status().refused, []);
}

#[test]
fn a_set_that_is_too_large_for_legacy_iptables() {
    check_a_set_that_is_too_large(Plane::Iptables);
}

#[test]
fn a_set_that_is_too_large_for_the_iptables_of_nftables() {
    check_a_set_that_is_too_large(Plane::IptablesNft);
}
