//! Profiles: rules that come after the policies, and what stands in for a profile that is missing.

use crate::states::build::{Object, network_set, pod, policy, profile, remote_pod};
use crate::states::list::{check, world};
use crate::states::rule::{allow, deny};

fn open_profile(name: &str) -> Object {
    profile(name).inbound(allow()).outbound(allow())
}

#[test]
fn a_profile_is_sent_while_a_local_endpoint_uses_it() {
    let a = || pod("a").profiles(&["open"]);
    let b = || pod("b").profiles(&["open"]);
    check([
        world([open_profile("open")]).gives(""),
        world([open_profile("open"), a()]).gives(
            "profile open: in allow; out allow
             pod a | profiles open",
        ),
        world([open_profile("open"), a(), b()]).gives(
            "profile open: in allow; out allow
             pod a | profiles open
             pod b | profiles open",
        ),
        world([open_profile("open"), b()]).gives(
            "profile open: in allow; out allow
             pod b | profiles open",
        ),
        world([open_profile("open"), pod("b")]).gives("pod b"),
    ]);
}

#[test]
fn a_missing_profile_denies_everything_until_it_is_there() {
    let a = || pod("a").profiles(&["p"]);
    check([
        world([a()]).gives(
            "profile p: in deny; out deny
             pod a | profiles p",
        ),
        world([a(), open_profile("p")]).gives(
            "profile p: in allow; out allow
             pod a | profiles p",
        ),
        world([a(), profile("p")]).gives(
            "profile p
             pod a | profiles p",
        ),
        world([a()]).gives(
            "profile p: in deny; out deny
             pod a | profiles p",
        ),
        world([a().profiles(&["p", "q"]), profile("q").inbound(allow())]).gives(
            "profile p: in deny; out deny
             profile q: in allow
             pod a | profiles p q",
        ),
    ]);
}

#[test]
fn a_missing_profile_that_denies_itself_is_no_change() {
    let a = || pod("a").profiles(&["p"]);
    check([
        world([a()]).gives(
            "profile p: in deny; out deny
             pod a | profiles p",
        ),
        world([a(), profile("p").inbound(deny()).outbound(allow())]).gives(
            "profile p: in deny; out allow
             pod a | profiles p",
        ),
    ]);
}

#[test]
fn the_profiles_of_an_endpoint_change() {
    let profiles = || [open_profile("p"), profile("q").inbound(deny())];
    let with = |names: &[&str]| world(profiles()).and([pod("a").profiles(names)]);
    check([
        with(&["p"]).gives(
            "profile p: in allow; out allow
             pod a | profiles p",
        ),
        with(&["p", "q"]).gives(
            "profile p: in allow; out allow
             profile q: in deny
             pod a | profiles p q",
        ),
        with(&["q", "p"]).gives(
            "profile p: in allow; out allow
             profile q: in deny
             pod a | profiles q p",
        ),
        with(&["q"]).gives(
            "profile q: in deny
             pod a | profiles q",
        ),
        with(&[]).gives("pod a"),
    ]);
}

#[test]
fn rules_of_profiles_have_sets_too() {
    let with_rule_from = |selector: &str| {
        world([
            pod("a").ip("10.0.0.1").label("app", "web").profiles(&["p"]),
            remote_pod("b").ip("10.0.0.2").label("app", "db"),
            profile("p").inbound(allow().from(selector)),
        ])
    };
    check([
        with_rule_from("app == 'web'").gives(
            "{app == 'web'}: 10.0.0.1/32
             profile p: in allow from {app == 'web'}
             pod a 10.0.0.1 | profiles p",
        ),
        with_rule_from("has(app)").gives(
            "{has(app)}: 10.0.0.1/32 10.0.0.2/32
             profile p: in allow from {has(app)}
             pod a 10.0.0.1 | profiles p",
        ),
        with_rule_from("").gives(
            "profile p: in allow
             pod a 10.0.0.1 | profiles p",
        ),
    ]);
}

#[test]
fn a_set_is_shared_by_profiles_and_policies() {
    let from_web = || allow().from("app == 'web'");
    let web = || remote_pod("b").ip("10.0.0.2").label("app", "web");
    let a = || pod("a").profiles(&["p"]);
    check([
        world([a(), web(), profile("p").inbound(from_web())]).gives(
            "{app == 'web'}: 10.0.0.2/32
             profile p: in allow from {app == 'web'}
             pod a | profiles p",
        ),
        world([
            a(),
            web(),
            profile("p").inbound(from_web()),
            policy("q").outbound(from_web()),
        ])
        .gives(
            "{app == 'web'}: 10.0.0.2/32
             profile p: in allow from {app == 'web'}
             policy gnp/q: out allow from {app == 'web'}
             pod a | profiles p | default=deny both gnp/q",
        ),
        world([a(), web(), profile("p"), policy("q").outbound(from_web())]).gives(
            "{app == 'web'}: 10.0.0.2/32
             profile p
             policy gnp/q: out allow from {app == 'web'}
             pod a | profiles p | default=deny both gnp/q",
        ),
    ]);
}

#[test]
fn a_profile_that_only_others_use_is_not_sent() {
    check([
        world([
            open_profile("p"),
            remote_pod("a").profiles(&["p", "missing"]),
            network_set("n", &["10.0.0.0/8"]).profiles(&["p", "gone"]),
        ])
        .gives(""),
        world([remote_pod("a").profiles(&["other"])]).gives(""),
    ]);
}

#[test]
fn a_profile_named_twice_counts_once() {
    let local = |names: &[&str]| pod("a").ip("10.0.0.1").profiles(names);
    let remote = |names: &[&str]| remote_pod("b").ip("10.0.0.2").profiles(names);
    let from_team = || policy("p").inbound(allow().from("team == 'x'"));
    check([
        world([
            local(&["t", "t"]),
            remote(&["t", "t", "nowhere", "nowhere"]),
            profile("t").label("team", "x"),
            from_team(),
        ])
        .gives(
            "{team == 'x'}: 10.0.0.1/32 10.0.0.2/32
             profile t
             policy gnp/p: in allow from {team == 'x'}
             pod a 10.0.0.1 | profiles t t | default=deny both gnp/p",
        ),
        world([
            local(&["t"]),
            remote(&[]),
            profile("t").label("team", "x"),
            from_team(),
        ])
        .gives(
            "{team == 'x'}: 10.0.0.1/32
             profile t
             policy gnp/p: in allow from {team == 'x'}
             pod a 10.0.0.1 | profiles t | default=deny both gnp/p",
        ),
        world([
            local(&["nowhere", "nowhere"]),
            remote(&["t", "t"]),
            from_team(),
        ])
        .gives(
            "{team == 'x'}:
             profile nowhere: in deny; out deny
             policy gnp/p: in allow from {team == 'x'}
             pod a 10.0.0.1 | profiles nowhere nowhere | default=deny both gnp/p",
        ),
    ]);
}
