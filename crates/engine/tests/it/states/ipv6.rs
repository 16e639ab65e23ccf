//! IPv6, alone and beside IPv4.

use crate::states::build::{host, network_set, pod, policy, remote_pod, slice};
use crate::states::list::{check, world};
use crate::states::rule::allow;

#[test]
fn endpoints_with_both_families_are_members_with_both() {
    let with = |addresses: &[&str]| {
        let b = remote_pod("b").label("app", "web").port("http", "tcp", 80);
        let b = addresses.iter().fold(b, |b, address| b.ip(address));
        let rule = allow()
            .protocol("tcp")
            .to("app == 'web'")
            .to_ports(&["http", "443"]);
        world([
            pod("a").ip("10.0.0.1").ip("fd00::1"),
            b,
            policy("p").outbound(rule),
        ])
    };
    check([
        with(&["10.0.0.2", "fd00::2"]).gives(
            "{app == 'web'}: 10.0.0.2/32 fd00::2/128
             {app == 'web'|tcp|http}: 10.0.0.2,tcp:80 fd00::2,tcp:80
             policy gnp/p: out allow tcp to {app == 'web'} ports 443,{app == 'web'|tcp|http}
             pod a 10.0.0.1 fd00::1 | default=deny both gnp/p",
        ),
        with(&["fd00::2"]).gives(
            "{app == 'web'}: fd00::2/128
             {app == 'web'|tcp|http}: fd00::2,tcp:80
             policy gnp/p: out allow tcp to {app == 'web'} ports 443,{app == 'web'|tcp|http}
             pod a 10.0.0.1 fd00::1 | default=deny both gnp/p",
        ),
        with(&["10.0.0.2"]).gives(
            "{app == 'web'}: 10.0.0.2/32
             {app == 'web'|tcp|http}: 10.0.0.2,tcp:80
             policy gnp/p: out allow tcp to {app == 'web'} ports 443,{app == 'web'|tcp|http}
             pod a 10.0.0.1 fd00::1 | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn networks_of_one_family_do_not_cover_the_other() {
    let with = |nets: &[&str]| {
        world([
            pod("a"),
            policy("p").outbound(allow().to("has(zone)")),
            network_set("n", nets).label("zone", "x"),
            network_set("m", &["fd00:1::/32", "10.1.0.0/16"]).label("zone", "y"),
        ])
    };
    check([
        with(&["fd00::/8"]).gives(
            "{has(zone)}: 10.1.0.0/16 fd00::/8
             policy gnp/p: out allow to {has(zone)}
             pod a | default=deny both gnp/p",
        ),
        with(&["10.0.0.0/8"]).gives(
            "{has(zone)}: 10.0.0.0/8 fd00:1::/32
             policy gnp/p: out allow to {has(zone)}
             pod a | default=deny both gnp/p",
        ),
        with(&["0.0.0.0/0"]).gives(
            "{has(zone)}: 0.0.0.0/1 128.0.0.0/1 fd00:1::/32
             policy gnp/p: out allow to {has(zone)}
             pod a | default=deny both gnp/p",
        ),
        with(&["::/0"]).gives(
            "{has(zone)}: 10.1.0.0/16 8000::/1 ::/1
             policy gnp/p: out allow to {has(zone)}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn services_have_slices_of_both_families() {
    let rules = || {
        [
            pod("a"),
            policy("p").outbound(allow().from_service("ns/web").to_service("ns/web")),
        ]
    };
    let v4 = || slice("ns/4", "web", &["10.0.0.2"], &["tcp:80"]);
    let v6 = || slice("ns/6", "web", &["fd00::2"], &["tcp:80"]);
    check([
        world(rules()).and([v4(), v6()]).gives(
            "{svcnoport ns/web}: 10.0.0.2/32 fd00::2/128
             {svc ns/web}: 10.0.0.2,tcp:80 fd00::2,tcp:80
             policy gnp/p: out allow from {svcnoport ns/web} to service {svc ns/web}
             pod a | default=deny both gnp/p",
        ),
        world(rules()).and([v6()]).gives(
            "{svcnoport ns/web}: fd00::2/128
             {svc ns/web}: fd00::2,tcp:80
             policy gnp/p: out allow from {svcnoport ns/web} to service {svc ns/web}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn an_ipv6_host_and_rules_for_one_family() {
    let with = |version: u8| {
        world([
            host("h").ip("fd00::9"),
            policy("p").inbound(allow().ip_version(version).from("all()")),
            policy("q").inbound(allow().protocol("icmpv6").icmp(135, Some(0))),
        ])
    };
    check([
        with(6).gives(
            "{all()}: fd00::9/128
             policy gnp/p: in allow v6 from {all()}
             policy gnp/q: in allow v6 icmpv6 icmp(135,0)
             host h on eth0 fd00::9 | default=deny both gnp/p gnp/q",
        ),
        with(4).gives(
            "{all()}: fd00::9/128
             policy gnp/p: in allow v4 from {all()}
             policy gnp/q: in allow v6 icmpv6 icmp(135,0)
             host h on eth0 fd00::9 | default=deny both gnp/p gnp/q",
        ),
    ]);
}
