//! A datastore that goes away, and one that holds what it should not.

use serde_json::json;
use tortie_store::{Key, Precondition};

use crate::e2e::etcd::WithEtcd;
use crate::e2e::flow::eventually;
use crate::e2e::objects::policy;
use crate::e2e::planes::Plane;

on_both_data_planes!(
    without_the_datastore_everything_stays_in_force_and_its_return_brings_what_is_new,
    what_was_deleted_while_the_datastore_was_away_and_its_history_forgotten_is_not_in_force,
    a_bad_object_is_reported_and_all_others_are_in_force,
    a_condition_that_is_not_known_widens_no_rule,
);

fn without_the_datastore_everything_stays_in_force_and_its_return_brings_what_is_new(plane: Plane) {
    let mut world = WithEtcd::new();
    let setting = &mut world.setting;
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let only = |port: u16| {
        let rule = json!({"action": "Allow", "protocol": "UDP", "destination": {"ports": [port]}});
        policy(
            "only",
            &json!({"selector": "role == 'server'", "types": ["Ingress"], "ingress": [rule]}),
        )
    };
    setting.put(only(7000));
    let short = [
        ("nftablesrefreshinterval", "1"),
        ("iptablesrefreshinterval", "1"),
    ];
    let agent = setting.start_agent(plane, &short);
    let before = [
        (client.udp(&server, 7000), true),
        (client.udp(&server, 7001), false),
        (client.tcp(&server, 7000), false),
    ];
    setting.await_flows(&before);
    let open = client.datagrams(&server, 7000);
    let closed = client.datagrams(&server, 7001);
    world.kill();
    for _ in 0..10 {
        closed.go_on();
        open.await_arrivals();
    }
    world.setting.check_flows(&before);
    assert_eq!(agent.health.readiness(), Ok(()), "it still enforces");
    let _etcd = world.start_again();
    assert_eq!(closed.arrived(), 0);
    assert_eq!(open.lost(), []);
    let setting = &mut world.setting;
    eventually("etcd answers", &true, || setting.try_put(only(7001)));
    drop(closed);
    setting.await_flows(&[
        (client.udp(&server, 7000), false),
        (client.udp(&server, 7001), true),
    ]);
}

fn what_was_deleted_while_the_datastore_was_away_and_its_history_forgotten_is_not_in_force(
    plane: Plane,
) {
    let mut world = WithEtcd::new();
    let setting = &mut world.setting;
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let closed = |role: &str| {
        let spec = json!({"selector": format!("role == '{role}'"), "types": ["Ingress"]});
        policy(role, &spec)
    };
    setting.put(closed("server"));
    let _agent = setting.start_agent(plane, &[]);
    let (there, back) = (client.tcp(&server, 80), server.tcp(&client, 80));
    setting.await_flows(&[(there, false), (back, true)]);
    world.kill();
    world.meanwhile(|store, runtime| {
        let (key, any) = (Key::of(&closed("server")), Precondition::default());
        let deleted = store.delete(&key, &any);
        runtime.block_on(deleted).unwrap();
        runtime.block_on(store.create(closed("client"))).unwrap();
    });
    world.setting.check_flows(&[(there, false), (back, true)]);
    let _etcd = world.start_again();
    world.setting.await_flows(&[(there, true), (back, false)]);
}

