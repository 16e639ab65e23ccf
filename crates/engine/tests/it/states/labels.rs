//! Labels that endpoints and network sets inherit from their profiles.

use crate::states::build::{Object, network_set, pod, policy, profile, remote_pod};
use crate::states::list::{State, check, world};
use crate::states::rule::allow;

/// A local pod whose policy applies to `team == 'x'` and lets `team == 'x'` in.
fn with_policy(objects: impl IntoIterator<Item = Object>) -> State {
    world([policy("p")
        .selector("team == 'x'")
        .inbound(allow().from("team == 'x'"))])
    .and(objects)
}

#[test]
fn labels_of_a_profile_are_labels_of_its_endpoints() {
    let pods = || {
        [
            pod("a").ip("10.0.0.1").profiles(&["t"]),
            remote_pod("b").ip("10.0.0.2").profiles(&["t"]),
        ]
    };
    check([
        with_policy(pods()).gives(
            "profile t: in deny; out deny
             pod a 10.0.0.1 | profiles t",
        ),
        with_policy(pods())
            .and([profile("t").label("team", "x")])
            .gives(
                "{team == 'x'}: 10.0.0.1/32 10.0.0.2/32
             profile t
             policy gnp/p for team == 'x': in allow from {team == 'x'}
             pod a 10.0.0.1 | profiles t | default=deny both gnp/p",
            ),
        with_policy(pods())
            .and([profile("t").label("team", "y")])
            .gives(
                "profile t
             pod a 10.0.0.1 | profiles t",
            ),
        with_policy(pods())
            .and([profile("t").label("role", "x")])
            .gives(
                "profile t
             pod a 10.0.0.1 | profiles t",
            ),
    ]);
}

#[test]
fn a_label_of_its_own_comes_before_an_inherited_one() {
    let own = |value: &str| {
        pod("a")
            .ip("10.0.0.1")
            .profiles(&["t"])
            .label("team", value)
    };
    let t = |value: &str| profile("t").label("team", value);
    check([
        with_policy([own("x"), t("y")]).gives(
            "{team == 'x'}: 10.0.0.1/32
             profile t
             policy gnp/p for team == 'x': in allow from {team == 'x'}
             pod a 10.0.0.1 | profiles t | default=deny both gnp/p",
        ),
        with_policy([own("y"), t("x")]).gives(
            "profile t
             pod a 10.0.0.1 | profiles t",
        ),
        with_policy([pod("a").ip("10.0.0.1").profiles(&["t"]), t("x")]).gives(
            "{team == 'x'}: 10.0.0.1/32
             profile t
             policy gnp/p for team == 'x': in allow from {team == 'x'}
             pod a 10.0.0.1 | profiles t | default=deny both gnp/p",
        ),
        // An empty value is a value.
        with_policy([own(""), t("x")]).gives(
            "profile t
             pod a 10.0.0.1 | profiles t",
        ),
    ]);
}

