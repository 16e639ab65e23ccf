use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::error::Mismatch;
use crate::request::ReleaseIp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn block(net: &str) -> Block {
    Block::new(net.parse().unwrap(), &Owner::host("n"), at(0), None)
}

fn holder(handle: &str) -> Holder {
    Holder {
        handle: Some(handle.to_owned()),
        attributes: BTreeMap::from([("pod".to_owned(), handle.to_owned())]),
        ..Holder::default()
    }
}

fn reserving(nets: &[&str]) -> Reservations {
    let spec = tortie_api::ip_reservation::IpReservationSpec {
        reserved_cidrs: nets.iter().map(|net| (*net).to_owned()).collect(),
    };
    Reservations::new([&tortie_api::IpReservation::new("", "r", spec)])
}

fn assign(block: &mut Block, count: u32, handle: &str) -> Vec<String> {
    let addresses = block.assign_next(count, &holder(handle), &Reservations::default());
    block.bump();
    addresses.iter().map(ToString::to_string).collect()
}

fn request(address: &str) -> ReleaseIp {
    ReleaseIp::from(address.parse::<IpAddr>().unwrap())
}

#[test]
fn addresses_are_given_out_in_the_order_in_which_they_became_free() {
    let mut block = block("10.0.0.0/30");
    assert_eq!(assign(&mut block, 2, "a"), ["10.0.0.0/30", "10.0.0.1/30"]);
    assert_eq!(assign(&mut block, 1, "b"), ["10.0.0.2/30"]);
    let requests = ["10.0.0.1", "10.0.0.0"].map(request);
    block.release(&requests, 0, at(1)).unwrap();
    assert_eq!(block.spec().unallocated, [3, 0, 1]);
    assert_eq!(
        assign(&mut block, 9, "c"),
        ["10.0.0.3/30", "10.0.0.0/30", "10.0.0.1/30"]
    );
    assert!(assign(&mut block, 1, "d").is_empty());
    assert_eq!(block.spec().attributes.len(), 2);
}

#[test]
fn reserved_addresses_are_skipped_but_can_be_asked_for() {
    let mut block = block("10.0.0.0/29");
    let reservations = reserving(&["10.0.0.0/30", "10.0.0.5"]);
    assert_eq!(block.free(&reservations), 3);
    let found = block.assign_next(2, &holder("a"), &reservations);
    assert_eq!(
        found
            .iter()
            .map(|net| net.addr().to_string())
            .collect::<Vec<_>>(),
        ["10.0.0.4", "10.0.0.6"]
    );
    assert_eq!(block.spec().unallocated, [0, 1, 2, 3, 5, 7]);
    block
        .assign("10.0.0.1".parse().unwrap(), &holder("b"))
        .unwrap();
    let again = block.assign("10.0.0.1".parse().unwrap(), &holder("b"));
    assert!(matches!(again, Err(Error::AlreadyAssigned(_))));
    assert!(
        block
            .assign("10.0.1.1".parse().unwrap(), &holder("b"))
            .is_err()
    );
    assert_eq!(block.free(&reserving(&["10.0.0.0/24"])), 0);
}

#[test]
fn a_release_on_outdated_grounds_changes_nothing() {
    let mut block = block("10.0.0.0/30");
    assign(&mut block, 1, "a");
    let before = block.clone();
    let number = block.sequence_of("10.0.0.0".parse().unwrap());
    let mut stale = request("10.0.0.0");
    stale.sequence_number = Some(number + 1);
    let error = block
        .release(&[request("10.0.0.1"), stale], 0, at(1))
        .unwrap_err();
    assert!(matches!(
        error,
        Error::Outdated {
            reason: Mismatch::Sequence { .. },
            ..
        }
    ));
    let other = ReleaseIp {
        handle: Some("b".to_owned()),
        ..request("10.0.0.0")
    };
    let error = block.release(&[other], 0, at(1)).unwrap_err();
    assert!(matches!(
        error,
        Error::Outdated {
            reason: Mismatch::Handle { .. },
            ..
        }
    ));
    assert_eq!(block, before);
    let right = ReleaseIp {
        handle: Some("a\rrest".to_owned()),
        sequence_number: Some(number),
        ..request("10.0.0.0")
    };
    let done = block
        .release(&[right.clone(), right, request("10.0.0.1")], 0, at(1))
        .unwrap();
    assert_eq!((done.released.len(), done.unallocated.len()), (1, 1));
    assert_eq!(done.by_handle["a"], 1);
    assert!(block.is_empty());
}

#[test]
fn a_released_address_rests_for_the_cooldown() {
    let mut block = block("10.0.0.0/31");
    assign(&mut block, 2, "a");
    let address = "10.0.0.0".parse().unwrap();
    block.release(&[request("10.0.0.0")], 60, at(0)).unwrap();
    assert!(matches!(block.holder(address), Err(Error::CoolingDown(_))));
    assert_eq!(
        (block.free(&Reservations::default()), block.in_use()),
        (0, 2)
    );
    assert!(!block.collect(60, at(59)));
    assert!(!block.has_free(60, at(59), &Reservations::default()));
    assert!(block.has_free(60, at(60), &Reservations::default()));
    assert!(!block.has_free(60, at(60), &reserving(&["10.0.0.0"])));
    let again = block.release(&[request("10.0.0.0")], 60, at(59)).unwrap();
    assert_eq!(again.unallocated, [address]);
    assert!(block.collect(60, at(60)));
    assert!(matches!(block.holder(address), Err(Error::Unassigned(_))));
    assert_eq!(block.spec().attributes.len(), 1);
    block.release_handle("a", 60, at(61));
    assert!(block.collect(-1, at(61)) && block.is_empty());
}

