//! Objects that the kernel or a tool refuses.

use std::sync::Arc;
use std::time::Duration;

use tortie_api::rule::Action;
use tortie_dataplane::iptables::{Backend, IptablesDriver, Options, Variant};
use tortie_dataplane::{Batch, ChainKey, Driver as _, Object, Refused};
use tortie_engine::message::{Member, QosControls, Rule, RuleSide, SetId, SetType};
use tortie_rules::rule::Action::Jump;
use tortie_rules::{Chain, Hook, IpVersion, Table};

use crate::enforcement::bed::{Bed, Plane, SERVER, endpoint, policy};

const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// So many members fit into a set of iptables.
const SIZE: u32 = 8;

/// A set that the kernel does not take: ranges that overlap in nftables, more members than fit in iptables.
fn poison(plane: Plane) -> Vec<Member> {
    let nets: Vec<String> = match plane {
        Plane::Nftables => vec!["10.0.0.0/8".to_owned(), "10.65.0.0/16".to_owned()],
        Plane::Iptables(_) => (0..=SIZE).map(|n| format!("10.65.{n}.0/24")).collect(),
    };
    nets.iter().map(|net| member(net)).collect()
}

fn member(net: &str) -> Member {
    Member::Net(net.parse().expect("a network"))
}

fn rule(action: Action, set: Option<&str>) -> Rule {
    Rule {
        action,
        src: RuleSide {
            sets: set
                .map(|id| SetId::from(id.to_owned()))
                .into_iter()
                .collect(),
            ..RuleSide::default()
        },
        ..Rule::default()
    }
}

#[track_caller]
fn assert_one(refused: &[Refused], object: &str) {
    let [one] = refused else {
        panic!("one object is refused: {refused:?}");
    };
    assert!(one.owner.to_string().starts_with(object), "{one:?}");
    assert!(!one.reason.is_empty());
}

/// How a set comes to be refused.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    AtTheStart,
    Later,
}

fn set_that_is_refused(plane: Plane, when: When) {
    let mut bed = Bed::with_max_ipset_size(plane, SIZE);
    let (uses, other) = (policy("uses"), policy("other"));
    let good = vec![member("10.65.0.0/24"), member("fd65::/64")];
    let bad = poison(plane);
    if when == When::Later {
        bed.say_set("s:poison", SetType::Net, good.clone());
        bed.say_policy(&uses, vec![rule(Action::Allow, Some("s:poison"))]);
        bed.select(std::slice::from_ref(&uses));
        bed.apply();
        assert!(BOTH.iter().all(|version| bed.is_open(*version, 80)));
        assert_eq!(bed.dataplane().refused(), []);
    }
    bed.say_set("s:poison", SetType::Net, bad);
    bed.say_policy(&uses, vec![rule(Action::Allow, Some("s:poison"))]);
    bed.select(std::slice::from_ref(&uses));
    bed.apply();
    // What uses it denies, whatever its rule would do.
    assert!(!bed.is_open(IpVersion::V4, 80));
    assert_one(
        &bed.dataplane().refused(),
        "IP set s:poison of NetworkPolicy default/uses",
    );

    // All else goes on: what follows is enforced, and may be lifted again.
    bed.say_policy(&other, vec![rule(Action::Allow, None)]);
    bed.select(std::slice::from_ref(&other));
    bed.apply();
    assert!(BOTH.iter().all(|version| bed.is_open(*version, 80)));
    bed.say_policy(&other, vec![rule(Action::Deny, None)]);
    bed.apply();
    assert!(BOTH.iter().all(|version| !bed.is_open(*version, 80)));

    // Once it is repaired it does what it says.
    bed.say_set("s:poison", SetType::Net, good);
    bed.select(std::slice::from_ref(&uses));
    bed.apply();
    assert!(BOTH.iter().all(|version| bed.is_open(*version, 80)));
    assert_eq!(bed.dataplane().refused(), []);
    assert_eq!(bed.check(), []);
}

#[test]
fn a_set_that_nftables_refuses_freezes_nothing() {
    set_that_is_refused(Plane::Nftables, When::AtTheStart);
    set_that_is_refused(Plane::Nftables, When::Later);
}

