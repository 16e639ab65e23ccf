//! Rules without sets: networks, ports, protocols, ICMP, actions.

use crate::states::build::{Object, pod, policy, policy_of};
use crate::states::list::{State, check, world};
use crate::states::rule::{RuleOf, allow, deny, log, pass};
use tortie_engine::input::PolicyKind;

fn under(rules: impl IntoIterator<Item = RuleOf>) -> State {
    let policy = rules.into_iter().fold(policy("p"), Object::inbound);
    world([pod("a"), policy])
}

#[test]
fn networks_stay_in_the_rule() {
    check([
        under([allow().from_nets(&["10.0.0.0/8", "192.0.2.1/32"], &[])]).gives(
            "policy gnp/p: in allow from nets 10.0.0.0/8,192.0.2.1/32
             pod a | default=deny both gnp/p",
        ),
        under([allow().from_nets(&["10.0.0.0/8"], &["10.1.0.0/16", "10.2.0.0/16"])]).gives(
            "policy gnp/p: in allow from nets 10.0.0.0/8 not nets 10.1.0.0/16,10.2.0.0/16
             pod a | default=deny both gnp/p",
        ),
        under([deny()
            .to_nets(&[], &["0.0.0.0/0"])
            .from_nets(&["::/0"], &[])])
        .gives(
            "policy gnp/p: in deny from nets ::/0 to not nets 0.0.0.0/0
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn networks_and_selectors_are_told_side_by_side() {
    check([
        under([allow().from("has(app)").from_nets(&["10.0.0.0/8"], &[])]).gives(
            "{has(app)}:
             policy gnp/p: in allow from {has(app)} nets 10.0.0.0/8
             pod a | default=deny both gnp/p",
        ),
        under([allow().not_from("has(app)").from_nets(&[], &["10.0.0.0/8"])]).gives(
            "{has(app)}:
             policy gnp/p: in allow from not {has(app)} not nets 10.0.0.0/8
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn icmp_names_the_version_of_ip_unless_the_rule_does() {
    check([
        under([
            allow().protocol("icmp"),
            allow().protocol("icmp").icmp(8, None),
            allow().protocol("icmp").icmp(3, Some(1)),
            allow().protocol("icmpv6").not_icmp(128, None),
            allow().protocol("icmpv6").not_icmp(1, Some(0)),
        ])
        .gives(
            "policy gnp/p: in allow v4 icmp; in allow v4 icmp icmp(8); \
             in allow v4 icmp icmp(3,1); in allow v6 icmpv6 !icmp(128); \
             in allow v6 icmpv6 !icmp(1,0)
             pod a | default=deny both gnp/p",
        ),
        // By number it is a protocol like any other.
        under([
            allow().protocol("1"),
            allow().protocol("58"),
            allow().not_protocol("icmp"),
            allow().protocol("icmp").ip_version(6),
        ])
        .gives(
            "policy gnp/p: in allow 1; in allow 58; in allow !icmp; in allow v6 icmp
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn protocols_by_name_and_number_and_negated() {
    check([
        under([
            allow().protocol("tcp"),
            allow().protocol("udplite"),
            deny().protocol("sctp").ip_version(4),
            deny().not_protocol("udp"),
        ])
        .gives(
            "policy gnp/p: in allow tcp; in allow udplite; in deny v4 sctp; in deny !udp
             pod a | default=deny both gnp/p",
        ),
        under([
            allow().protocol("6"),
            allow().protocol("255").not_protocol("17"),
        ])
        .gives(
            "policy gnp/p: in allow 6; in allow 255 !17
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn ports_and_ranges_and_what_they_must_not_be() {
    check([
        under([allow().protocol("tcp").to_ports(&["80", "8000:8080", "0"])]).gives(
            "policy gnp/p: in allow tcp to ports 80,8000:8080,0
             pod a | default=deny both gnp/p",
        ),
        under([allow()
            .protocol("tcp")
            .from_ports(&["1024:65535"])
            .not_from_ports(&["2000"])
            .not_to_ports(&["22", "25:26"])])
        .gives(
            "policy gnp/p: in allow tcp from ports 1024:65535 not ports 2000 \
             to not ports 22,25:26
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn rules_keep_their_order_and_their_actions() {
    check([
        under([log(), pass(), allow(), deny()]).gives(
            "policy gnp/p: in log; in pass; in allow; in deny
             pod a | default=deny both gnp/p",
        ),
        under([deny(), allow(), log()]).gives(
            "policy gnp/p: in deny; in allow; in log
             pod a | default=deny both gnp/p",
        ),
        // The same rule twice is two rules.
        under([allow(), allow()]).gives(
            "policy gnp/p: in allow; in allow
             pod a | default=deny both gnp/p",
        ),
        under([]).gives(
            "policy gnp/p
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn sets_come_and_go_with_the_rules_that_use_them() {
    let rules = |first: &str, second: &str| {
        world([
            pod("a").ip("10.0.0.1").label("app", "web"),
            policy_of(PolicyKind::NetworkPolicy, "ns", "p")
                .inbound(allow().from(first))
                .outbound(allow().to(second)),
        ])
    };
    check([
        rules("app == 'web'", "app == 'db'").gives(
            "{app == 'web'}: 10.0.0.1/32
             {app == 'db'}:
             policy np/ns/p: in allow from {app == 'web'}; out allow to {app == 'db'}
             pod a 10.0.0.1 | default=deny both np/ns/p",
        ),
        // One set for both directions.
        rules("app == 'db'", "app == 'db'").gives(
            "{app == 'db'}:
             policy np/ns/p: in allow from {app == 'db'}; out allow to {app == 'db'}
             pod a 10.0.0.1 | default=deny both np/ns/p",
        ),
        rules("app == 'db'", "app == 'web'").gives(
            "{app == 'web'}: 10.0.0.1/32
             {app == 'db'}:
             policy np/ns/p: in allow from {app == 'db'}; out allow to {app == 'web'}
             pod a 10.0.0.1 | default=deny both np/ns/p",
        ),
        world([pod("a").ip("10.0.0.1").label("app", "web")]).gives("pod a 10.0.0.1"),
    ]);
}