#[test]
fn a_handle_is_released_as_a_whole() {
    let mut block = block("10.0.0.0/29");
    assign(&mut block, 2, "a");
    assign(&mut block, 1, "b");
    assign(&mut block, 1, "a");
    assert_eq!(block.addresses_of("a").len(), 3);
    let released = block.release_handle("a", 0, at(1));
    assert_eq!(released.len(), 3);
    assert_eq!(block.spec().allocations[2], Some(0));
    assert!(block.release_handle("a", 0, at(1)).is_empty());
}

#[test]
fn only_the_owner_takes_from_its_block() {
    let mut block = block("10.0.0.0/30");
    assert!(block.require_owner(&Owner::host("n")).is_ok());
    assert!(matches!(
        block.require_owner(&Owner::host("m")),
        Err(Error::NotOurs)
    ));
    block.disown();
    assert!(matches!(
        block.require_owner(&Owner::host("n")),
        Err(Error::NoAffinity(_))
    ));
    assert_eq!(block.spec().affinity_claim_time, None);
}

#[test]
fn what_a_host_keeps_for_itself_does_not_count_as_used() {
    let reserved = HostReserved {
        start: 3,
        end: 1,
        handle: "Windows-Reserved-IPAM-Handle".to_owned(),
        note: "windows host rsvd".to_owned(),
    };
    let net = "10.0.0.0/29".parse().unwrap();
    let mut block = Block::new(net, &Owner::host("n"), at(0), Some(&reserved));
    assert_eq!(block.spec().unallocated, [3, 4, 5, 6]);
    assert!(block.is_empty());
    assign(&mut block, 1, "a");
    assert!(!block.is_empty());
    Block::load(block.into_spec()).unwrap();
}

#[test]
fn damaged_blocks_are_refused() {
    let good = block("10.0.0.0/30").into_spec();
    let check = |change: fn(&mut IpamBlockSpec)| {
        let mut spec = good.clone();
        change(&mut spec);
        assert!(
            matches!(Block::load(spec.clone()), Err(Error::Damaged { .. })),
            "{spec:?}"
        );
    };
    assert!(Block::load(good.clone()).is_ok());
    check(|spec| spec.cidr = "x".to_owned());
    check(|spec| spec.cidr = "10.0.0.1/30".to_owned());
    check(|spec| spec.cidr = "::/0".to_owned());
    check(|spec| spec.allocations.truncate(3));
    check(|spec| spec.allocations[0] = Some(0));
    check(|spec| spec.allocations[0] = Some(-1));
    check(|spec| spec.unallocated.push(0));
    check(|spec| spec.unallocated.push(4));
    check(|spec| spec.unallocated.push(-1));
}

#[derive(Debug, Clone)]
enum Act {
    Assign(u32, u8),
    AssignOne(u8, u8),
    Release(Vec<u8>),
    ReleaseHandle(u8),
    Collect,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0_u32..4, 0_u8..4).prop_map(|(count, handle)| Act::Assign(count, handle)),
        (0_u8..16, 0_u8..4).prop_map(|(address, handle)| Act::AssignOne(address, handle)),
        proptest::collection::vec(0_u8..16, 0..4).prop_map(Act::Release),
        (0_u8..4).prop_map(Act::ReleaseHandle),
        Just(Act::Collect),
    ]
}

proptest! {
    #[test]
    fn any_sequence_leaves_a_whole_block(acts in proptest::collection::vec(act(), 0..60), cooldown in 0_i32..5) {
        let mut block = block("10.0.0.0/28");
        let reservations = reserving(&["10.0.0.3"]);
        let address = |ordinal: u8| format!("10.0.0.{ordinal}").parse::<IpAddr>().unwrap();
        let mut model: BTreeMap<IpAddr, String> = BTreeMap::new();
        for (second, act) in (0..).zip(acts) {
            match act {
                Act::Assign(count, handle) => {
                    let handle = format!("h{handle}");
                    for net in block.assign_next(count, &holder(&handle), &reservations) {
                        prop_assert!(net.addr() != address(3));
                        prop_assert_eq!(model.insert(net.addr(), handle.clone()), None);
                    }
                }
                Act::AssignOne(ordinal, handle) => {
                    let handle = format!("h{handle}");
                    if block.assign(address(ordinal), &holder(&handle)).is_ok() {
                        prop_assert_eq!(model.insert(address(ordinal), handle), None);
                    }
                }
                Act::Release(ordinals) => {
                    let requests: Vec<ReleaseIp> = ordinals.iter().map(|ordinal| address(*ordinal).into()).collect();
                    for released in block.release(&requests, cooldown, at(second)).unwrap().released {
                        prop_assert!(model.remove(&released).is_some());
                    }
                }
                Act::ReleaseHandle(handle) => {
                    let handle = format!("h{handle}");
                    let mut released = block.release_handle(&handle, cooldown, at(second));
                    released.sort_unstable();
                    let expected: Vec<IpAddr> =
                        model.iter().filter(|(_, holder)| **holder == handle).map(|(address, _)| *address).collect();
                    prop_assert_eq!(released, expected);
                    model.retain(|_, holder| *holder != handle);
                }
                Act::Collect => {
                    block.collect(cooldown, at(second));
                }
            }
            block.bump();
            block = Block::load(block.into_spec()).unwrap();
            let held: BTreeMap<IpAddr, String> = block
                .allocations()
                .filter(|(_, held)| held.released_at.is_none())
                .map(|(address, held)| (address, held.handle_id.clone().unwrap()))
                .collect();
            prop_assert_eq!(&held, &model);
            prop_assert_eq!(block.in_use() + block.spec().unallocated.len(), block.size());
        }
    }
}
