//! Network sets: networks with labels, which rules select like endpoints.

use crate::states::build::{Object, network_set, pod, policy, remote_pod};
use crate::states::list::{State, check, world};
use crate::states::rule::allow;

/// A local pod that may reach what has `zone == 'out'`.
fn out(objects: impl IntoIterator<Item = Object>) -> State {
    world([pod("a"), policy("p").outbound(allow().to("zone == 'out'"))]).and(objects)
}

fn zone(name: &str, nets: &[&str]) -> Object {
    network_set(name, nets).label("zone", "out")
}

#[test]
fn networks_are_members_while_the_labels_match() {
    check([
        out([zone("n", &["192.0.2.0/24", "198.51.100.7/32"])]).gives(
            "{zone == 'out'}: 192.0.2.0/24 198.51.100.7/32
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([network_set("n", &["192.0.2.0/24"]).label("zone", "in")]).gives(
            "{zone == 'out'}:
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([zone("n", &["192.0.2.0/24", "203.0.113.0/24"])]).gives(
            "{zone == 'out'}: 192.0.2.0/24 203.0.113.0/24
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([zone("n", &[])]).gives(
            "{zone == 'out'}:
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn a_network_of_everything_is_two_halves() {
    check([
        out([zone("n", &["0.0.0.0/0"])]).gives(
            "{zone == 'out'}: 0.0.0.0/1 128.0.0.0/1
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([zone("n", &["::/0"])]).gives(
            "{zone == 'out'}: ::/1 8000::/1
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([zone("n", &["0.0.0.0/0", "::/0"])]).gives(
            "{zone == 'out'}: 0.0.0.0/1 128.0.0.0/1 8000::/1 ::/1
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        // One half of its own and the half of everything are the same member.
        out([zone("n", &["0.0.0.0/0"]), zone("m", &["128.0.0.0/1"])]).gives(
            "{zone == 'out'}: 0.0.0.0/1 128.0.0.0/1
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([zone("m", &["128.0.0.0/1"])]).gives(
            "{zone == 'out'}: 128.0.0.0/1
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn a_network_that_several_sets_name_stays_until_the_last_is_gone() {
    check([
        out([zone("n", &["192.0.2.0/24"])]).gives(
            "{zone == 'out'}: 192.0.2.0/24
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([
            zone("n", &["192.0.2.0/24"]),
            zone("ns/n", &["192.0.2.0/24", "192.0.2.0/24"]),
        ])
        .gives(
            "{zone == 'out'}: 192.0.2.0/24
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([zone("ns/n", &["192.0.2.0/24"])]).gives(
            "{zone == 'out'}: 192.0.2.0/24
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([]).gives(
            "{zone == 'out'}:
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn bits_behind_the_prefix_do_not_count() {
    check([
        out([zone("n", &["192.0.2.77/24", "2001:db8::77/64"])]).gives(
            "{zone == 'out'}: 192.0.2.0/24 2001:db8::/64
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([zone("n", &["192.0.2.1/24"])]).gives(
            "{zone == 'out'}: 192.0.2.0/24
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn network_sets_and_endpoints_are_members_side_by_side() {
    let b = || remote_pod("b").ip("10.0.0.2").label("zone", "out");
    check([
        out([zone("n", &["192.0.2.0/24"]), b()]).gives(
            "{zone == 'out'}: 10.0.0.2/32 192.0.2.0/24
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        // An address that is also a network of its own.
        out([zone("n", &["10.0.0.2/32"]), b()]).gives(
            "{zone == 'out'}: 10.0.0.2/32
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
        out([b()]).gives(
            "{zone == 'out'}: 10.0.0.2/32
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn policies_do_not_apply_to_network_sets() {
    check([
        world([
            zone("n", &["192.0.2.0/24"]),
            policy("p").selector("zone == 'out'"),
        ])
        .gives(""),
        out([
            zone("n", &["192.0.2.0/24"]),
            policy("q").selector("zone == 'out'"),
        ])
        .gives(
            "{zone == 'out'}: 192.0.2.0/24
             policy gnp/p: out allow to {zone == 'out'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}
