//! Members against a plain model: counts in a map, and what is visible computed anew each time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Few addresses and many prefix lengths, so that networks nest.
fn any_member() -> impl Strategy<Value = Member> {
    prop_oneof![
        (0_u32..16, 24_u8..=32).prop_map(|(bits, length)| {
            let net = Ipv4Net::new_assert(Ipv4Addr::from_bits(0x0a00_0000 | bits << 4), length);
            Member::Net(net.trunc().into())
        }),
        (0_u128..8, 124_u8..=128).prop_map(|(bits, length)| {
            let net = Ipv6Net::new_assert(Ipv6Addr::from_bits(0xfd00 << 112 | bits), length);
            Member::Net(net.trunc().into())
        }),
        (0_u8..4, 80_u16..83).prop_map(|(last, port)| {
            Member::Port(
                Ipv4Addr::new(10, 0, 0, last).into(),
                PortProtocol::Tcp,
                port,
            )
        }),
    ]
}

fn any_overlaps() -> impl Strategy<Value = Overlaps> {
    prop_oneof![
        Just(Overlaps::Sent),
        Just(Overlaps::LeftOut),
        Just(Overlaps::AddressesSent)
    ]
}

fn visible(counts: &BTreeMap<Member, u32>, overlaps: Overlaps) -> BTreeSet<Member> {
    let is_covered = |member: &Member| {
        let Member::Net(inner) = member else {
            return false;
        };
        counts.keys().any(|other| match other {
            Member::Net(outer) => outer != inner && outer.contains(inner),
            Member::Port(..) => false,
        })
    };
    let members = counts.keys().copied();
    members
        .filter(|member| {
            let is_single =
                matches!(member, Member::Net(net) if net.prefix_len() == net.max_prefix_len());
            !(overlaps.leaves_out(is_single) && is_covered(member))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_is_what_is_visible(
        steps in prop::collection::vec((any_member(), any::<bool>(), 0..4), 1..60),
        overlaps in any_overlaps(),
    ) {
        let mut members = Members::default();
        let mut counts: BTreeMap<Member, u32> = BTreeMap::new();
        let mut sent = BTreeSet::new();
        let mut delta = Delta::default();
        for (member, comes, flush) in steps {
            if comes {
                *counts.entry(member).or_default() += 1;
                members.add(member, overlaps, Some(&mut delta));
            } else if let Some(count) = counts.get_mut(&member) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&member);
                }
                members.remove(member, overlaps, Some(&mut delta));
            }
            let expected = visible(&counts, overlaps);
            prop_assert_eq!(members.visible(overlaps).into_iter().collect::<BTreeSet<_>>(), expected.clone());
            if flush == 0 {
                let (added, removed) = std::mem::take(&mut delta).split();
                for member in removed {
                    prop_assert!(sent.remove(&member), "{} was not sent", member);
                }
                for member in added {
                    prop_assert!(sent.insert(member), "{} was sent before", member);
                }
                prop_assert_eq!(&sent, &expected);
            }
        }
    }

    #[test]
    fn filling_at_once_is_adding_one_by_one(
        all in prop::collection::vec(any_member(), 0..40),
        address in 0_u32..256,
    ) {
        let (mut at_once, mut one_by_one) = (Members::default(), Members::default());
        at_once.fill(all.clone());
        for member in &all {
            one_by_one.add(*member, Overlaps::LeftOut, None);
        }
        prop_assert_eq!(at_once.visible(Overlaps::LeftOut), one_by_one.visible(Overlaps::LeftOut));
        let address = IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 | address));
        let is_in = all.iter().any(|member| matches!(member, Member::Net(net) if net.contains(&address)));
        prop_assert_eq!(at_once.contains(address), is_in);
        for member in all {
            one_by_one.remove(member, Overlaps::LeftOut, None);
        }
        prop_assert!(one_by_one.visible(Overlaps::Sent).is_empty());
    }
}