#[test]
fn a_set_that_ipset_refuses_freezes_nothing_of_legacy_iptables() {
    let plane = Plane::Iptables(Variant::Legacy);
    set_that_is_refused(plane, When::AtTheStart);
    set_that_is_refused(plane, When::Later);
}

#[test]
fn a_set_that_ipset_refuses_freezes_nothing_of_the_other_iptables() {
    let plane = Plane::Iptables(Variant::Nft);
    set_that_is_refused(plane, When::AtTheStart);
    set_that_is_refused(plane, When::Later);
}

/// A chain that is refused: one that refers to a set that nobody made.
fn policy_that_is_refused(plane: Plane) {
    let mut bed = Bed::new(plane);
    let (bad, good) = (policy("bad"), policy("good"));
    bed.say_policy(&bad, vec![rule(Action::Allow, Some("s:absent"))]);
    bed.say_policy(&good, vec![rule(Action::Allow, None)]);
    bed.select(&[Arc::clone(&bad), Arc::clone(&good)]);
    bed.apply();
    assert!(!bed.is_open(IpVersion::V4, 80), "{plane:?}");
    let refused = bed.dataplane().refused();
    let mut objects: Vec<String> = refused.iter().map(|r| r.owner.to_string()).collect();
    objects.dedup();
    assert_eq!(objects, ["NetworkPolicy default/bad"], "{plane:?}");

    bed.select(std::slice::from_ref(&good));
    bed.apply();
    assert!(bed.is_open(IpVersion::V4, 80), "{plane:?}");
    bed.say_policy(&bad, vec![rule(Action::Pass, None)]);
    bed.select(&[bad, good]);
    bed.apply();
    assert_eq!(bed.dataplane().refused(), [], "{plane:?}");
    assert!(bed.is_open(IpVersion::V4, 80), "{plane:?}");
}

#[test]
fn a_policy_that_is_refused_freezes_nothing() {
    for plane in Plane::ALL {
        policy_that_is_refused(plane);
    }
}

#[test]
fn what_was_refused_is_tried_again() {
    let plane = Plane::Iptables(Variant::Nft);
    let mut bed = Bed::new(plane);
    bed.set_first_retry(Duration::ZERO);
    // Somebody else has a set of our name and of another type, and uses it.
    bed.output_of("ipset create cali40s:taken bitmap:port range 0-9");
    let foreign = "-p tcp -m set --match-set cali40s:taken dst -j ACCEPT";
    bed.output_of(&format!("iptables-nft -A OUTPUT {foreign}"));
    let id = policy("uses");
    bed.say_set("s:taken", SetType::Net, vec![member("10.65.0.0/24")]);
    bed.say_policy(&id, vec![rule(Action::Allow, Some("s:taken"))]);
    bed.select(&[id]);
    bed.apply();
    assert!(!bed.is_open(IpVersion::V4, 80));
    assert_one(&bed.dataplane().refused(), "IP set s:taken");
    bed.output_of(&format!("iptables-nft -D OUTPUT {foreign}"));
    assert!(bed.dataplane().is_retry_due());
    bed.apply();
    assert!(bed.is_open(IpVersion::V4, 80));
    assert_eq!(bed.dataplane().refused(), []);
}

#[test]
fn limits_beyond_what_tools_take_are_the_largest_that_they_take() {
    for plane in Plane::ALL {
        let mut bed = Bed::new(plane);
        let qos = QosControls {
            ingress_packet_rate: 1_000_000,
            ingress_packet_burst: 1_000_000,
            egress_packet_rate: i64::MAX,
            egress_packet_burst: i64::MAX,
            ..QosControls::default()
        };
        bed.say(endpoint(SERVER, &[], Some(qos)));
        bed.apply();
        assert_eq!(bed.dataplane().refused(), [], "{plane:?}");
        assert!(bed.is_open(IpVersion::V4, 80), "{plane:?}");
    }
}