fn a_bad_object_is_reported_and_all_others_are_in_force(plane: Plane) {
    let mut world = WithEtcd::new();
    let setting = &mut world.setting;
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let other = setting.add_pod("other", 3, &json!({"role": "other"}));
    let deny = |port: u16| {
        let rules = json!([
            {"action": "Deny", "protocol": "TCP", "destination": {"ports": [port]}},
            {"action": "Allow"},
        ]);
        let spec = json!({"selector": "role == 'server'", "types": ["Ingress"], "ingress": rules});
        policy("good", &spec)
    };
    setting.put(deny(80));
    world.put_raw("globalnetworkpolicies/default.bad-from-the-start", "{");
    let agent = world.setting.start_agent(plane, &[]);
    assert!(agent.metrics.problems.get() >= 1, "it is not reported");
    world.setting.await_flows(&[
        (client.tcp(&server, 80), false),
        (client.tcp(&server, 81), true),
    ]);
    let known = agent.metrics.problems.get();
    world.put_raw(
        "globalnetworkpolicies/default.bad",
        r#"{"spec": {"order": {}, "selector": "role == 'nobody'"}}"#,
    );
    eventually("the second is reported", &true, || {
        agent.metrics.problems.get() > known
    });
    world.setting.put(deny(81));
    world.setting.await_flows(&[
        (client.tcp(&server, 80), true),
        (client.tcp(&server, 81), false),
    ]);
    // Of the first nobody knows what it closes.
    let problem = agent.health.readiness().unwrap_err();
    assert!(
        problem.contains("(default.bad-from-the-start)"),
        "{problem}"
    );
    // A policy whose rules cannot be read denies, for want of a version before it.
    let known = agent.metrics.problems.get();
    world.put_raw(
        "globalnetworkpolicies/default.unreadable",
        &json!({
            "apiVersion": "projectcalico.org/v3",
            "kind": "GlobalNetworkPolicy",
            "metadata": {"name": "default.unreadable"},
            "spec": {
                "selector": "role == 'other'",
                "types": ["Ingress"],
                "ingress": [{"action": "Allow", "source": {"selector": "role =="}}],
            },
        })
        .to_string(),
    );
    eventually("the third is reported", &true, || {
        agent.metrics.problems.get() > known
    });
    world.setting.await_flows(&[
        (client.tcp(&other, 80), false),
        (client.tcp(&server, 80), true),
        (client.tcp(&server, 81), false),
    ]);
    // A version that cannot be read leaves the one before it in force: of a policy, and of a profile.
    let known = agent.metrics.problems.get();
    for path in ["globalnetworkpolicies/default.good", "profiles/open"] {
        world.put_raw(path, r#"{"spec": {"ingress": [{"action": "@eny"}]}}"#);
    }
    eventually("both are reported", &true, || {
        agent.metrics.problems.get() > known + 1
    });
    let kept = [
        (client.tcp(&server, 80), true),
        (client.tcp(&server, 81), false),
        (server.tcp(&client, 80), true),
    ];
    world.setting.check_flows(&kept);
    // An agent that starts now knows no version before it.
    agent.end();
    let _agent = world.setting.start_agent(plane, &[]);
    world
        .setting
        .await_flows(&kept.map(|(flow, _)| (flow, false)));
}

fn a_condition_that_is_not_known_widens_no_rule(plane: Plane) {
    let mut world = WithEtcd::new();
    let setting = &mut world.setting;
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let put = |world: &WithEtcd, rules: &serde_json::Value| {
        let policy = json!({
            "apiVersion": "projectcalico.org/v3",
            "kind": "GlobalNetworkPolicy",
            "metadata": {"name": "default.newer"},
            "spec": {"selector": "role == 'server'", "types": ["Ingress"], "ingress": rules},
        });
        world.put_raw("globalnetworkpolicies/default.newer", &policy.to_string());
    };
    put(&world, &json!([{"action": "Allow"}]));
    let _agent = world.setting.start_agent(plane, &[]);
    let ports = |open: [bool; 2]| {
        [
            (client.tcp(&server, 80), open[0]),
            (client.tcp(&server, 81), open[1]),
        ]
    };
    world.setting.await_flows(&ports([true, true]));
    let one = json!({"ports": [80]});
    put(
        &world,
        &json!([
            {"action": "Deny", "protocol": "TCP", "destination": one, "source": {"domains": ["x"]}},
            {"action": "Allow"},
        ]),
    );
    world.setting.await_flows(&ports([false, true]));
    put(
        &world,
        &json!([
            {"action": "Allow", "protocol": "TCP", "destination": one},
            {"action": "Allow", "source": {"domains": ["x"]}},
            {"action": "Pass", "during": "the night"},
        ]),
    );
    world.setting.await_flows(&ports([true, false]));
}
