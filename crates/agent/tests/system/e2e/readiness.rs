//! A datastore that says that it is not ready, and one that says nothing.

use serde_json::json;
use tortie_api::{Kind, Resource};

use crate::e2e::agent::RunningAgent;
use crate::e2e::flow::{Machine, eventually};
use crate::e2e::objects::{policy, resource};
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

on_both_data_planes!(
    a_datastore_that_was_not_ready_for_a_while_is_followed_again,
    what_is_enforced_stays_while_an_agent_starts_on_a_datastore_that_is_not_ready,
    what_is_enforced_stays_while_an_agent_starts_on_an_empty_datastore,
    a_configuration_that_cannot_work_ends_nothing,
    there_is_one_agent_at_a_time,
);

/// A client, and a server that policy closes.
struct Closed {
    setting: Setting,
    client: Machine,
    server: Machine,
}

impl Closed {
    fn new() -> Self {
        let mut setting = Setting::new();
        let client = setting.add_pod("client", 1, &json!({"role": "client"}));
        let server = setting.add_pod("server", 2, &json!({"role": "server"}));
        setting.put(deny(80));
        Self {
            setting,
            client,
            server,
        }
    }

    /// Waits until exactly this port is closed.
    #[track_caller]
    fn await_closed(&mut self, port: u16) {
        let (client, server) = (&self.client, &self.server);
        let flows = [80, 81].map(|each| (client.tcp(server, each), each != port));
        self.setting.await_flows(&flows);
    }

    #[track_caller]
    fn check_closed(&mut self, port: u16) {
        let (client, server) = (&self.client, &self.server);
        let flows = [80, 81].map(|each| (client.tcp(server, each), each != port));
        self.setting.check_flows(&flows);
    }
}

fn a_datastore_that_was_not_ready_for_a_while_is_followed_again(plane: Plane) {
    let mut world = Closed::new();
    let agent = world.setting.start_agent(plane, &[]);
    world.await_closed(80);
    world.setting.put(information(false));
    await_not_ready(&agent);
    world.setting.put(deny(81));
    let updates = agent.metrics.updates.get();
    world
        .setting
        .put(policy("more", &json!({"selector": "role == 'nobody'"})));
    eventually("the change is heard of", &true, || {
        agent.metrics.updates.get() > updates
    });
    world.check_closed(80);
    world.setting.put(information(true));
    world.await_closed(81);
    eventually("ready again", &Ok(()), || agent.health.readiness());
    assert_eq!(agent.metrics.datastore_ready.get(), 1);

    // The same if the object that says so is gone for a while.
    world.setting.delete(&information(true));
    await_not_ready(&agent);
    world.setting.put(information(true));
    world.setting.put(deny(80));
    world.await_closed(80);
}

fn what_is_enforced_stays_while_an_agent_starts_on_a_datastore_that_is_not_ready(plane: Plane) {
    let mut world = Closed::new();
    world.setting.start_agent(plane, &[]).end();
    world.await_closed(80);
    // As in the midst of an import.
    world.setting.put(information(false));
    world.setting.delete(&deny(80));
    world.setting.forget_ready();
    let agent = world.setting.begin_agent(plane, &[]);
    await_not_ready(&agent);
    world.check_closed(80);
    assert!(!world.setting.is_said_to_be_ready(), "CNI plugins wait");
    world.setting.put(deny(81));
    world.setting.put(information(true));
    world.await_closed(81);
    eventually("CNI plugins are told", &true, || {
        world.setting.is_said_to_be_ready()
    });
}

fn what_is_enforced_stays_while_an_agent_starts_on_an_empty_datastore(plane: Plane) {
    let mut world = Closed::new();
    world.setting.start_agent(plane, &[]).end();
    world.await_closed(80);
    let empty = Setting::new();
    empty.delete(&information(true));
    let full = std::mem::replace(&mut world.setting.store, empty.store);
    let agent = world.setting.begin_agent(plane, &[]);
    await_not_ready(&agent);
    world.check_closed(80);
    agent.end();
    world.setting.store = full;
    world.setting.start_agent(plane, &[]).end();
    world.check_closed(80);
}

fn a_configuration_that_cannot_work_ends_nothing(plane: Plane) {
    let mut world = Closed::new();
    let agent = world.setting.start_agent(plane, &[]);
    world.await_closed(80);
    let configure = |spec| resource(Kind::FelixConfiguration, "", "default", &spec);
    for bad in [
        json!({"iptablesMarkMask": 1, "nftablesMarkMask": 1}),
        json!({"interfacePrefix": "*"}),
    ] {
        world.setting.put(configure(bad.clone()));
        eventually("it is told", &true, || {
            let problem = agent.health.readiness().err().unwrap_or_default();
            problem.contains("configuration: ")
        });
        // The agent still does its work.
        world.setting.put(deny(81));
        world.await_closed(81);
        world.setting.put(deny(80));
        world.await_closed(80);
        world.setting.put(configure(json!({})));
        eventually("put right", &Ok(()), || agent.health.readiness());
    }
    agent.end();
    world
        .setting
        .put(configure(json!({"interfacePrefix": "*"})));
    let agent = world.setting.start_agent(plane, &[]);
    let problem = agent.health.readiness().unwrap_err();
    assert!(problem.contains("InterfacePrefix"), "{problem}");
    world.setting.put(deny(81));
    world.await_closed(81);
}

fn there_is_one_agent_at_a_time(plane: Plane) {
    let mut world = Closed::new();
    let first = world.setting.start_agent(plane, &[]);
    world.await_closed(80);
    let refused = world.setting.begin_agent(plane, &[]).ended().unwrap_err();
    let own = format!("process {} (a test)", std::process::id());
    assert!(refused.to_string().contains(&own), "{refused}");
    world.setting.put(deny(81));
    world.await_closed(81);

    let second = world.setting.take_over(plane);
    first.ended().unwrap();
    world.setting.put(deny(80));
    world.await_closed(80);
    second.end();
    // The name ends with the agent.
    world.setting.start_agent(plane, &[]).end();
}

#[track_caller]
fn await_not_ready(agent: &RunningAgent) {
    eventually("the datastore is not ready", &true, || {
        let problem = agent.health.readiness().err().unwrap_or_default();
        problem.contains("datastoreReady")
    });
    assert_eq!(agent.metrics.datastore_ready.get(), 0);
}

fn information(is_ready: bool) -> Resource {
    let spec = json!({"datastoreReady": is_ready});
    resource(Kind::ClusterInformation, "", "default", &spec)
}

/// Closes one port of the server.
fn deny(port: u16) -> Resource {
    let rules = json!([
        {"action": "Deny", "protocol": "TCP", "destination": {"ports": [port]}},
        {"action": "Allow"},
    ]);
    let spec = json!({"selector": "role == 'server'", "types": ["Ingress"], "ingress": rules});
    policy("guard", &spec)
}
