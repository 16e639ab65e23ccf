//! Packets of TCP behind an authentication header.

use tortie_api::rule::Action::{self, Allow, Deny, Pass};
use tortie_api::scalar::Protocol;
use tortie_dataplane::iptables::Variant;
use tortie_engine::message::{PortRange, Rule, RuleSide};
use tortie_rules::IpVersion;
use tortie_testkit::net::{Packet, Ports};

use crate::enforcement::bed::{Bed, Plane, policy};

const TCP: Protocol = Protocol::Number(6);
const HEADER: Protocol = Protocol::Number(51);

fn all(action: Action) -> Rule {
    Rule {
        action,
        ..Rule::default()
    }
}

fn of(protocol: Protocol, action: Action) -> Rule {
    Rule {
        protocol: Some(protocol),
        ..all(action)
    }
}

/// TCP to port 8080.
fn web(action: Action) -> Rule {
    Rule {
        dst: RuleSide {
            ports: vec![PortRange {
                first: 8080,
                last: 8080,
            }],
            ..RuleSide::default()
        },
        ..of(TCP, action)
    }
}

fn from(net: &str, rule: Rule) -> Rule {
    Rule {
        src: RuleSide {
            nets: vec![net.parse().expect("a network")],
            ..rule.src
        },
        ..rule
    }
}

#[test]
fn what_cannot_be_seen_behind_an_authentication_header_is_denied_where_it_matters() {
    let all_but_tcp = Rule {
        not_protocol: Some(TCP),
        ..all(Allow)
    };
    let cases: Vec<(&str, Vec<Rule>, bool)> = vec![
        ("all is allowed", vec![all(Allow)], true),
        ("a port is denied", vec![web(Deny), all(Allow)], false),
        (
            "a port is denied to others",
            vec![from("fd99::/64", web(Deny)), all(Allow)],
            true,
        ),
        (
            "a port is denied to the sender",
            vec![from("fd65::/64", web(Deny)), all(Allow)],
            false,
        ),
        (
            "the header is allowed before",
            vec![of(HEADER, Allow), web(Deny), all(Allow)],
            true,
        ),
        (
            "the header is denied",
            vec![of(HEADER, Deny), all(Allow)],
            false,
        ),
        ("a port is allowed", vec![web(Allow)], false),
        ("all but TCP is allowed", vec![all_but_tcp], false),
        ("a port is passed on", vec![web(Pass), all(Allow)], false),
    ];
    for plane in [Plane::Nftables, Plane::Iptables(Variant::Nft)] {
        check(plane, "rules", &cases);
        // The name of its chain fills all that iptables leaves for one.
        check(
            plane,
            "rules-with-a-name-that-is-too-long-for-iptables",
            &cases,
        );
    }
}

/// Whether such a packet to port 8080 arrives, in each of these cases.
fn check(plane: Plane, name: &str, cases: &[(&str, Vec<Rule>, bool)]) {
    let mut bed = Bed::new(plane);
    let id = policy(name);
    bed.select(std::slice::from_ref(&id));
    let packet = [Packet::Authenticated(Ports::to(8080))];
    for (what, rules, arrives) in cases {
        bed.say_policy(&id, rules.clone());
        bed.apply();
        let arrived = bed.arrived(IpVersion::V6, &packet);
        assert_eq!(arrived, [*arrives], "{plane:?}: {what}");
        assert_eq!(bed.check(), [], "{plane:?}: {what}");
    }
    // Packets without such a header are as ever.
    bed.say_policy(&id, vec![web(Deny), all(Allow)]);
    bed.apply();
    assert!(!bed.is_open(IpVersion::V6, 8080), "{plane:?}");
    assert!(bed.is_open(IpVersion::V6, 8081), "{plane:?}");
}

#[test]
fn legacy_iptables_looks_through_an_authentication_header() {
    let mut bed = Bed::new(Plane::Iptables(Variant::Legacy));
    let id = policy("rules");
    bed.select(std::slice::from_ref(&id));
    bed.say_policy(&id, vec![web(Deny), all(Allow)]);
    bed.apply();
    let packets = [8080, 8081].map(|port| Packet::Authenticated(Ports::to(port)));
    assert_eq!(bed.arrived(IpVersion::V6, &packets), [false, true]);
}
