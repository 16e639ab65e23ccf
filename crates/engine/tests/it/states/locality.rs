//! What is local: policies and profiles are for endpoints of this node, members come from everywhere.

use tortie_engine::{Config, Scope};

use crate::states::build::{LOCAL, host_on, pod, policy, profile, remote_pod};
use crate::states::list::{check, check_with, world};
use crate::states::rule::allow;

#[test]
fn endpoints_of_other_nodes_get_no_policies() {
    let rules = || policy("p").inbound(allow().from("all()"));
    check([
        world([rules(), remote_pod("b").ip("10.0.0.2")]).gives(""),
        world([
            rules(),
            remote_pod("b").ip("10.0.0.2"),
            pod("a").ip("10.0.0.1"),
        ])
        .gives(
            "{all()}: 10.0.0.1/32 10.0.0.2/32
             policy gnp/p: in allow from {all()}
             pod a 10.0.0.1 | default=deny both gnp/p",
        ),
        world([rules(), host_on("there", "h").ip("192.168.0.2")]).gives(""),
    ]);
}

#[test]
fn a_pod_moves_to_another_node() {
    let objects = || {
        [
            policy("p").inbound(allow().from("has(app)")),
            profile("t").label("app", "web"),
            pod("a"),
        ]
    };
    check([
        world([pod("b").ip("10.0.0.2").profiles(&["t"])])
            .and(objects())
            .gives(
                "{has(app)}: 10.0.0.2/32
             policy gnp/p: in allow from {has(app)}
             profile t
             pod a | default=deny both gnp/p
             pod b 10.0.0.2 | profiles t | default=deny both gnp/p",
            ),
        world([remote_pod("b").ip("10.0.0.2").profiles(&["t"])])
            .and(objects())
            .gives(
                "{has(app)}: 10.0.0.2/32
                 policy gnp/p: in allow from {has(app)}
                 pod a | default=deny both gnp/p",
            ),
        // For a moment it can be in both places.
        world([
            pod("b").ip("10.0.0.2").profiles(&["t"]),
            remote_pod("b").ip("10.0.0.3").profiles(&["t"]),
        ])
        .and(objects())
        .gives(
            "{has(app)}: 10.0.0.2/32 10.0.0.3/32
             policy gnp/p: in allow from {has(app)}
             profile t
             pod a | default=deny both gnp/p
             pod b 10.0.0.2 | profiles t | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn a_policy_that_applies_to_nothing_here_is_not_sent() {
    let p = || {
        policy("p")
            .selector("app == 'web'")
            .inbound(allow().from("app == 'db'"))
    };
    let db = || remote_pod("db").ip("10.0.0.2").label("app", "db");
    check([
        world([p(), db(), pod("a")]).gives("pod a"),
        world([p(), db(), pod("a").label("app", "web")]).gives(
            "{app == 'db'}: 10.0.0.2/32
             policy gnp/p for app == 'web': in allow from {app == 'db'}
             pod a | default=deny both gnp/p",
        ),
        world([db(), pod("a").label("app", "web")]).gives("pod a"),
    ]);
}

#[test]
fn a_policy_for_every_node_is_sent_even_if_nothing_needs_it() {
    let p = || {
        policy("p")
            .selector("app == 'web'")
            .inbound(allow().from("app == 'db'"))
    };
    let db = || remote_pod("db").ip("10.0.0.2").label("app", "db");
    check([
        world([p().always(), db()]).gives(
            "{app == 'db'}: 10.0.0.2/32
             policy gnp/p for app == 'web' always: in allow from {app == 'db'}",
        ),
        world([p().always(), db(), pod("a").label("app", "web")]).gives(
            "{app == 'db'}: 10.0.0.2/32
             policy gnp/p for app == 'web' always: in allow from {app == 'db'}
             pod a | default=deny both gnp/p",
        ),
        world([p(), db(), pod("a").label("app", "web")]).gives(
            "{app == 'db'}: 10.0.0.2/32
             policy gnp/p for app == 'web': in allow from {app == 'db'}
             pod a | default=deny both gnp/p",
        ),
        world([p(), db()]).gives(""),
        world([p().always()]).gives(
            "{app == 'db'}:
             policy gnp/p for app == 'web' always: in allow from {app == 'db'}",
        ),
    ]);
}

#[test]
fn for_the_whole_cluster_all_endpoints_are_local() {
    let config = Config {
        scope: Scope::AllNodes,
        ..Config::for_node(LOCAL)
    };
    check_with(
        &config,
        [
            world([policy("p"), pod("a"), remote_pod("b").profiles(&["t"])]).gives(
                "policy gnp/p
                 profile t: in deny; out deny
                 pod a | default=deny both gnp/p
                 pod b | profiles t | default=deny both gnp/p",
            ),
            world([policy("p"), host_on("there", "h")]).gives(
                "policy gnp/p
                 host h on eth0 | default=deny both gnp/p",
            ),
        ],
    );
}
