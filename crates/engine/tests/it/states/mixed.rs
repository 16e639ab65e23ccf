//! Worlds that have little in common, one after another.

use crate::states::build::{
    host, network_set, pod, policy, policy_of, profile, remote_pod, slice, tier,
};
use crate::states::list::{State, check, world};
use crate::states::rule::{allow, deny, pass};
use tortie_engine::input::PolicyKind;

fn tiers_and_profiles() -> State {
    world([
        tier("first").tier_order(1.0).passes(),
        pod("a")
            .ip("10.0.0.1")
            .label("app", "web")
            .profiles(&["p", "q"]),
        pod("b").ip("10.0.0.2").profiles(&["q"]),
        profile("q")
            .label("app", "db")
            .inbound(allow().from("app == 'web'")),
        policy("x")
            .in_tier("first")
            .selector("app == 'db'")
            .inbound(pass()),
        policy("y")
            .selector("has(app)")
            .order(1.0)
            .outbound(allow().to("app == 'db'")),
        policy("z").in_tier("gone").selector("app == 'web'"),
    ])
    .gives(
        "{app == 'web'}: 10.0.0.1/32
         {app == 'db'}: 10.0.0.2/32
         profile p: in deny; out deny
         profile q: in allow from {app == 'web'}
         policy gnp/x @first for app == 'db': in pass
         policy gnp/y for has(app): out allow to {app == 'db'}
         policy gnp/z @gone for app == 'web'
         pod a 10.0.0.1 | profiles p q | default=deny both gnp/y | gone=? both gnp/z
         pod b 10.0.0.2 | profiles q | first=pass both gnp/x | default=deny both gnp/y",
    )
}

fn hosts_and_network_sets() -> State {
    world([
        host("h")
            .ip("192.168.0.1")
            .label("app", "db")
            .profiles(&["p"]),
        network_set("n", &["10.0.0.0/24", "10.0.0.0/8"]).label("app", "web"),
        profile("p").label("app", "other").inbound(deny()),
        policy("x")
            .selector("app == 'db'")
            .untracked()
            .inbound(allow().from("app == 'web'")),
        policy("y")
            .selector("app == 'db'")
            .on_forward()
            .inbound(deny().not_from("app == 'db'")),
        policy("z").selector("app == 'web'"),
    ])
    .gives(
        "{app == 'web'}: 10.0.0.0/8
         {app == 'db'}: 192.168.0.1/32
         profile p: in deny
         policy gnp/x for app == 'db' untracked: in allow from {app == 'web'}
         policy gnp/y for app == 'db': in deny from not {app == 'db'}
         host h on eth0 192.168.0.1 | profiles p | default=deny both gnp/y \
         | untracked default=pass both gnp/x | forward default=deny both gnp/y",
    )
}

fn ports_and_services() -> State {
    world([
        tier("first"),
        pod("a")
            .ip("10.0.0.1")
            .label("app", "db")
            .port("sql", "tcp", 5432)
            .profiles(&["p"]),
        remote_pod("b")
            .ip("10.0.0.1")
            .label("app", "web")
            .port("sql", "udp", 5432),
        slice("ns/s", "web", &["10.0.0.1", "10.0.0.2"], &["tcp:80"]),
        profile("p").outbound(allow().to_service("ns/web")),
        policy_of(PolicyKind::StagedNetworkPolicy, "ns", "x")
            .in_tier("first")
            .inbound(allow().to("app == 'db'").to_ports(&["sql"])),
        policy("y")
            .selector("app == 'db'")
            .outbound(deny().from("app == 'db'")),
    ])
    .gives(
        "{app == 'db'|any|sql}: 10.0.0.1,tcp:5432
         {app == 'db'}: 10.0.0.1/32
         {svc ns/web}: 10.0.0.1,tcp:80 10.0.0.2,tcp:80
         profile p: out allow to service {svc ns/web}
         policy snp/ns/x @first: in allow to ports {app == 'db'|any|sql}
         policy gnp/y for app == 'db': out deny from {app == 'db'}
         pod a 10.0.0.1 | profiles p | default=deny both gnp/y | first=deny both snp/ns/x",
    )
}

fn all_remote() -> State {
    world([
        remote_pod("a")
            .ip("10.0.0.1")
            .label("app", "web")
            .profiles(&["p", "q"]),
        remote_pod("b").ip("10.0.0.2").profiles(&["q"]),
        profile("q").label("app", "db"),
        policy("y")
            .selector("has(app)")
            .always()
            .outbound(allow().to("app == 'db'")),
    ])
    .gives(
        "{app == 'db'}: 10.0.0.2/32
         policy gnp/y for has(app) always: out allow to {app == 'db'}",
    )
}

#[test]
fn one_world_after_another() {
    check([
        tiers_and_profiles(),
        hosts_and_network_sets(),
        ports_and_services(),
        all_remote(),
        hosts_and_network_sets(),
        tiers_and_profiles(),
        all_remote(),
        ports_and_services(),
        tiers_and_profiles(),
    ]);
}

#[test]
fn nothing_gives_nothing() {
    check([world([]), world([])]);
}
