//! Worlds with so many endpoints that members of a new set are looked up by label rather than one by one.

use crate::states::build::{Object, network_set, pod, policy, profile, remote_pod};
use crate::states::list::{State, check, world};
use crate::states::rule::{RuleOf, allow};

/// A local pod with a policy of one rule, and a crowd that no selector here matches.
fn crowded(rule: RuleOf) -> State {
    let crowd = (0..140).map(|number| remote_pod(&format!("c{number}")).ip("10.9.9.9"));
    world(crowd).and([pod("a"), policy("p").inbound(rule)])
}

fn labelled(address: &str, name: &str, value: &str) -> Object {
    remote_pod(address).ip(address).label(name, value)
}

#[test]
fn members_of_a_new_set_are_found_by_their_own_labels() {
    let peers = || {
        [
            labelled("10.0.0.2", "app", "web"),
            labelled("10.0.0.3", "app", "db").label("zone", "x"),
            network_set("n", &["192.0.2.0/24"]).label("app", "web"),
        ]
    };
    check([
        crowded(allow()).and(peers()).gives(
            "policy gnp/p: in allow
             pod a | default=deny both gnp/p",
        ),
        crowded(allow().from("app == 'web'")).and(peers()).gives(
            "{app == 'web'}: 10.0.0.2/32 192.0.2.0/24
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
        crowded(allow().from("app in {'web', 'db'} && has(zone)"))
            .and(peers())
            .gives(
                "{app in {'web', 'db'} && has(zone)}: 10.0.0.3/32
                 policy gnp/p: in allow from {app in {'web', 'db'} && has(zone)}
                 pod a | default=deny both gnp/p",
            ),
        crowded(allow().from("has(app)")).and(peers()).gives(
            "{has(app)}: 10.0.0.2/32 10.0.0.3/32 192.0.2.0/24
             policy gnp/p: in allow from {has(app)}
             pod a | default=deny both gnp/p",
        ),
        // Labels that changed while others were looked up by them.
        crowded(allow().from("app == 'db'"))
            .and([
                labelled("10.0.0.2", "app", "db"),
                labelled("10.0.0.3", "zone", "db"),
            ])
            .gives(
                "{app == 'db'}: 10.0.0.2/32
                 policy gnp/p: in allow from {app == 'db'}
                 pod a | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn members_of_a_new_set_are_found_by_inherited_labels() {
    let peers = || {
        [
            remote_pod("b").ip("10.0.0.2").profiles(&["t", "u"]),
            remote_pod("c").ip("10.0.0.3").profiles(&["u", "t"]),
            labelled("10.0.0.4", "team", "y").profiles(&["t"]),
        ]
    };
    let profiles = || {
        [
            profile("t").label("team", "x"),
            profile("u").label("team", "y"),
        ]
    };
    check([
        crowded(allow().from("app == 'web'"))
            .and(peers())
            .and(profiles())
            .gives(
                "{app == 'web'}:
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
            ),
        crowded(allow().from("team == 'x'"))
            .and(peers())
            .and(profiles())
            .gives(
                "{team == 'x'}: 10.0.0.2/32
             policy gnp/p: in allow from {team == 'x'}
             pod a | default=deny both gnp/p",
            ),
        crowded(allow().from("team == 'y'"))
            .and(peers())
            .and(profiles())
            .gives(
                "{team == 'y'}: 10.0.0.3/32 10.0.0.4/32
             policy gnp/p: in allow from {team == 'y'}
             pod a | default=deny both gnp/p",
            ),
        crowded(allow().from("has(team)"))
            .and(peers())
            .and(profiles())
            .gives(
                "{has(team)}: 10.0.0.2/32 10.0.0.3/32 10.0.0.4/32
             policy gnp/p: in allow from {has(team)}
             pod a | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn profiles_that_are_gone_or_relabelled_are_not_found_any_more() {
    let b = |names: &[&str]| remote_pod("b").ip("10.0.0.2").profiles(names);
    let found = "{team == 'x'}: 10.0.0.2/32
         policy gnp/p: in allow from {team == 'x'}
         pod a | default=deny both gnp/p";
    check([
        // First selectors that file the label, so that it is tracked from then on.
        crowded(allow())
            .and([b(&["t"]), profile("t").label("team", "x")])
            .gives(
                "policy gnp/p: in allow
             pod a | default=deny both gnp/p",
            ),
        crowded(allow().from("team == 'x'"))
            .and([b(&["t"]), profile("t").label("team", "x")])
            .gives(found),
        crowded(allow().from("team == 'x'").to("team == 'z'"))
            .and([b(&["u"]), profile("u").label("team", "x")])
            .gives(
                "{team == 'x'}: 10.0.0.2/32
                 {team == 'z'}:
                 policy gnp/p: in allow from {team == 'x'} to {team == 'z'}
                 pod a | default=deny both gnp/p",
            ),
        crowded(allow().from("has(team)").to("team == 'x'"))
            .and([b(&["u"]), profile("u").label("team", "z")])
            .gives(
                "{team == 'x'}:
                 {has(team)}: 10.0.0.2/32
                 policy gnp/p: in allow from {has(team)} to {team == 'x'}
                 pod a | default=deny both gnp/p",
            ),
        crowded(allow().from("team in {'x', 'z'}").to("has(team)"))
            .and([b(&[]), profile("t").label("team", "z")])
            .gives(
                "{has(team)}:
                 {team in {'x', 'z'}}:
                 policy gnp/p: in allow from {team in {'x', 'z'}} to {has(team)}
                 pod a | default=deny both gnp/p",
            ),
    ]);
}
