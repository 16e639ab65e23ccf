//! Tiers: their order, what happens at their end, and tiers that do not exist.

use crate::states::build::{Object, pod, policy, tier};
use crate::states::list::{bare_world, check, world};
use crate::states::rule::{allow, pass};

/// A pod with one policy in each of three tiers.
fn pod_with_three() -> [Object; 4] {
    [
        pod("a").ip("10.0.0.1"),
        policy("p1").in_tier("t1"),
        policy("p2").in_tier("t2"),
        policy("p3").in_tier("t3"),
    ]
}

#[test]
fn tiers_come_in_their_order() {
    let with_orders = |first, second, third| {
        world([
            tier("t1").tier_order(first),
            tier("t2").tier_order(second),
            tier("t3").tier_order(third),
        ])
        .and(pod_with_three())
    };
    check([
        with_orders(1.0, 2.0, 3.0).gives(
            "policy gnp/p1 @t1
             policy gnp/p2 @t2
             policy gnp/p3 @t3
             pod a 10.0.0.1 | t1=deny both gnp/p1 | t2=deny both gnp/p2 | t3=deny both gnp/p3",
        ),
        with_orders(3.0, 2.0, 1.0).gives(
            "policy gnp/p1 @t1
             policy gnp/p2 @t2
             policy gnp/p3 @t3
             pod a 10.0.0.1 | t3=deny both gnp/p3 | t2=deny both gnp/p2 | t1=deny both gnp/p1",
        ),
        with_orders(10.0, -1.0, 0.5).gives(
            "policy gnp/p1 @t1
             policy gnp/p2 @t2
             policy gnp/p3 @t3
             pod a 10.0.0.1 | t2=deny both gnp/p2 | t3=deny both gnp/p3 | t1=deny both gnp/p1",
        ),
    ]);
}

#[test]
fn tiers_of_the_same_order_come_by_name_and_those_without_one_last() {
    check([
        world([
            tier("t1").tier_order(7.0),
            tier("t2").tier_order(7.0),
            tier("t3").tier_order(7.0),
        ])
        .and(pod_with_three())
        .gives(
            "policy gnp/p1 @t1
             policy gnp/p2 @t2
             policy gnp/p3 @t3
             pod a 10.0.0.1 | t1=deny both gnp/p1 | t2=deny both gnp/p2 | t3=deny both gnp/p3",
        ),
        world([tier("t1"), tier("t2"), tier("t3").tier_order(7.0)])
            .and(pod_with_three())
            .gives(
                "policy gnp/p1 @t1
                 policy gnp/p2 @t2
                 policy gnp/p3 @t3
                 pod a 10.0.0.1 | t3=deny both gnp/p3 | t1=deny both gnp/p1 | t2=deny both gnp/p2",
            ),
        world([tier("t1"), tier("t2"), tier("t3").tier_order(7.0)])
            .and(pod_with_three())
            .and([policy("d")])
            .gives(
                "policy gnp/d
                 policy gnp/p1 @t1
                 policy gnp/p2 @t2
                 policy gnp/p3 @t3
                 pod a 10.0.0.1 | t3=deny both gnp/p3 | default=deny both gnp/d \
                 | t1=deny both gnp/p1 | t2=deny both gnp/p2",
            ),
    ]);
}

#[test]
fn the_default_action_of_a_tier_is_told_and_can_change() {
    let objects = || [pod("a").ip("10.0.0.1"), policy("p").in_tier("t")];
    check([
        world([tier("t").tier_order(1.0)]).and(objects()).gives(
            "policy gnp/p @t
             pod a 10.0.0.1 | t=deny both gnp/p",
        ),
        world([tier("t").tier_order(1.0).passes()])
            .and(objects())
            .gives(
                "policy gnp/p @t
                 pod a 10.0.0.1 | t=pass both gnp/p",
            ),
        world([tier("t").passes()]).and(objects()).gives(
            "policy gnp/p @t
             pod a 10.0.0.1 | t=pass both gnp/p",
        ),
    ]);
}

#[test]
fn a_missing_tier_comes_after_those_that_exist_and_its_end_is_not_known() {
    check([
        world([tier("t2"), tier("t3").passes()])
            .and(pod_with_three())
            .gives(
                "policy gnp/p1 @t1
                 policy gnp/p2 @t2
                 policy gnp/p3 @t3
                 pod a 10.0.0.1 | t2=deny both gnp/p2 | t3=pass both gnp/p3 | t1=? both gnp/p1",
            ),
        world([tier("t3")]).and(pod_with_three()).gives(
            "policy gnp/p1 @t1
             policy gnp/p2 @t2
             policy gnp/p3 @t3
             pod a 10.0.0.1 | t3=deny both gnp/p3 | t1=? both gnp/p1 | t2=? both gnp/p2",
        ),
        bare_world(pod_with_three()).gives(
            "policy gnp/p1 @t1
             policy gnp/p2 @t2
             policy gnp/p3 @t3
             pod a 10.0.0.1 | t1=? both gnp/p1 | t2=? both gnp/p2 | t3=? both gnp/p3",
        ),
        bare_world([pod("a").ip("10.0.0.1"), policy("p")]).gives(
            "policy gnp/p
             pod a 10.0.0.1 | default=? both gnp/p",
        ),
    ]);
}

