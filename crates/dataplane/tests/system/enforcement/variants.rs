//! From one part of the kernel to another and back.

use tortie_api::rule::Action;
use tortie_dataplane::iptables::Variant;
use tortie_engine::message::{Member, Rule, RuleSide, SetId, SetType};
use tortie_rules::IpVersion;

use crate::enforcement::bed::{Bed, Plane, policy};

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// Whether a part of the kernel has something of ours.
fn has_ours(bed: &Bed, plane: Plane) -> bool {
    let programs: &[&str] = match plane {
        Plane::Nftables => return bed.output_of("nft list tables").contains("calico"),
        Plane::Iptables(Variant::Legacy) => &["iptables-legacy-save", "ip6tables-legacy-save"],
        Plane::Iptables(Variant::Nft) => &["iptables-nft-save", "ip6tables-nft-save"],
    };
    let mut listings = programs.iter().map(|program| bed.output_of(program));
    listings.any(|listing| listing.contains("cali"))
}

#[test]
fn a_switch_leaves_nothing_behind_that_decides() {
    let (legacy, nft) = (
        Plane::Iptables(Variant::Legacy),
        Plane::Iptables(Variant::Nft),
    );
    let mut bed = Bed::new(legacy);
    let id = policy("closed");
    let members = ["10.65.0.0/24", "fd65::/64"];
    let members = members.map(|net| Member::Net(net.parse().expect("a network")));
    bed.say_set("s:clients", SetType::Net, members.into());
    let from_clients = |action| Rule {
        action,
        src: RuleSide {
            sets: vec![SetId::from("s:clients".to_owned())],
            ..RuleSide::default()
        },
        ..Rule::default()
    };
    bed.say_policy(&id, vec![from_clients(Action::Deny)]);
    bed.select(std::slice::from_ref(&id));
    bed.apply();
    for plane in [nft, legacy, Plane::Nftables, nft, Plane::Nftables, legacy] {
        bed.restart(plane);
        for other in Plane::ALL {
            assert_eq!(
                has_ours(&bed, other),
                other == plane,
                "{plane:?}: {other:?}"
            );
        }
        let closed = VERSIONS.map(|version| !bed.is_open(version, 80));
        assert_eq!(closed, [true, true], "{plane:?}");
        assert_eq!(bed.check(), [], "{plane:?}");
    }
    bed.say_policy(&id, vec![from_clients(Action::Allow)]);
    bed.apply();
    let open = VERSIONS.map(|version| bed.is_open(version, 80));
    assert_eq!(open, [true, true]);

    // Sets that only rules of the other kind looked into are gone too.
    bed.select(&[]);
    bed.say_policy(&id, Vec::new());
    bed.say(tortie_engine::Message::IpSetRemove(SetId::from(
        "s:clients".to_owned(),
    )));
    bed.restart(nft);
    let sets = bed.output_of("ipset list -name");
    assert!(!sets.contains("clients"), "{sets}");
}