#[test]
fn of_several_profiles_the_first_with_the_label_counts() {
    let profiles = || {
        [
            profile("x").label("team", "x"),
            profile("y").label("team", "y"),
        ]
    };
    let a = |names: &[&str]| pod("a").ip("10.0.0.1").profiles(names);
    check([
        with_policy(profiles()).and([a(&["x", "y"])]).gives(
            "{team == 'x'}: 10.0.0.1/32
             profile x
             profile y
             policy gnp/p for team == 'x': in allow from {team == 'x'}
             pod a 10.0.0.1 | profiles x y | default=deny both gnp/p",
        ),
        with_policy(profiles()).and([a(&["y", "x"])]).gives(
            "profile x
             profile y
             pod a 10.0.0.1 | profiles y x",
        ),
        // One without the label does not stand in the way.
        with_policy([
            profile("y").label("role", "y"),
            profile("x").label("team", "x"),
        ])
        .and([a(&["y", "x"])])
        .gives(
            "{team == 'x'}: 10.0.0.1/32
                 profile x
                 profile y
                 policy gnp/p for team == 'x': in allow from {team == 'x'}
                 pod a 10.0.0.1 | profiles y x | default=deny both gnp/p",
        ),
        with_policy([profile("x").label("team", "x")])
            .and([a(&["y", "x"])])
            .gives(
                "{team == 'x'}: 10.0.0.1/32
                 profile x
                 profile y: in deny; out deny
                 policy gnp/p for team == 'x': in allow from {team == 'x'}
                 pod a 10.0.0.1 | profiles y x | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn own_and_inherited_labels_satisfy_a_selector_together() {
    let selector = "app == 'web' && pcns.team == 'x'";
    let objects = |team: &str, app: &str| {
        world([
            pod("a"),
            policy("p").inbound(allow().from(selector)),
            remote_pod("b")
                .ip("10.0.0.2")
                .label("app", app)
                .profiles(&["kns.n"]),
            profile("kns.n").label("pcns.team", team),
        ])
    };
    check([
        objects("x", "web").gives(
            "{app == 'web' && pcns.team == 'x'}: 10.0.0.2/32
             policy gnp/p: in allow from {app == 'web' && pcns.team == 'x'}
             pod a | default=deny both gnp/p",
        ),
        objects("y", "web").gives(
            "{app == 'web' && pcns.team == 'x'}:
             policy gnp/p: in allow from {app == 'web' && pcns.team == 'x'}
             pod a | default=deny both gnp/p",
        ),
        objects("y", "db").gives(
            "{app == 'web' && pcns.team == 'x'}:
             policy gnp/p: in allow from {app == 'web' && pcns.team == 'x'}
             pod a | default=deny both gnp/p",
        ),
        objects("x", "db").gives(
            "{app == 'web' && pcns.team == 'x'}:
             policy gnp/p: in allow from {app == 'web' && pcns.team == 'x'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn network_sets_inherit_the_labels_of_their_namespace() {
    let objects = |labels: &[(&str, &str)]| {
        let mut namespace = profile("kns.n");
        for (name, value) in labels {
            namespace = namespace.label(name, value);
        }
        world([
            pod("a"),
            policy("p").outbound(allow().to("pcns.zone == 'out' && kind == 'dns'")),
            network_set("n/dns", &["192.0.2.0/24"])
                .label("kind", "dns")
                .profiles(&["kns.n"]),
            namespace,
        ])
    };
    check([
        objects(&[("pcns.zone", "out")]).gives(
            "{pcns.zone == 'out' && kind == 'dns'}: 192.0.2.0/24
             policy gnp/p: out allow to {pcns.zone == 'out' && kind == 'dns'}
             pod a | default=deny both gnp/p",
        ),
        objects(&[]).gives(
            "{pcns.zone == 'out' && kind == 'dns'}:
             policy gnp/p: out allow to {pcns.zone == 'out' && kind == 'dns'}
             pod a | default=deny both gnp/p",
        ),
        objects(&[("pcns.zone", "in"), ("kind", "other")]).gives(
            "{pcns.zone == 'out' && kind == 'dns'}:
             policy gnp/p: out allow to {pcns.zone == 'out' && kind == 'dns'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn the_absence_of_a_label_is_about_inherited_ones_too() {
    let objects = |profile: Object| {
        world([
            pod("a").ip("10.0.0.1").profiles(&["t"]),
            policy("p")
                .selector("!has(secret)")
                .inbound(allow().from("team != 'x'")),
            profile,
        ])
    };
    check([
        objects(profile("t")).gives(
            "{team != 'x'}: 10.0.0.1/32
             profile t
             policy gnp/p for !has(secret): in allow from {team != 'x'}
             pod a 10.0.0.1 | profiles t | default=deny both gnp/p",
        ),
        objects(profile("t").label("team", "x")).gives(
            "{team != 'x'}:
             profile t
             policy gnp/p for !has(secret): in allow from {team != 'x'}
             pod a 10.0.0.1 | profiles t | default=deny both gnp/p",
        ),
        objects(profile("t").label("secret", "")).gives(
            "profile t
             pod a 10.0.0.1 | profiles t",
        ),
    ]);
}
