//! What goes on while policies, pods and agents come and go.

use serde_json::{Value, json};
use tortie_api::{Kind, Resource};
use tortie_testkit::net::Datagrams;

use crate::e2e::flow::Machine;
use crate::e2e::objects::{labelled, policy};
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;
use crate::e2e::traffic::Conversation;

on_all_data_planes!(
    traffic_is_not_disturbed_by_changes_that_do_not_concern_it,
    traffic_is_not_disturbed_by_a_restart_of_the_agent,
    what_changed_while_the_agent_was_away_is_in_force_when_it_is_back,
    a_change_of_policy_changes_exactly_what_it_says,
    a_pod_is_never_open_while_it_comes_and_goes,
);

/// The port that policy lets through, and one that it does not.
const OPEN_PORT: u16 = 7000;
const CLOSED_PORT: u16 = 7001;

/// A client and a server that takes only what comes to one port.
struct Pair {
    setting: Setting,
    client: Machine,
    server: Machine,
}

/// Traffic that must go on, and traffic that must never come through.
struct Watched {
    conversations: Vec<Conversation>,
    open: Datagrams,
    closed: Datagrams,
}

impl Pair {
    fn new() -> Self {
        let mut setting = Setting::new();
        let client = setting.add_pod("client", 1, &json!({"role": "client"}));
        let server = setting.add_pod("server", 2, &json!({"role": "server"}));
        setting.put(guard("server"));
        Self {
            setting,
            client,
            server,
        }
    }

    /// Starts traffic, once policy is in force.
    fn watch(&mut self) -> Watched {
        let Self {
            setting,
            client,
            server,
        } = self;
        setting.await_flows(&[
            (client.udp(server, OPEN_PORT), true),
            (client.udp(server, CLOSED_PORT), false),
        ]);
        let addresses = server.addresses.clone().into_iter();
        let open = |address| Conversation::open(client, server, address, OPEN_PORT);
        Watched {
            conversations: addresses.map(open).collect(),
            open: client.datagrams(server, OPEN_PORT),
            closed: client.datagrams(server, CLOSED_PORT),
        }
    }
}

impl Watched {
    /// Lets all of it go on for some time.
    #[track_caller]
    fn go_on(&mut self) {
        self.closed.go_on();
        self.open.await_arrivals();
        for conversation in &mut self.conversations {
            conversation.go_on();
        }
    }

    #[track_caller]
    fn check(mut self) {
        self.go_on();
        assert_eq!(
            self.closed.arrived(),
            0,
            "something came to the closed port"
        );
        let sent = self.open.sent();
        let lost = self.open.lost().len();
        assert_eq!(lost, 0, "lost of {sent} to the open port");
    }
}

/// Lets only one port of the pods with a role be reached.
fn guard(role: &str) -> Resource {
    let allow = |protocol: &str| json!({"action": "Allow", "protocol": protocol, "destination": {"ports": [OPEN_PORT]}});
    policy(
        &format!("guard-{role}"),
        &json!({
            "order": 100,
            "selector": format!("role == '{role}'"),
            "types": ["Ingress"],
            "ingress": [allow("UDP"), allow("TCP")],
        }),
    )
}

fn traffic_is_not_disturbed_by_changes_that_do_not_concern_it(plane: Plane) {
    let mut pair = Pair::new();
    let _agent = pair.setting.start_agent(plane, &[]);
    let mut watched = pair.watch();
    let mut setting = pair.setting;
    let bystander = setting.add_pod("bystander", 3, &json!({"role": "bystander"}));
    for round in 0..8 {
        let set = format!("changing == '{round}'");
        let rule = |port: u16| json!([{"action": "Allow", "protocol": "TCP", "source": {"selector": set}, "destination": {"ports": [port]}}]);
        let spec = |selector: &str, rules: Value| json!({"order": 10 + round, "selector": selector, "types": ["Ingress"], "ingress": rules});
        // One for others, one that concerns the server but not this traffic.
        setting.put(policy(
            &format!("others-{round}"),
            &spec("role == 'bystander'", rule(80)),
        ));
        setting.put(policy(
            &format!("more-{round}"),
            &spec("role == 'server'", rule(81)),
        ));
        let nets =
            json!({"nets": [format!("172.20.{round}.0/24"), "10.65.0.3/32", "fd00:65::3/128"]});
        let labels = json!({"changing": round.to_string()});
        let net = format!("set-{round}");
        setting.put(labelled(Kind::GlobalNetworkSet, "", &net, &labels, &nets));
        setting.await_flows(&[(bystander.tcp(&pair.server, 81), true)]);
        if round % 2 == 1 {
            for name in ["others", "more"] {
                setting.delete(&policy(&format!("{name}-{round}"), &json!({})));
            }
        }
        watched.go_on();
    }
    setting.put(policy(
        "wide",
        &json!({"order": 5, "selector": "role == 'bystander'"}),
    ));
    watched.check();
}

fn traffic_is_not_disturbed_by_a_restart_of_the_agent(plane: Plane) {
    let mut pair = Pair::new();
    let mut agent = pair.setting.start_agent(plane, &[]);
    let mut watched = pair.watch();
    for round in 0..3 {
        agent.end();
        watched.go_on();
        let spec =
            json!({"order": 10 + round, "selector": "role == 'client'", "types": ["Ingress"]});
        pair.setting
            .put(policy(&format!("while-away-{round}"), &spec));
        agent = pair.setting.start_agent(plane, &[]);
        watched.go_on();
    }
    pair.setting.await_flows(&[
        (pair.server.tcp(&pair.client, 80), false),
        (pair.client.tcp(&pair.server, OPEN_PORT), true),
    ]);
    watched.check();
    agent.end();
}