#[test]
fn a_policy_moves_between_tiers() {
    let with_policy_in = |name: &str| {
        world([
            tier("t1").tier_order(1.0),
            tier("t2").tier_order(2.0).passes(),
            pod("a").ip("10.0.0.1"),
            policy("stays").in_tier("t2").order(5.0),
            policy("p").in_tier(name).order(9.0),
        ])
    };
    check([
        with_policy_in("t1").gives(
            "policy gnp/p @t1
             policy gnp/stays @t2
             pod a 10.0.0.1 | t1=deny both gnp/p | t2=pass both gnp/stays",
        ),
        with_policy_in("t2").gives(
            "policy gnp/p @t2
             policy gnp/stays @t2
             pod a 10.0.0.1 | t2=pass both gnp/stays gnp/p",
        ),
        with_policy_in("nowhere").gives(
            "policy gnp/p @nowhere
             policy gnp/stays @t2
             pod a 10.0.0.1 | t2=pass both gnp/stays | nowhere=? both gnp/p",
        ),
        with_policy_in("").gives(
            "policy gnp/p
             policy gnp/stays @t2
             pod a 10.0.0.1 | t2=pass both gnp/stays | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn a_tier_is_listed_only_where_one_of_its_policies_applies() {
    let tiers = || [tier("t1").tier_order(1.0), tier("t2").tier_order(2.0)];
    let policies = || {
        [
            policy("p1").in_tier("t1").selector("app == 'web'"),
            policy("p2")
                .in_tier("t2")
                .selector("app == 'db'")
                .ingress_only(),
        ]
    };
    check([
        world(tiers()).and(policies()).gives(""),
        world(tiers())
            .and(policies())
            .and([pod("a").ip("10.0.0.1").label("app", "web")])
            .gives(
                "policy gnp/p1 @t1 for app == 'web'
                 pod a 10.0.0.1 | t1=deny both gnp/p1",
            ),
        world(tiers())
            .and(policies())
            .and([pod("a").ip("10.0.0.1").label("app", "db")])
            .gives(
                "policy gnp/p2 @t2 for app == 'db'
                 pod a 10.0.0.1 | t2=deny in gnp/p2",
            ),
        world(tiers())
            .and(policies())
            .and([pod("a").ip("10.0.0.1").label("app", "other")])
            .gives("pod a 10.0.0.1"),
    ]);
}

#[test]
fn pass_rules_are_told_as_such() {
    check([
        world([
            tier("t1").tier_order(1.0),
            pod("a").ip("10.0.0.1"),
            policy("p").in_tier("t1").inbound(pass()).outbound(allow()),
        ])
        .gives(
            "policy gnp/p @t1: in pass; out allow
             pod a 10.0.0.1 | t1=deny both gnp/p",
        ),
        world([
            tier("t1").tier_order(1.0),
            pod("a").ip("10.0.0.1"),
            policy("p").in_tier("t1").inbound(allow()).inbound(pass()),
        ])
        .gives(
            "policy gnp/p @t1: in allow; in pass
             pod a 10.0.0.1 | t1=deny both gnp/p",
        ),
    ]);
}

#[test]
fn all_tiers_together_change_places() {
    let policies = || {
        ["x", "y", "z"]
            .into_iter()
            .flat_map(|name| [policy(&format!("{name}-in")).in_tier(name).ingress_only()])
            .chain([
                pod("a").ip("10.0.0.1"),
                policy("both").in_tier("x").order(1.0),
            ])
    };
    check([
        world([tier("x").tier_order(1.0), tier("y").tier_order(2.0)])
            .and(policies())
            .gives(
                "policy gnp/x-in @x
                 policy gnp/y-in @y
                 policy gnp/z-in @z
                 policy gnp/both @x
                 pod a 10.0.0.1 | x=deny in gnp/both gnp/x-in out gnp/both | y=deny in gnp/y-in \
                 | z=? in gnp/z-in",
            ),
        world([
            tier("z").tier_order(1.0),
            tier("y").tier_order(2.0).passes(),
        ])
        .and(policies())
        .gives(
            "policy gnp/x-in @x
                 policy gnp/y-in @y
                 policy gnp/z-in @z
                 policy gnp/both @x
                 pod a 10.0.0.1 | z=deny in gnp/z-in | y=pass in gnp/y-in \
                 | x=? in gnp/both gnp/x-in out gnp/both",
        ),
    ]);
}
