//! Members of a set that lie inside others: left out where the kernel would refuse them, and back when they are free.

use tortie_engine::{Config, Overlaps};

use crate::states::build::{LOCAL, Object, network_set, pod, policy, remote_pod};
use crate::states::list::{State, check, check_with, world};
use crate::states::rule::allow;

fn out(nets: &[&[&str]]) -> State {
    let sets = nets
        .iter()
        .enumerate()
        .map(|(number, nets)| network_set(&format!("n{number}"), nets).label("zone", "out"));
    let sets: Vec<Object> = sets.collect();
    world([pod("a"), policy("p").outbound(allow().to("has(zone)"))]).and(sets)
}

macro_rules! members {
    ($members:literal) => {
        concat!(
            "{has(zone)}: ",
            $members,
            "\npolicy gnp/p: out allow to {has(zone)}\npod a | default=deny both gnp/p"
        )
    };
}

#[test]
fn a_network_inside_another_is_left_out_and_comes_back() {
    check([
        out(&[&["10.0.0.0/8"]]).gives(members!("10.0.0.0/8")),
        out(&[&["10.0.0.0/8"], &["10.1.0.0/16", "11.0.0.0/16"]])
            .gives(members!("10.0.0.0/8 11.0.0.0/16")),
        out(&[&[], &["10.1.0.0/16", "11.0.0.0/16"]]).gives(members!("10.1.0.0/16 11.0.0.0/16")),
    ]);
}

#[test]
fn a_middle_network_goes_while_the_widest_stays() {
    check([
        out(&[&["10.0.0.0/8"]]).gives(members!("10.0.0.0/8")),
        out(&[&["10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.1/32"]])
            .gives(members!("10.0.0.0/8")),
        out(&[&["10.0.0.0/8", "10.1.1.0/24", "10.1.1.1/32"]]).gives(members!("10.0.0.0/8")),
        out(&[&["10.1.1.0/24", "10.1.1.1/32"]]).gives(members!("10.1.1.0/24")),
        out(&[&["10.1.1.1/32"]]).gives(members!("10.1.1.1/32")),
    ]);
}

#[test]
fn a_wide_network_makes_way_for_the_outermost_inside_it() {
    check([
        out(&[
            &["10.0.0.0/8"],
            &["10.1.0.0/16", "10.1.1.0/24", "10.2.0.0/16", "10.2.2.2/32"],
        ])
        .gives(members!("10.0.0.0/8")),
        out(&[
            &["10.1.0.0/17"],
            &["10.1.0.0/16", "10.1.1.0/24", "10.2.0.0/16", "10.2.2.2/32"],
        ])
        .gives(members!("10.1.0.0/16 10.2.0.0/16")),
        out(&[&[], &["10.1.1.0/24", "10.2.2.2/32"]]).gives(members!("10.1.1.0/24 10.2.2.2/32")),
    ]);
}

#[test]
fn pods_inside_a_network_of_everything_are_left_out() {
    let with_pod = |state: State| {
        state.and([remote_pod("b")
            .ip("10.0.0.2")
            .ip("fd00::2")
            .label("zone", "x")])
    };
    check([
        with_pod(out(&[&["0.0.0.0/0"]])).gives(members!("0.0.0.0/1 128.0.0.0/1 fd00::2/128")),
        with_pod(out(&[&["10.0.0.0/30", "::/0"]])).gives(members!("10.0.0.0/30 8000::/1 ::/1")),
        with_pod(out(&[&["128.0.0.0/1"]])).gives(members!("10.0.0.2/32 128.0.0.0/1 fd00::2/128")),
        with_pod(out(&[])).gives(members!("10.0.0.2/32 fd00::2/128")),
    ]);
}

#[test]
fn the_wide_network_goes_with_one_of_two_that_name_it() {
    check([
        out(&[&["10.0.0.0/8"], &["10.0.0.0/8", "10.1.0.0/16"]]).gives(members!("10.0.0.0/8")),
        out(&[&["10.0.0.0/8"], &["10.1.0.0/16"]]).gives(members!("10.0.0.0/8")),
        out(&[&["10.1.0.0/16"], &["10.1.0.0/16"]]).gives(members!("10.1.0.0/16")),
        out(&[&["10.1.0.0/16"]]).gives(members!("10.1.0.0/16")),
    ]);
}

#[test]
fn networks_with_the_same_start_are_told_apart_by_length() {
    check([
        out(&[&["10.0.0.0/8", "10.0.0.0/16", "10.0.0.0/24"]]).gives(members!("10.0.0.0/8")),
        out(&[&["10.0.0.0/16", "10.0.0.0/24", "10.0.0.0/32"]]).gives(members!("10.0.0.0/16")),
        out(&[&["10.0.0.0/32", "10.0.0.1/32"]]).gives(members!("10.0.0.0/32 10.0.0.1/32")),
        out(&[&["fd00::/8", "fd00::/128"]]).gives(members!("fd00::/8")),
        out(&[&["fd00::/128", "10.0.0.0/31"]]).gives(members!("10.0.0.0/31 fd00::/128")),
    ]);
}

#[test]
fn where_overlaps_are_allowed_all_members_are_sent() {
    let config = Config {
        overlaps: Overlaps::Sent,
        ..Config::for_node(LOCAL)
    };
    check_with(
        &config,
        [
            out(&[&["10.0.0.0/8"], &["10.1.0.0/16", "10.1.1.1/32"]])
                .gives(members!("10.0.0.0/8 10.1.0.0/16 10.1.1.1/32")),
            out(&[&["0.0.0.0/0"], &["10.1.0.0/16"]])
                .gives(members!("0.0.0.0/1 10.1.0.0/16 128.0.0.0/1")),
            out(&[&[], &["10.1.0.0/16", "::/0", "fd00::/8"]])
                .gives(members!("10.1.0.0/16 8000::/1 ::/1 fd00::/8")),
        ],
    );
}

#[test]
fn single_addresses_are_sent_also_where_networks_cover_them() {
    let config = Config {
        overlaps: Overlaps::AddressesSent,
        ..Config::for_node(LOCAL)
    };
    check_with(
        &config,
        [
            out(&[&["10.0.0.0/8"], &["10.1.0.0/16", "10.1.1.1/32"]])
                .gives(members!("10.0.0.0/8 10.1.1.1/32")),
            out(&[&["10.1.0.0/16"], &["10.1.1.1/32"]]).gives(members!("10.1.0.0/16 10.1.1.1/32")),
            out(&[&[], &["10.1.1.1/32", "10.1.1.2/32"]]).gives(members!("10.1.1.1/32 10.1.1.2/32")),
        ],
    );
}