fn what_changed_while_the_agent_was_away_is_in_force_when_it_is_back(plane: Plane) {
    let Pair {
        mut setting,
        client,
        server,
    } = Pair::new();
    let (gone, gone_endpoint) = setting.prepare_pod("gone", 3, &json!({"role": "gone"}));
    setting.put(gone_endpoint.clone());
    setting.put(guard("client"));
    let agent = setting.start_agent(plane, &[]);
    setting.await_flows(&[
        (client.tcp(&gone, 80), true),
        (client.tcp(&server, 80), false),
        (server.tcp(&client, 80), false),
    ]);
    agent.end();
    setting.delete(&gone_endpoint);
    setting.delete(&guard("server"));
    let new = setting.add_pod("new", 4, &json!({"role": "new"}));
    setting.put(guard("new"));
    // Nothing changes before the agent is back.
    setting.check_flows(&[
        (client.tcp(&gone, 80), true),
        (client.tcp(&server, 80), false),
        (client.tcp(&new, OPEN_PORT), false),
    ]);
    let _agent = setting.start_agent(plane, &[]);
    setting.await_flows(&[
        (client.tcp(&gone, 80), false),
        (gone.tcp(&server, 80), false),
        (client.tcp(&server, 80), true),
        (server.tcp(&client, 80), false),
        (client.tcp(&new, OPEN_PORT), true),
        (client.tcp(&new, 80), false),
    ]);
}

/// An agent with the other data plane must not leave what the first one made in force beside its own.
fn check_switch(from: Plane, to: Plane) {
    let Pair {
        mut setting,
        client,
        server,
    } = Pair::new();
    let agent = setting.start_agent(from, &[]);
    let (open, closed) = (
        client.udp(&server, OPEN_PORT),
        client.udp(&server, CLOSED_PORT),
    );
    setting.await_flows(&[(open, true), (closed, false)]);
    let never = client.datagrams(&server, 7009);
    agent.end();
    let agent = setting.start_agent(to, &[]);
    setting.await_flows(&[(open, true), (closed, false)]);
    let allow =
        json!({"action": "Allow", "protocol": "UDP", "destination": {"ports": [CLOSED_PORT]}});
    let spec = json!({"order": 100, "selector": "role == 'server'", "types": ["Ingress"], "ingress": [allow]});
    setting.put(policy("guard-server", &spec));
    setting.await_flows(&[(open, false), (closed, true)]);
    never.go_on();
    assert_eq!(
        never.arrived(),
        0,
        "it was open while the data plane changed"
    );
    agent.end();
}

#[test]
fn from_nftables_to_iptables_nothing_is_left_and_nothing_opens() {
    check_switch(Plane::Nftables, Plane::Iptables);
}

#[test]
fn from_iptables_to_nftables_nothing_is_left_and_nothing_opens() {
    check_switch(Plane::Iptables, Plane::Nftables);
}

fn a_change_of_policy_changes_exactly_what_it_says(plane: Plane) {
    let mut pair = Pair::new();
    let _agent = pair.setting.start_agent(plane, &[]);
    let mut watched = pair.watch();
    for round in 0..10 {
        let is_allowed = round % 2 == 0;
        let action = if is_allowed { "Allow" } else { "Deny" };
        let rule = json!({"action": action, "protocol": "UDP", "destination": {"ports": [7002]}});
        let spec = json!({"order": 1, "selector": "role == 'server'", "types": ["Ingress"], "ingress": [rule]});
        pair.setting.put(policy("changing", &spec));
        let changed = pair.client.udp(&pair.server, 7002);
        pair.setting.await_flows(&[(changed, is_allowed)]);
        watched.go_on();
    }
    // A connection that exists stays when the rule that allowed it goes, as in Calico; new ones do not come about.
    pair.setting.put(policy(
        "guard-server",
        &json!({"order": 100, "selector": "role == 'server'", "types": ["Ingress"]}),
    ));
    let Pair {
        mut setting,
        client,
        server,
    } = pair;
    setting.await_flows(&[
        (client.udp(&server, OPEN_PORT), false),
        (client.tcp(&server, OPEN_PORT), false),
    ]);
    for conversation in &mut watched.conversations {
        conversation.go_on();
    }
    assert_eq!(watched.closed.arrived(), 0);
}

fn a_pod_is_never_open_while_it_comes_and_goes(plane: Plane) {
    let mut pair = Pair::new();
    pair.setting.put(guard("guest"));
    let _agent = pair.setting.start_agent(plane, &[]);
    let mut watched = pair.watch();
    let Pair {
        mut setting,
        client,
        ..
    } = pair;
    let (guest, endpoint) = setting.prepare_pod("guest", 9, &json!({"role": "guest"}));
    let open = client.datagrams(&guest, OPEN_PORT);
    let closed = client.datagrams(&guest, CLOSED_PORT);
    for _ in 0..5 {
        setting.put(endpoint.clone());
        open.await_arrivals();
        setting.await_flows(&[(guest.tcp(&client, 80), true)]);
        setting.delete(&endpoint);
        setting.await_flows(&[
            (client.udp(&guest, OPEN_PORT), false),
            (guest.tcp(&client, 80), false),
        ]);
        closed.go_on();
    }
    assert_eq!(closed.arrived(), 0, "the guest's closed port was open");
    watched.go_on();
    watched.check();
}
