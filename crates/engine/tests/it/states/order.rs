//! The order of policies in a tier.

use crate::states::build::{Object, pod, policy, policy_of};
use crate::states::list::{check, world};
use crate::states::rule::allow;
use tortie_engine::input::PolicyKind;

fn a_pod() -> Object {
    pod("a").ip("10.0.0.1")
}

#[test]
fn policies_come_in_their_order() {
    let with_orders = |first, second, third| {
        world([
            a_pod(),
            policy("p1").order(first),
            policy("p2").order(second),
            policy("p3").order(third),
        ])
    };
    check([
        with_orders(10.0, 20.0, 30.0).gives(
            "policy gnp/p1
             policy gnp/p2
             policy gnp/p3
             pod a 10.0.0.1 | default=deny both gnp/p1 gnp/p2 gnp/p3",
        ),
        with_orders(30.0, 20.0, 10.0).gives(
            "policy gnp/p1
             policy gnp/p2
             policy gnp/p3
             pod a 10.0.0.1 | default=deny both gnp/p3 gnp/p2 gnp/p1",
        ),
        // As numbers, not as text.
        with_orders(100.0, 20.5, -3.0).gives(
            "policy gnp/p1
             policy gnp/p2
             policy gnp/p3
             pod a 10.0.0.1 | default=deny both gnp/p3 gnp/p2 gnp/p1",
        ),
    ]);
}

#[test]
fn policies_without_an_order_come_last_by_name() {
    check([
        world([a_pod(), policy("c"), policy("b"), policy("a").order(1e300)]).gives(
            "policy gnp/a
             policy gnp/b
             policy gnp/c
             pod a 10.0.0.1 | default=deny both gnp/a gnp/b gnp/c",
        ),
        world([a_pod(), policy("c").order(0.0), policy("b"), policy("a")]).gives(
            "policy gnp/a
             policy gnp/b
             policy gnp/c
             pod a 10.0.0.1 | default=deny both gnp/c gnp/a gnp/b",
        ),
    ]);
}

#[test]
fn equal_order_is_decided_by_the_text_name_namespace_kind() {
    // `-` and `.` come before `/`, so a name that goes on so comes before the name alone.
    check([
        world([
            a_pod(),
            policy("a"),
            policy("a-b"),
            policy("a.b"),
            policy("ab"),
        ])
        .gives(
            "policy gnp/a
             policy gnp/a-b
             policy gnp/a.b
             policy gnp/ab
             pod a 10.0.0.1 | default=deny both gnp/a-b gnp/a.b gnp/a gnp/ab",
        ),
        world([
            a_pod(),
            policy("a").order(5.0),
            policy_of(PolicyKind::NetworkPolicy, "ns-2", "a").order(5.0),
            policy_of(PolicyKind::NetworkPolicy, "ns", "a").order(5.0),
            policy_of(PolicyKind::NetworkPolicy, "", "a-b").order(5.0),
            policy_of(PolicyKind::KubernetesNetworkPolicy, "ns", "a").order(5.0),
        ])
        .gives(
            "policy gnp/a
             policy np/a-b
             policy np/ns/a
             policy np/ns-2/a
             policy knp/ns/a
             pod a 10.0.0.1 | default=deny \
             both np/a-b gnp/a np/ns-2/a knp/ns/a np/ns/a",
        ),
    ]);
}

#[test]
fn the_directions_of_a_policy_decide_the_lists_it_is_in() {
    check([
        world([
            a_pod(),
            policy("in").ingress_only(),
            policy("out").egress_only(),
            policy("x"),
        ])
        .gives(
            "policy gnp/in
             policy gnp/out
             policy gnp/x
             pod a 10.0.0.1 | default=deny in gnp/in gnp/x out gnp/out gnp/x",
        ),
        world([
            a_pod(),
            policy("in"),
            policy("out").egress_only(),
            policy("x").ingress_only(),
        ])
        .gives(
            "policy gnp/in
             policy gnp/out
             policy gnp/x
             pod a 10.0.0.1 | default=deny in gnp/in gnp/x out gnp/in gnp/out",
        ),
        // Rules of a direction that it does not govern are sent, but it is not in the list.
        world([a_pod(), policy("x").ingress_only().outbound(allow())]).gives(
            "policy gnp/x: out allow
             pod a 10.0.0.1 | default=deny in gnp/x",
        ),
    ]);
}

#[test]
fn each_endpoint_has_the_policies_that_select_it() {
    let web = || pod("a").ip("10.0.0.1").label("app", "web");
    let db = || pod("b").ip("10.0.0.2").label("app", "db");
    let policies = || {
        [
            policy("all").order(2.0),
            policy("web").selector("app == 'web'").order(1.0),
            policy("db").selector("app == 'db'").order(3.0),
            policy("none").selector("app == 'none'"),
        ]
    };
    check([
        world([web()]).and(policies()).gives(
            "policy gnp/all
             policy gnp/web for app == 'web'
             pod a 10.0.0.1 | default=deny both gnp/web gnp/all",
        ),
        world([web(), db()]).and(policies()).gives(
            "policy gnp/all
             policy gnp/web for app == 'web'
             policy gnp/db for app == 'db'
             pod a 10.0.0.1 | default=deny both gnp/web gnp/all
             pod b 10.0.0.2 | default=deny both gnp/all gnp/db",
        ),
        world([db()]).and(policies()).gives(
            "policy gnp/all
             policy gnp/db for app == 'db'
             pod b 10.0.0.2 | default=deny both gnp/all gnp/db",
        ),
        world(policies()).gives(""),
    ]);
}
