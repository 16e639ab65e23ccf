//! One address in several places, and objects that come back.

use crate::states::build::{Object, host_on, pod, policy, remote_pod};
use crate::states::list::{State, check, world};
use crate::states::rule::allow;

fn under(objects: impl IntoIterator<Item = Object>) -> State {
    world([pod("a"), policy("p").inbound(allow().from("has(app)"))]).and(objects)
}

fn at(name: &str, address: &str) -> Object {
    remote_pod(name).ip(address).label("app", name)
}

macro_rules! members {
    ($members:literal) => {
        concat!(
            "{has(app)}: ",
            $members,
            "\npolicy gnp/p: in allow from {has(app)}\npod a | default=deny both gnp/p"
        )
    };
}

#[test]
fn an_address_stays_until_the_last_endpoint_with_it_is_gone() {
    check([
        under([at("b", "10.0.0.2")]).gives(members!("10.0.0.2/32")),
        under([at("b", "10.0.0.2"), at("c", "10.0.0.2")]).gives(members!("10.0.0.2/32")),
        under([at("c", "10.0.0.2")]).gives(members!("10.0.0.2/32")),
        under([]).gives(members!("")),
    ]);
}

#[test]
fn an_address_moves_from_one_endpoint_to_another() {
    check([
        under([at("b", "10.0.0.2"), at("c", "10.0.0.3")])
            .gives(members!("10.0.0.2/32 10.0.0.3/32")),
        under([at("b", "10.0.0.3"), at("c", "10.0.0.2")])
            .gives(members!("10.0.0.2/32 10.0.0.3/32")),
        under([at("b", "10.0.0.3"), at("c", "10.0.0.3")]).gives(members!("10.0.0.3/32")),
        under([
            at("b", "10.0.0.2").label("app", "x"),
            remote_pod("c").ip("10.0.0.3"),
        ])
        .gives(members!("10.0.0.2/32")),
    ]);
}

#[test]
fn an_endpoint_with_the_same_address_twice_is_one_member() {
    check([
        under([at("b", "10.0.0.2").ip("10.0.0.2")]).gives(members!("10.0.0.2/32")),
        under([at("b", "10.0.0.2")]).gives(members!("10.0.0.2/32")),
        under([at("b", "10.0.0.2").ip("10.0.0.2").ip("10.0.0.4")])
            .gives(members!("10.0.0.2/32 10.0.0.4/32")),
        under([remote_pod("b").ip("10.0.0.2").ip("10.0.0.2")]).gives(members!("")),
    ]);
}

#[test]
fn pods_and_hosts_share_an_address() {
    let host = || host_on("there", "h").ip("10.0.0.2").label("app", "host");
    check([
        under([at("b", "10.0.0.2"), host()]).gives(members!("10.0.0.2/32")),
        under([host()]).gives(members!("10.0.0.2/32")),
        under([at("b", "10.0.0.2")]).gives(members!("10.0.0.2/32")),
    ]);
}

#[test]
fn only_the_address_of_a_network_of_a_pod_counts() {
    check([
        under([at("b", "10.0.0.2/24")]).gives(members!("10.0.0.2/32")),
        under([at("b", "10.0.0.2/24"), at("c", "10.0.0.2")]).gives(members!("10.0.0.2/32")),
    ]);
}

#[test]
fn two_selectors_and_one_address() {
    let rules = |selectors: &[&str]| {
        let policy = selectors.iter().fold(policy("p"), |policy, selector| {
            policy.inbound(allow().from(selector))
        });
        world([pod("a"), policy, at("b", "10.0.0.2"), at("c", "10.0.0.2")])
    };
    check([
        rules(&["app == 'b'", "app == 'c'"]).gives(
            "{app == 'b'}: 10.0.0.2/32
             {app == 'c'}: 10.0.0.2/32
             policy gnp/p: in allow from {app == 'b'}; in allow from {app == 'c'}
             pod a | default=deny both gnp/p",
        ),
        rules(&["app in {'b', 'c'}", "app == 'b' && app == 'c'"]).gives(
            "{app in {'b', 'c'}}: 10.0.0.2/32
             {app == 'b' && app == 'c'}:
             policy gnp/p: in allow from {app in {'b', 'c'}}; \
             in allow from {app == 'b' && app == 'c'}
             pod a | default=deny both gnp/p",
        ),
        rules(&[]).gives(
            "policy gnp/p
             pod a | default=deny both gnp/p",
        ),
    ]);
}
