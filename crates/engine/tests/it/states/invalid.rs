//! Objects that make no sense: absent, or closed.

use tortie_engine::Config;

use crate::states::build::{LOCAL, Object, net, pod, policy, profile, remote_pod};
use crate::states::list::{State, check, check_with, world};
use crate::states::rule::{RuleOf, allow, deny};

#[test]
fn a_workload_without_an_interface_is_absent() {
    let without = |object: Object| object.change_pod(|endpoint| endpoint.interface.clear());
    let p = || policy("p").inbound(allow().from("all()"));
    let b = || remote_pod("b").ip("10.0.0.2").profiles(&["t"]);
    let a = || pod("a").ip("10.0.0.1").profiles(&["t"]);
    check([
        world([p(), a(), b()]).gives(
            "{all()}: 10.0.0.1/32 10.0.0.2/32
             policy gnp/p: in allow from {all()}
             profile t: in deny; out deny
             pod a 10.0.0.1 | profiles t | default=deny both gnp/p",
        ),
        world([p(), a(), without(b())]).gives(
            "{all()}: 10.0.0.1/32
             policy gnp/p: in allow from {all()}
             profile t: in deny; out deny
             pod a 10.0.0.1 | profiles t | default=deny both gnp/p",
        ),
        world([p(), without(a()), b()]).gives(""),
    ]);
}

/// A pod that wants to send from a foreign range.
fn spoofer() -> Object {
    pod("a").ip("10.0.0.1").change_pod(|endpoint| {
        endpoint.allow_spoofed_source_prefixes = vec![net("192.0.2.0/24")];
    })
}

#[test]
fn a_workload_that_wants_to_spoof_is_absent() {
    check([
        world([spoofer(), policy("p")]).gives(""),
        world([pod("a").ip("10.0.0.1"), policy("p")]).gives(
            "policy gnp/p
             pod a 10.0.0.1 | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn a_workload_may_spoof_where_that_is_allowed() {
    let config = Config {
        allow_source_spoofing: true,
        ..Config::for_node(LOCAL)
    };
    check_with(
        &config,
        [
            world([spoofer(), policy("p")]).gives(
                "policy gnp/p
                 pod a 10.0.0.1 | default=deny both gnp/p | may spoof 192.0.2.0/24",
            ),
            world([pod("a").ip("10.0.0.1")]).gives("pod a 10.0.0.1"),
        ],
    );
}

#[test]
fn a_policy_whose_selector_does_not_parse_is_absent() {
    let with = |selector: &str| {
        world([
            pod("a").label("app", "web"),
            policy("p")
                .selector(selector)
                .inbound(allow().from("has(app)")),
            policy("q"),
        ])
    };
    check([
        with("app == 'web'").gives(
            "{has(app)}:
             policy gnp/p for app == 'web': in allow from {has(app)}
             policy gnp/q
             pod a | default=deny both gnp/p gnp/q",
        ),
        with("app = web").gives(
            "policy gnp/q
             pod a | default=deny both gnp/q",
        ),
        with("((").gives(
            "policy gnp/q
             pod a | default=deny both gnp/q",
        ),
        // An empty one is for everything.
        with("").gives(
            "{has(app)}:
             policy gnp/p: in allow from {has(app)}
             policy gnp/q
             pod a | default=deny both gnp/p gnp/q",
        ),
    ]);
}

fn under(rule: RuleOf) -> State {
    world([
        pod("a"),
        policy("p")
            .inbound(rule.protocol("tcp"))
            .inbound(allow().from("has(app)")),
    ])
}

#[test]
fn a_rule_whose_selector_does_not_parse_denies_everything() {
    let denied = "{has(app)}:
         policy gnp/p: in deny; in allow from {has(app)}
         pod a | default=deny both gnp/p";
    check([
        under(allow().from("app == 'web'")).gives(
            "{has(app)}:
             {app == 'web'}:
             policy gnp/p: in allow tcp from {app == 'web'}; in allow from {has(app)}
             pod a | default=deny both gnp/p",
        ),
        under(allow().from("app == ")).gives(denied),
        under(allow().to("&&")).gives(denied),
        under(allow().not_from("(")).gives(denied),
        under(allow().from("has(app)").not_from("(")).gives(denied),
        under(allow().from("(").not_from("has(app)")).gives(denied),
        under(allow().to("(").to_ports(&["http"])).gives(denied),
        under(allow().from("has(app)").to("(")).gives(denied),
        under(
            deny()
                .not_to("(")
                .not_to_ports(&["http"])
                .to_service("ns/web"),
        )
        .gives(
            "{has(app)}:
             policy gnp/p: in deny; in allow from {has(app)}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn a_rule_of_a_profile_whose_selector_does_not_parse_denies_everything() {
    let with = |selector: &str| {
        world([
            pod("a").profiles(&["t"]),
            profile("t")
                .inbound(allow().from(selector))
                .outbound(allow()),
        ])
    };
    check([
        with("has(app)").gives(
            "{has(app)}:
             profile t: in allow from {has(app)}; out allow
             pod a | profiles t",
        ),
        with("has app").gives(
            "profile t: in deny; out allow
             pod a | profiles t",
        ),
        with("has(app").gives(
            "profile t: in deny; out allow
             pod a | profiles t",
        ),
    ]);
}

#[test]
fn a_selector_that_only_parses_among_others_does_not_parse() {
    // In brackets with what must not match, the halves would make a whole.
    check([
        under(allow().from("has(a)) || (has(b)").not_from("has(c)")).gives(
            "{has(app)}:
             policy gnp/p: in deny; in allow from {has(app)}
             pod a | default=deny both gnp/p",
        ),
        under(allow().from("has(a)").not_from("has(b)) || (has(c)")).gives(
            "{has(app)}:
             policy gnp/p: in deny; in allow from {has(app)}
             pod a | default=deny both gnp/p",
        ),
    ]);
}
