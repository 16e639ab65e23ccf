//! Endpoints of hosts: four lists of policies, for the four points where a host applies them.

use crate::states::build::{Object, host, pod, policy, profile, tier};
use crate::states::list::{check, world};
use crate::states::rule::{allow, deny};

fn h() -> Object {
    host("h").ip("192.168.0.1")
}

#[test]
fn a_host_has_policies_and_profiles_like_a_workload() {
    check([
        world([
            h().profiles(&["t"]),
            profile("t").inbound(allow()),
            policy("p"),
        ])
        .gives(
            "profile t: in allow
             policy gnp/p
             host h on eth0 192.168.0.1 | profiles t | default=deny both gnp/p",
        ),
        world([h().profiles(&["t"]), policy("p").ingress_only()]).gives(
            "profile t: in deny; out deny
             policy gnp/p
             host h on eth0 192.168.0.1 | profiles t | default=deny in gnp/p",
        ),
        world([h(), policy("p").egress_only(), host("i"), pod("a")]).gives(
            "policy gnp/p
             host h on eth0 192.168.0.1 | default=deny out gnp/p
             host i on eth0 | default=deny out gnp/p
             pod a | default=deny out gnp/p",
        ),
    ]);
}

#[test]
fn untracked_policies_have_a_list_of_their_own_that_always_passes() {
    check([
        world([h(), policy("p").untracked().inbound(allow())]).gives(
            "policy gnp/p untracked: in allow
             host h on eth0 192.168.0.1 | untracked default=pass both gnp/p",
        ),
        world([h(), policy("p").untracked().inbound(allow()), policy("q")]).gives(
            "policy gnp/p untracked: in allow
             policy gnp/q
             host h on eth0 192.168.0.1 | default=deny both gnp/q | untracked default=pass both gnp/p",
        ),
        world([h(), policy("p").inbound(allow()), policy("q").untracked().egress_only()]).gives(
            "policy gnp/p: in allow
             policy gnp/q untracked
             host h on eth0 192.168.0.1 | default=deny both gnp/p | untracked default=pass out gnp/q",
        ),
        world([h(), policy("p").inbound(allow())]).gives(
            "policy gnp/p: in allow
             host h on eth0 192.168.0.1 | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn pre_dnat_policies_are_for_packets_that_come_in() {
    check([
        world([h(), policy("p").pre_dnat().inbound(deny())]).gives(
            "policy gnp/p pre-dnat: in deny
             host h on eth0 192.168.0.1 | pre-dnat default=pass in gnp/p",
        ),
        world([
            h(),
            policy("p").pre_dnat().ingress_only(),
            policy("q").egress_only(),
        ])
        .gives(
            "policy gnp/p pre-dnat
             policy gnp/q
             host h on eth0 192.168.0.1 | default=deny out gnp/q | pre-dnat default=pass in gnp/p",
        ),
        // For packets that go out there is no place.
        world([h(), policy("p").pre_dnat().egress_only()]).gives(
            "policy gnp/p pre-dnat
             host h on eth0 192.168.0.1",
        ),
    ]);
}

#[test]
fn policies_on_forward_are_in_two_lists() {
    check([
        world([h(), policy("p").on_forward(), policy("q")]).gives(
            "policy gnp/p
             policy gnp/q
             host h on eth0 192.168.0.1 | default=deny both gnp/p gnp/q | forward default=deny both gnp/p",
        ),
        world([h(), policy("p"), policy("q").on_forward().ingress_only()]).gives(
            "policy gnp/p
             policy gnp/q
             host h on eth0 192.168.0.1 | default=deny in gnp/p gnp/q out gnp/p \
             | forward default=deny in gnp/q",
        ),
        world([h(), policy("p"), policy("q")]).gives(
            "policy gnp/p
             policy gnp/q
             host h on eth0 192.168.0.1 | default=deny both gnp/p gnp/q",
        ),
    ]);
}

#[test]
fn all_four_lists_have_their_tiers_in_order() {
    let tiers = |first, second| {
        [
            tier("t1").tier_order(first).passes(),
            tier("t2").tier_order(second),
        ]
    };
    let policies = || {
        ["t1", "t2"].into_iter().flat_map(|tier| {
            [
                policy(&format!("{tier}-n")).in_tier(tier),
                policy(&format!("{tier}-u"))
                    .in_tier(tier)
                    .untracked()
                    .on_forward(),
                policy(&format!("{tier}-d"))
                    .in_tier(tier)
                    .pre_dnat()
                    .on_forward(),
                policy(&format!("{tier}-f")).in_tier(tier).on_forward(),
            ]
        })
    };
    check([
        world([h()]).and(tiers(1.0, 2.0)).and(policies()).gives(
            "policy gnp/t1-n @t1
             policy gnp/t1-u @t1 untracked
             policy gnp/t1-d @t1 pre-dnat
             policy gnp/t1-f @t1
             policy gnp/t2-n @t2
             policy gnp/t2-u @t2 untracked
             policy gnp/t2-d @t2 pre-dnat
             policy gnp/t2-f @t2
             host h on eth0 192.168.0.1 \
             | t1=pass both gnp/t1-f gnp/t1-n | t2=deny both gnp/t2-f gnp/t2-n \
             | untracked t1=pass both gnp/t1-u | untracked t2=pass both gnp/t2-u \
             | pre-dnat t1=pass in gnp/t1-d | pre-dnat t2=pass in gnp/t2-d \
             | forward t1=pass both gnp/t1-f | forward t2=deny both gnp/t2-f",
        ),
        world([h()]).and(tiers(2.0, 1.0)).and(policies()).gives(
            "policy gnp/t1-n @t1
             policy gnp/t1-u @t1 untracked
             policy gnp/t1-d @t1 pre-dnat
             policy gnp/t1-f @t1
             policy gnp/t2-n @t2
             policy gnp/t2-u @t2 untracked
             policy gnp/t2-d @t2 pre-dnat
             policy gnp/t2-f @t2
             host h on eth0 192.168.0.1 \
             | t2=deny both gnp/t2-f gnp/t2-n | t1=pass both gnp/t1-f gnp/t1-n \
             | untracked t2=pass both gnp/t2-u | untracked t1=pass both gnp/t1-u \
             | pre-dnat t2=pass in gnp/t2-d | pre-dnat t1=pass in gnp/t1-d \
             | forward t2=deny both gnp/t2-f | forward t1=pass both gnp/t1-f",
        ),
    ]);
}

#[test]
fn a_policy_changes_from_one_point_to_another() {
    let with = |p: Object| world([h(), pod("a"), p.inbound(allow().from("has(app)"))]);
    check([
        with(policy("p")).gives(
            "{has(app)}:
             policy gnp/p: in allow from {has(app)}
             pod a | default=deny both gnp/p
             host h on eth0 192.168.0.1 | default=deny both gnp/p",
        ),
        // Workloads have normal policies only.
        with(policy("p").untracked()).gives(
            "{has(app)}:
             policy gnp/p untracked: in allow from {has(app)}
             pod a
             host h on eth0 192.168.0.1 | untracked default=pass both gnp/p",
        ),
        with(policy("p").pre_dnat()).gives(
            "{has(app)}:
             policy gnp/p pre-dnat: in allow from {has(app)}
             pod a
             host h on eth0 192.168.0.1 | pre-dnat default=pass in gnp/p",
        ),
        with(policy("p").on_forward()).gives(
            "{has(app)}:
             policy gnp/p: in allow from {has(app)}
             pod a | default=deny both gnp/p
             host h on eth0 192.168.0.1 | default=deny both gnp/p | forward default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn a_policy_for_workloads_only_that_is_untracked_is_sent_but_has_no_place() {
    check([
        world([pod("a"), policy("p").untracked()]).gives(
            "policy gnp/p untracked
             pod a",
        ),
        world([pod("a"), policy("p").pre_dnat()]).gives(
            "policy gnp/p pre-dnat
             pod a",
        ),
    ]);
}

#[test]
fn expected_addresses_and_all_interfaces_are_passed_on() {
    let with = |interface: &str, endpoint: Object| {
        world([
            endpoint.change_host(|endpoint| interface.clone_into(&mut endpoint.interface)),
            policy("p").inbound(allow().from("all()")),
        ])
    };
    check([
        with("*", h().ip("fd00::1").ip("192.168.1.1")).gives(
            "{all()}: 192.168.0.1/32 192.168.1.1/32 fd00::1/128
             policy gnp/p: in allow from {all()}
             host h on * 192.168.0.1 192.168.1.1 fd00::1 | default=deny both gnp/p",
        ),
        with("", h()).gives(
            "{all()}: 192.168.0.1/32
             policy gnp/p: in allow from {all()}
             host h on  192.168.0.1 | default=deny both gnp/p",
        ),
        with("eth1", host("h")).gives(
            "{all()}:
             policy gnp/p: in allow from {all()}
             host h on eth1 | default=deny both gnp/p",
        ),
    ]);
}
