//! Selectors in rules: what they match, and how they become sets.

use crate::states::build::{Object, network_set, pod, policy, remote_pod};
use crate::states::list::{State, check, set_id, world};
use crate::states::rule::{RuleOf, allow, deny};

/// A local pod `a` without an address, under one policy with one rule inwards.
fn under(rule: RuleOf) -> State {
    world([pod("a"), policy("p").inbound(rule)])
}

fn peer(address: &str, labels: &[(&str, &str)]) -> Object {
    let peer = remote_pod(address).ip(address);
    labels
        .iter()
        .fold(peer, |peer, (name, value)| peer.label(name, value))
}

#[test]
fn identifiers_of_sets_are_those_of_calico() {
    assert_eq!(
        set_id("all()").as_str(),
        "s:5y5I3VdRZfDU01O--xXAPx2yxCQQqMf0M6IWug"
    );
    check([under(allow().from("all()"))
        .and([peer("10.0.0.2", &[])])
        .gives(
            "{all()}: 10.0.0.2/32
             policy gnp/p: in allow from {all()}
             pod a | default=deny both gnp/p",
        )]);
}

#[test]
fn members_follow_their_labels() {
    let with = |labels: &[(&str, &str)]| {
        under(allow().from("app == 'web'")).and([peer("10.0.0.2", labels)])
    };
    check([
        with(&[("app", "web")]).gives(
            "{app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
        with(&[("app", "db")]).gives(
            "{app == 'web'}:
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
        with(&[("tier", "web")]).gives(
            "{app == 'web'}:
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
        with(&[("app", "web"), ("tier", "x")]).gives(
            "{app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn members_follow_their_addresses() {
    let with = |addresses: &[&str]| {
        let b = remote_pod("b").label("app", "web");
        let b = addresses.iter().fold(b, |b, address| b.ip(address));
        under(allow().from("app == 'web'")).and([b])
    };
    check([
        with(&["10.0.0.2"]).gives(
            "{app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
        with(&["10.0.0.2", "10.0.0.3"]).gives(
            "{app == 'web'}: 10.0.0.2/32 10.0.0.3/32
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
        with(&["10.0.0.3"]).gives(
            "{app == 'web'}: 10.0.0.3/32
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
        with(&[]).gives(
            "{app == 'web'}:
             policy gnp/p: in allow from {app == 'web'}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn every_operator_selects_what_it_says() {
    let peers = |x: &str| {
        [
            peer("10.0.0.2", &[("k", x)]),
            peer("10.0.0.3", &[("k", "abc")]),
            peer("10.0.0.4", &[]),
        ]
    };
    let rules = || {
        world([
            pod("a"),
            policy("p")
                .inbound(allow().from("k in {'xyz', 'abc'}"))
                .inbound(allow().from("k not in {'xyz', 'abc'}"))
                .inbound(allow().from("has(k)"))
                .inbound(allow().from("!has(k)"))
                .inbound(allow().from("k contains 'b'"))
                .inbound(allow().from("k starts with 'x'"))
                .inbound(allow().from("k ends with 'c'"))
                .inbound(allow().from("k != 'abc'"))
                .inbound(allow().from("k == 'xyz' || !has(k)"))
                .inbound(allow().from("!(k == 'xyz')")),
        ])
    };
    check([
        rules().and(peers("xyz")).gives(
            "{k in {'xyz', 'abc'}}: 10.0.0.2/32 10.0.0.3/32
             {k not in {'xyz', 'abc'}}: 10.0.0.4/32
             {has(k)}: 10.0.0.2/32 10.0.0.3/32
             {!has(k)}: 10.0.0.4/32
             {k contains 'b'}: 10.0.0.3/32
             {k starts with 'x'}: 10.0.0.2/32
             {k ends with 'c'}: 10.0.0.3/32
             {k != 'abc'}: 10.0.0.2/32 10.0.0.4/32
             {k == 'xyz' || !has(k)}: 10.0.0.2/32 10.0.0.4/32
             {!(k == 'xyz')}: 10.0.0.3/32 10.0.0.4/32
             policy gnp/p: in allow from {k in {'xyz', 'abc'}}; \
             in allow from {k not in {'xyz', 'abc'}}; in allow from {has(k)}; \
             in allow from {!has(k)}; in allow from {k contains 'b'}; \
             in allow from {k starts with 'x'}; in allow from {k ends with 'c'}; \
             in allow from {k != 'abc'}; in allow from {k == 'xyz' || !has(k)}; \
             in allow from {!(k == 'xyz')}
             pod a | default=deny both gnp/p",
        ),
        rules().and(peers("")).gives(
            "{k in {'xyz', 'abc'}}: 10.0.0.3/32
             {k not in {'xyz', 'abc'}}: 10.0.0.2/32 10.0.0.4/32
             {has(k)}: 10.0.0.2/32 10.0.0.3/32
             {!has(k)}: 10.0.0.4/32
             {k contains 'b'}: 10.0.0.3/32
             {k starts with 'x'}:
             {k ends with 'c'}: 10.0.0.3/32
             {k != 'abc'}: 10.0.0.2/32 10.0.0.4/32
             {k == 'xyz' || !has(k)}: 10.0.0.4/32
             {!(k == 'xyz')}: 10.0.0.2/32 10.0.0.3/32 10.0.0.4/32
             policy gnp/p: in allow from {k in {'xyz', 'abc'}}; \
             in allow from {k not in {'xyz', 'abc'}}; in allow from {has(k)}; \
             in allow from {!has(k)}; in allow from {k contains 'b'}; \
             in allow from {k starts with 'x'}; in allow from {k ends with 'c'}; \
             in allow from {k != 'abc'}; in allow from {k == 'xyz' || !has(k)}; \
             in allow from {!(k == 'xyz')}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn what_must_not_match_narrows_what_must() {
    let peers = || {
        [
            peer("10.0.0.2", &[("app", "web")]),
            peer("10.0.0.3", &[("app", "web"), ("bad", "1")]),
            peer("10.0.0.4", &[("bad", "1")]),
        ]
    };
    check([
        under(allow().from("app == 'web'").not_from("has(bad)"))
            .and(peers())
            .gives(
                "{(app == 'web') && (!(has(bad)))}: 10.0.0.2/32
                 policy gnp/p: in allow from {(app == 'web') && (!(has(bad)))}
                 pod a | default=deny both gnp/p",
            ),
        // Alone it is a condition of its own, which packets from nowhere known satisfy.
        under(allow().not_from("has(bad)")).and(peers()).gives(
            "{has(bad)}: 10.0.0.3/32 10.0.0.4/32
             policy gnp/p: in allow from not {has(bad)}
             pod a | default=deny both gnp/p",
        ),
        under(
            deny()
                .to("app == 'web'")
                .not_to("has(bad)")
                .not_from("app == 'web'"),
        )
        .and(peers())
        .gives(
            "{(app == 'web') && (!(has(bad)))}: 10.0.0.2/32
                 {app == 'web'}: 10.0.0.2/32 10.0.0.3/32
                 policy gnp/p: in deny from not {app == 'web'} \
                 to {(app == 'web') && (!(has(bad)))}
                 pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn objects_outside_namespaces_are_those_without_the_label() {
    let objects = || {
        [
            remote_pod("ns/b")
                .ip("10.0.0.2")
                .label("projectcalico.org/namespace", "ns"),
            network_set("n", &["192.0.2.0/24"]),
            network_set("ns/n", &["198.51.100.0/24"]).label("projectcalico.org/namespace", "ns"),
        ]
    };
    check([
        under(allow().from("!has(projectcalico.org/namespace)"))
            .and(objects())
            .gives(
                "{!has(projectcalico.org/namespace)}: 192.0.2.0/24
                 policy gnp/p: in allow from {!has(projectcalico.org/namespace)}
                 pod a | default=deny both gnp/p",
            ),
        under(allow().from("has(projectcalico.org/namespace)"))
            .and(objects())
            .gives(
                "{has(projectcalico.org/namespace)}: 10.0.0.2/32 198.51.100.0/24
                 policy gnp/p: in allow from {has(projectcalico.org/namespace)}
                 pod a | default=deny both gnp/p",
            ),
        // As a selector of labels it holds for everything.
        under(allow().from("global()")).and(objects()).gives(
            "{global()}: 10.0.0.2/32 192.0.2.0/24 198.51.100.0/24
             policy gnp/p: in allow from {global()}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn one_set_for_all_spellings_of_a_selector() {
    let web = || peer("10.0.0.2", &[("app", "web")]);
    let spelled = |first: &str, second: &str| {
        world([
            pod("a"),
            web(),
            policy("p").inbound(allow().from(first)),
            policy("q").outbound(deny().to(second)),
        ])
    };
    check([
        spelled("app == 'web'", "app=='web'").gives(
            "{app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow from {app == 'web'}
             policy gnp/q: out deny to {app == 'web'}
             pod a | default=deny both gnp/p gnp/q",
        ),
        spelled("((app == \"web\"))", "app == 'web'").gives(
            "{app == 'web'}: 10.0.0.2/32
             policy gnp/p: in allow from {app == 'web'}
             policy gnp/q: out deny to {app == 'web'}
             pod a | default=deny both gnp/p gnp/q",
        ),
        world([
            pod("a"),
            web(),
            policy("q").outbound(deny().to("(app == 'web')")),
        ])
        .gives(
            "{app == 'web'}: 10.0.0.2/32
             policy gnp/q: out deny to {app == 'web'}
             pod a | default=deny both gnp/q",
        ),
    ]);
}
