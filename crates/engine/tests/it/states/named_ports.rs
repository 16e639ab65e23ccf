//! Ports by name: sets of addresses with ports.

use crate::states::build::{Object, host_on, network_set, pod, policy, profile, remote_pod};
use crate::states::list::{State, check, world};
use crate::states::rule::{RuleOf, allow};

fn under(rule: RuleOf) -> State {
    world([pod("a"), policy("p").inbound(rule)])
}

fn web() -> Object {
    remote_pod("web").ip("10.0.0.2").label("app", "web")
}

#[test]
fn named_ports_follow_the_pod() {
    let rule = || {
        allow()
            .protocol("tcp")
            .to("app == 'web'")
            .to_ports(&["http"])
    };
    check([
        under(rule()).and([web().port("http", "tcp", 80)]).gives(
            "{app == 'web'|tcp|http}: 10.0.0.2,tcp:80
             policy gnp/p: in allow tcp to ports {app == 'web'|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        under(rule()).and([web().port("http", "tcp", 8080)]).gives(
            "{app == 'web'|tcp|http}: 10.0.0.2,tcp:8080
             policy gnp/p: in allow tcp to ports {app == 'web'|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        under(rule())
            .and([web().ip("10.0.0.3").port("http", "tcp", 8080)])
            .gives(
                "{app == 'web'|tcp|http}: 10.0.0.2,tcp:8080 10.0.0.3,tcp:8080
                 policy gnp/p: in allow tcp to ports {app == 'web'|tcp|http}
                 pod a | default=deny both gnp/p",
            ),
        under(rule()).and([web().port("https", "tcp", 443)]).gives(
            "{app == 'web'|tcp|http}:
             policy gnp/p: in allow tcp to ports {app == 'web'|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        under(rule())
            .and([web().label("app", "db").port("http", "tcp", 80)])
            .gives(
                "{app == 'web'|tcp|http}:
                 policy gnp/p: in allow tcp to ports {app == 'web'|tcp|http}
                 pod a | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn only_ports_of_the_protocol_of_the_rule_count() {
    let dns = || {
        web()
            .port("dns", "tcp", 53)
            .port("dns", "udp", 5353)
            .port("dns", "sctp", 9899)
    };
    check([
        under(allow().protocol("tcp").to_ports(&["dns"]))
            .and([dns()])
            .gives(
                "{all()|tcp|dns}: 10.0.0.2,tcp:53
             policy gnp/p: in allow tcp to ports {all()|tcp|dns}
             pod a | default=deny both gnp/p",
            ),
        under(allow().protocol("udp").to_ports(&["dns"]))
            .and([dns()])
            .gives(
                "{all()|udp|dns}: 10.0.0.2,udp:5353
             policy gnp/p: in allow udp to ports {all()|udp|dns}
             pod a | default=deny both gnp/p",
            ),
        under(allow().protocol("132").to_ports(&["dns"]))
            .and([dns()])
            .gives(
                "{all()|sctp|dns}: 10.0.0.2,sctp:9899
             policy gnp/p: in allow 132 to ports {all()|sctp|dns}
             pod a | default=deny both gnp/p",
            ),
        // Without a protocol, all of them.
        under(allow().to_ports(&["dns"])).and([dns()]).gives(
            "{all()|any|dns}: 10.0.0.2,sctp:9899 10.0.0.2,tcp:53 10.0.0.2,udp:5353
             policy gnp/p: in allow to ports {all()|any|dns}
             pod a | default=deny both gnp/p",
        ),
        under(allow().protocol("17").to_ports(&["dns"]))
            .and([web().port("dns", "tcp", 53)])
            .gives(
                "{all()|udp|dns}:
                 policy gnp/p: in allow 17 to ports {all()|udp|dns}
                 pod a | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn numbers_beside_a_name_still_need_the_selector() {
    let with = |ports: &[&str]| {
        under(allow().protocol("tcp").to("app == 'web'").to_ports(ports))
            .and([web().port("http", "tcp", 80)])
    };
    check([
        with(&["http"]).gives(
            "{app == 'web'|tcp|http}: 10.0.0.2,tcp:80
             policy gnp/p: in allow tcp to ports {app == 'web'|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        with(&["http", "443"]).gives(
            "{app == 'web'|tcp|http}: 10.0.0.2,tcp:80
             {app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow tcp to {app == 'web'} ports 443,{app == 'web'|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        with(&["443", "8000:8080"]).gives(
            "{app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow tcp to {app == 'web'} ports 443,8000:8080
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn negated_named_ports_look_among_what_the_selector_matches() {
    let with = |rule: RuleOf| under(rule.protocol("tcp")).and([web().port("http", "tcp", 80)]);
    check([
        with(allow().not_to_ports(&["http"])).gives(
            "{all()|tcp|http}: 10.0.0.2,tcp:80
             policy gnp/p: in allow tcp to not ports {all()|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        // The selector stays, for nothing else says whom the rule is about.
        with(allow().to("app == 'web'").not_to_ports(&["http", "22"])).gives(
            "{app == 'web'|tcp|http}: 10.0.0.2,tcp:80
             {app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow tcp to {app == 'web'} not ports 22,{app == 'web'|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        // What must not match does not narrow the ports by itself.
        with(allow().not_to("app == 'web'").not_to_ports(&["http"])).gives(
            "{all()|tcp|http}: 10.0.0.2,tcp:80
             {app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow tcp to not {app == 'web'} not ports {all()|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        with(
            allow()
                .to("has(app)")
                .not_to("app == 'db'")
                .not_to_ports(&["http"]),
        )
        .gives(
            "{(has(app)) && (!(app == 'db'))|tcp|http}: 10.0.0.2,tcp:80
             {(has(app)) && (!(app == 'db'))}: 10.0.0.2/32
             policy gnp/p: in allow tcp to {(has(app)) && (!(app == 'db'))} \
             not ports {(has(app)) && (!(app == 'db'))|tcp|http}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn sources_have_named_ports_too() {
    let with = |rule: RuleOf| under(rule.protocol("udp")).and([web().port("dns", "udp", 53)]);
    check([
        with(allow().from("app == 'web'").from_ports(&["dns"])).gives(
            "{app == 'web'|udp|dns}: 10.0.0.2,udp:53
             policy gnp/p: in allow udp from ports {app == 'web'|udp|dns}
             pod a | default=deny both gnp/p",
        ),
        with(
            allow()
                .from("app == 'web'")
                .not_from_ports(&["dns"])
                .to_ports(&["dns"]),
        )
        .gives(
            "{app == 'web'|udp|dns}: 10.0.0.2,udp:53
             {app == 'web'}: 10.0.0.2/32
             {all()|udp|dns}: 10.0.0.2,udp:53
             policy gnp/p: in allow udp from {app == 'web'} not ports {app == 'web'|udp|dns} \
             to ports {all()|udp|dns}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn one_name_can_stand_for_several_ports_of_an_endpoint() {
    let rule = || allow().protocol("tcp").to_ports(&["http"]);
    check([
        under(rule())
            .and([web().port("http", "tcp", 80).port("http", "tcp", 8080)])
            .gives(
                "{all()|tcp|http}: 10.0.0.2,tcp:80 10.0.0.2,tcp:8080
                 policy gnp/p: in allow tcp to ports {all()|tcp|http}
                 pod a | default=deny both gnp/p",
            ),
        under(rule())
            .and([web().port("http", "tcp", 80).port("http", "tcp", 80)])
            .gives(
                "{all()|tcp|http}: 10.0.0.2,tcp:80
                 policy gnp/p: in allow tcp to ports {all()|tcp|http}
                 pod a | default=deny both gnp/p",
            ),
        under(rule())
            .and([web().port("http", "tcp", 80).port("https", "tcp", 80)])
            .gives(
                "{all()|tcp|http}: 10.0.0.2,tcp:80
                 policy gnp/p: in allow tcp to ports {all()|tcp|http}
                 pod a | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn a_port_that_two_endpoints_give_stays_until_both_are_gone() {
    let rule = || allow().to_ports(&["http"]);
    let other = || remote_pod("other").ip("10.0.0.2").port("http", "tcp", 80);
    check([
        under(rule())
            .and([web().port("http", "tcp", 80), other()])
            .gives(
                "{all()|any|http}: 10.0.0.2,tcp:80
             policy gnp/p: in allow to ports {all()|any|http}
             pod a | default=deny both gnp/p",
            ),
        under(rule()).and([other()]).gives(
            "{all()|any|http}: 10.0.0.2,tcp:80
             policy gnp/p: in allow to ports {all()|any|http}
             pod a | default=deny both gnp/p",
        ),
        under(rule())
            .and([web().port("http", "udp", 80), other()])
            .gives(
                "{all()|any|http}: 10.0.0.2,tcp:80 10.0.0.2,udp:80
             policy gnp/p: in allow to ports {all()|any|http}
             pod a | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn named_ports_follow_inherited_labels() {
    let objects = |team: &str| {
        under(
            allow()
                .protocol("tcp")
                .to("team == 'x'")
                .to_ports(&["http"]),
        )
        .and([
            web().port("http", "tcp", 80).profiles(&["t"]),
            profile("t").label("team", team),
        ])
    };
    check([
        objects("x").gives(
            "{team == 'x'|tcp|http}: 10.0.0.2,tcp:80
             policy gnp/p: in allow tcp to ports {team == 'x'|tcp|http}
             pod a | default=deny both gnp/p",
        ),
        objects("y").gives(
            "{team == 'x'|tcp|http}:
             policy gnp/p: in allow tcp to ports {team == 'x'|tcp|http}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn hosts_have_named_ports_and_network_sets_have_none() {
    let rule = || {
        allow()
            .protocol("tcp")
            .to("has(role)")
            .to_ports(&["ssh", "1"])
    };
    check([
        under(rule())
            .and([host_on("there", "h")
                .ip("192.168.0.2")
                .label("role", "node")
                .port("ssh", "tcp", 22)])
            .gives(
                "{has(role)|tcp|ssh}: 192.168.0.2,tcp:22
                 {has(role)}: 192.168.0.2/32
                 policy gnp/p: in allow tcp to {has(role)} ports 1,{has(role)|tcp|ssh}
                 pod a | default=deny both gnp/p",
            ),
        under(rule())
            .and([network_set("n", &["192.0.2.0/24"]).label("role", "out")])
            .gives(
                "{has(role)|tcp|ssh}:
                 {has(role)}: 192.0.2.0/24
                 policy gnp/p: in allow tcp to {has(role)} ports 1,{has(role)|tcp|ssh}
                 pod a | default=deny both gnp/p",
            ),
    ]);
}
