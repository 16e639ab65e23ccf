//! Rules with several lists of alternatives.

use tortie_api::rule::Action;
use tortie_api::scalar::Protocol;
use tortie_engine::message::{Member, PortProtocol, PortRange, Rule, RuleSide, SetId, SetType};
use tortie_rules::{IpVersion, MAX_POLICY_RULES};
use tortie_testkit::Random;
use tortie_testkit::net::{Packet, Ports};

use crate::enforcement::bed::{Bed, Plane, policy};

const SOURCES: u16 = 1000;
const DESTINATIONS: u16 = 2000;

/// Ports that packets have, at either end.
const RANGE: u16 = 12;

const ADDRESSES: [[&str; 2]; 2] = [["10.65.0.1", "10.65.0.2"], ["fd65::1", "fd65::2"]];

fn set(name: &str) -> SetId {
    SetId::from(name.to_owned())
}

/// A named port: which port it is for TCP, at the client or at the server, in both IP versions.
fn say_named_port(bed: &mut Bed, name: &str, end: usize, ports: &[u16]) {
    let addresses = ADDRESSES.map(|ends| ends[end].parse().expect("an address"));
    let members = addresses.into_iter().flat_map(|address| {
        let ports = ports.iter();
        ports.map(move |port| Member::Port(address, PortProtocol::Tcp, *port))
    });
    bed.say_set(name, SetType::IpAndPort, members.collect());
}

/// Names of sets, one for each port: every other port has one.
fn say_named_ports(bed: &mut Bed, prefix: &str, end: usize, first: u16) -> Vec<SetId> {
    let ports = (first..first + RANGE).step_by(2);
    let names = ports.map(|port| {
        let name = format!("{prefix}{port}");
        say_named_port(bed, &name, end, &[port]);
        set(&name)
    });
    names.collect()
}

#[test]
fn lists_of_named_ports_at_both_ends_match_what_they_say() {
    for version in [IpVersion::V4, IpVersion::V6] {
        let mut bed = Bed::new(Plane::Nftables);
        let nets = ["10.65.0.0/24", "10.99.0.1/32", "fd65::/64", "fd99::1/128"];
        let nets = nets.map(|net| Member::Net(net.parse().expect("a network")));
        bed.say_set("clients", SetType::Net, nets.into());
        say_named_port(&mut bed, "n:source", 0, &[SOURCES + 4]);
        say_named_port(&mut bed, "n:destination", 1, &[DESTINATIONS + 6]);
        let rule = Rule {
            action: Action::Allow,
            protocol: Some(Protocol::Number(6)),
            src: RuleSide {
                sets: vec![set("clients")],
                named_port_sets: say_named_ports(&mut bed, "s", 0, SOURCES),
                not_named_port_sets: vec![set("n:source")],
                ..RuleSide::default()
            },
            dst: RuleSide {
                named_port_sets: say_named_ports(&mut bed, "d", 1, DESTINATIONS),
                ports: vec![PortRange {
                    first: DESTINATIONS + 1,
                    last: DESTINATIONS + 1,
                }],
                not_named_port_sets: vec![set("n:destination")],
                not_ports: vec![PortRange {
                    first: DESTINATIONS + 8,
                    last: DESTINATIONS + 8,
                }],
                ..RuleSide::default()
            },
            ..Rule::default()
        };
        let id = policy("lists");
        bed.say_policy(&id, vec![rule]);
        bed.select(&[id]);
        bed.apply();

        let is_allowed = |source: u16, destination: u16| {
            let (source, destination) = (source - SOURCES, destination - DESTINATIONS);
            source.is_multiple_of(2)
                && source != 4
                && (destination.is_multiple_of(2) || destination == 1)
                && destination != 6
                && destination != 8
        };
        let mut random = Random::new(7);
        let mut pairs: Vec<(u16, u16)> = (SOURCES..SOURCES + RANGE)
            .flat_map(|source| {
                let destinations = DESTINATIONS..DESTINATIONS + RANGE;
                destinations.map(move |destination| (source, destination))
            })
            .collect();
        for index in (1..pairs.len()).rev() {
            let other = random.below(index as u64 + 1);
            pairs.swap(index, usize::try_from(other).expect("an index"));
        }
        let ports = |(source, destination): &(u16, u16)| Ports {
            source: Some(*source),
            destination: *destination,
        };
        let expected: Vec<bool> = pairs.iter().map(|(s, d)| is_allowed(*s, *d)).collect();
        let tcp: Vec<Packet> = pairs.iter().map(|pair| Packet::Tcp(ports(pair))).collect();
        assert_eq!(
            bed.arrived(version, &tcp),
            expected,
            "{version:?} {pairs:?}"
        );
        let udp: Vec<Packet> = pairs.iter().map(|pair| Packet::Udp(ports(pair))).collect();
        let none = vec![false; pairs.len()];
        assert_eq!(bed.arrived(version, &udp), none, "{version:?}");
    }
}