/// The kernel takes no chains that lead to each other, and legacy iptables does not say which they are.
#[test]
fn a_chain_that_nobody_names_is_found() {
    let driver = |variant| {
        let options = Options {
            backend: Backend::Only(variant),
            ..Options::new(IpVersion::V4)
        };
        IptablesDriver::new(&options).expect("the programs of iptables")
    };
    let chain = |name: &str, targets: &[&str]| {
        let jumps = targets.iter();
        let jumps = jumps.map(|to| tortie_rules::Rule::always(Jump((*to).into())));
        Chain::new(Table::Filter, name, jumps.collect())
    };
    let batch = |loops: bool| Batch {
        is_full: true,
        hooks: vec![Hook {
            table: Table::Filter,
            chain: "FORWARD",
            first: vec![tortie_rules::Rule::always(Jump("cali-a".into()))],
            last: Vec::new(),
        }],
        chains: vec![
            chain("cali-a", &["cali-b", "cali-c", "cali-d"]),
            chain("cali-b", &[]),
            chain("cali-c", if loops { &["cali-c"] } else { &[] }),
            chain("cali-d", &[]),
        ],
        ..Batch::default()
    };
    for variant in [Variant::Legacy, Variant::Nft] {
        let test = || {
            for has_chains in [true, false] {
                let mut driver = driver(variant);
                if has_chains {
                    driver.apply(&batch(false)).expect("these are right");
                }
                let error = driver.apply(&batch(true)).expect_err("a circle");
                let key = ChainKey::of(&chain("cali-c", &[]));
                assert_eq!(
                    error.object(),
                    Some(&Object::Chain(key)),
                    "{variant:?}: {error}"
                );
            }
        };
        tortie_kernel::namespace::run_in_new(test).expect("a network namespace");
    }
}

/// The kernel keeps a chain that a rule of somebody else jumps to, and so refuses to remove it.
#[test]
fn one_ip_version_does_not_hold_up_the_other() {
    for (family, stuck, other) in [
        ("ip", IpVersion::V4, IpVersion::V6),
        ("ip6", IpVersion::V6, IpVersion::V4),
    ] {
        let mut bed = Bed::new(Plane::Nftables);
        let (first, second) = (policy("first"), policy("second"));
        bed.say_policy(&first, vec![rule(Action::Allow, None)]);
        bed.say_policy(&second, vec![rule(Action::Deny, None)]);
        bed.select(std::slice::from_ref(&first));
        bed.apply();
        assert!(BOTH.iter().all(|version| bed.is_open(*version, 80)));
        let listing = bed.output_of(&format!("nft list table {family} calico"));
        let mut words = listing.split_whitespace();
        let chain = words.find(|word| word.starts_with("filter-cali-pi-"));
        let chain = chain.expect("the chain of the policy").to_owned();
        bed.output_of(&format!("nft add chain {family} calico foreign"));
        bed.output_of(&format!(
            "nft add rule {family} calico foreign jump {chain}"
        ));
        bed.select(std::slice::from_ref(&second));
        bed.try_apply().expect_err("the chain is in use");
        assert!(!bed.is_open(other, 80), "{other:?} is in force");
        assert!(bed.is_open(stuck, 80), "{stuck:?} could not be changed");
        bed.output_of(&format!("nft delete chain {family} calico foreign"));
        bed.apply();
        assert!(BOTH.iter().all(|version| !bed.is_open(*version, 80)));
    }
}

/// With the layer in front, Calico's names for the chains of some policies are too long for the kernel.
#[test]
fn policies_with_names_of_any_length_are_enforced() {
    let mut bed = Bed::new(Plane::Nftables);
    for length in 225..=253 {
        let (long, other) = (policy(&"p".repeat(length)), policy(&"q".repeat(length)));
        bed.say_policy(&long, vec![rule(Action::Allow, None)]);
        bed.say_policy(&other, vec![rule(Action::Pass, None)]);
        bed.select(&[other, long]);
        bed.apply();
        assert_eq!(bed.dataplane().refused(), [], "{length}");
        assert!(bed.is_open(IpVersion::V4, 80), "{length}");
    }
}