/// Rules that ask for so many named ports at either end.
fn rules_with_named_ports(bed: &mut Bed, rules: usize, ports: u16) -> Vec<Rule> {
    let names = |bed: &mut Bed, prefix: &str, end: usize| -> Vec<SetId> {
        let ports = (0..ports).map(|port| {
            let name = format!("{prefix}{port}");
            say_named_port(bed, &name, end, &[port + 1]);
            set(&name)
        });
        ports.collect()
    };
    let (sources, destinations) = (names(bed, "s", 0), names(bed, "d", 1));
    let rule = Rule {
        action: Action::Allow,
        protocol: Some(Protocol::Number(6)),
        src: RuleSide {
            named_port_sets: sources,
            ..RuleSide::default()
        },
        dst: RuleSide {
            named_port_sets: destinations,
            ..RuleSide::default()
        },
        ..Rule::default()
    };
    vec![rule; rules]
}

#[test]
fn rules_grow_with_the_sum_of_their_alternatives() {
    let mut bed = Bed::new(Plane::Nftables);
    let id = policy("many");
    let rules = rules_with_named_ports(&mut bed, 100, 50);
    bed.say_policy(&id, rules);
    bed.select(std::slice::from_ref(&id));
    bed.apply();
    let costs = bed.dataplane().desired().policy_costs();
    let [cost] = costs.as_slice() else {
        panic!("one policy: {costs:?}");
    };
    // For each IP version those of one direction, and the empty one of the other.
    assert_eq!(cost.rules, 2 * (100 * (50 + 50 + 1) + 1));
    assert_eq!((cost.sets, cost.members), (100, 200));
    assert!(!cost.is_too_large);
    let listing = bed.output_of("nft list table ip calico");
    let rules = listing
        .lines()
        .filter(|line| line.contains("meta mark set"));
    let rules = rules.count();
    assert!(rules > 10_000 && rules < 12_000, "{rules} rules");
    assert!(!bed.is_open(IpVersion::V4, 5000));
}

#[test]
fn a_policy_with_too_many_rules_denies_and_holds_up_nothing() {
    for plane in Plane::ALL {
        let mut bed = Bed::new(plane);
        let (large, closed) = (policy("large"), policy("closed"));
        // Without conditions on the other version's packets, that version denies as well.
        let net = |index: usize| {
            let (high, low) = (index / 256, index % 256);
            format!("10.{high}.{low}.0/24").parse().expect("a network")
        };
        let rules = (0..=MAX_POLICY_RULES).map(|index| Rule {
            action: Action::Allow,
            src: RuleSide {
                nets: vec![net(index)],
                ..RuleSide::default()
            },
            ..Rule::default()
        });
        bed.say_policy(&large, rules.collect());
        bed.select(std::slice::from_ref(&large));
        bed.apply();
        assert!(!bed.is_open(IpVersion::V4, 80), "{plane:?}");
        let refused = bed.dataplane().desired().too_large();
        let [refused] = refused.as_slice() else {
            panic!("{plane:?}: one policy is too large: {refused:?}");
        };
        assert_eq!(refused.owner.to_string(), "NetworkPolicy default/large");
        let rules_of = |plane| match plane {
            Plane::Nftables => 1,
            Plane::Iptables(_) => 2,
        };
        // iptables marks what an allowing rule matches, and returns in a second one.
        let needed = rules_of(plane) * (MAX_POLICY_RULES + 1) - (rules_of(plane) - 1);
        let reason = format!("needs {needed} rules");
        assert!(refused.reason.starts_with(&reason), "{}", refused.reason);

        // Others are enforced, and so is that one when it is smaller.
        bed.say_policy(
            &closed,
            vec![Rule {
                action: Action::Deny,
                ..Rule::default()
            }],
        );
        bed.say_policy(
            &large,
            vec![Rule {
                action: Action::Allow,
                ..Rule::default()
            }],
        );
        bed.apply();
        assert!(bed.is_open(IpVersion::V4, 80), "{plane:?}");
        assert_eq!(bed.dataplane().desired().too_large(), []);
        bed.select(std::slice::from_ref(&closed));
        bed.apply();
        assert!(!bed.is_open(IpVersion::V4, 80), "{plane:?}");
    }
}
