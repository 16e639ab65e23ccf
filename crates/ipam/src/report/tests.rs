use jiff::Timestamp;

use super::*;
use crate::handle;
use crate::request::{Holder, attribute};
use crate::reservations::Reservations;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn holder(handle: &str, attributes: &[(&str, &str)]) -> Holder {
    let attributes = attributes
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Holder {
        handle: Some(handle.to_owned()),
        attributes: attributes.collect(),
        ..Holder::default()
    }
}

/// One block with the addresses of two pods, a tunnel and a service, and all that goes with it.
fn world() -> (Loaded, InUse) {
    let owner = Owner::host("n1");
    let mut block = Block::new(net("10.0.0.0/29"), &owner, Timestamp::UNIX_EPOCH, None);
    let mut loaded = Loaded::default();
    for holder in [
        holder(
            "h1",
            &[
                (attribute::POD, "a"),
                (attribute::NAMESPACE, "ns"),
                (attribute::NODE, "n1"),
            ],
        ),
        holder(
            "h2",
            &[
                (attribute::POD, "b"),
                (attribute::NAMESPACE, "ns"),
                (attribute::NODE, "n2"),
            ],
        ),
        holder(
            "h3",
            &[
                (attribute::TYPE, attribute::VXLAN_TUNNEL),
                (attribute::NODE, "n1"),
            ],
        ),
        holder(
            "h4",
            &[(attribute::TYPE, "LoadBalancer"), (attribute::SERVICE, "s")],
        ),
    ] {
        block.assign_next(1, &holder, &Reservations::default());
        let mut handle = handle::new_handle(&holder.handle.unwrap());
        handle::count(&mut handle, block.net(), 1);
        loaded.handles.push(handle);
    }
    let mut pool = IpPool::default();
    "10.0.0.0/24".clone_into(&mut pool.spec.cidr);
    loaded.pools.push(pool);
    loaded
        .affinities
        .push((owner, block.net(), BlockAffinityState::Confirmed));
    loaded.blocks.push(block);
    let workload = |name: &str, node: &str, at: &str| Workload {
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        node: node.to_owned(),
        addresses: [address(at)].into(),
    };
    let in_use = InUse {
        workloads: Some(vec![
            workload("a", "n1", "10.0.0.0"),
            workload("b", "n2", "10.0.0.1"),
        ]),
        nodes: Some(
            [
                ("n1".to_owned(), [address("10.0.0.2")].into()),
                ("n2".to_owned(), BTreeSet::new()),
            ]
            .into(),
        ),
        services: Some([address("10.0.0.3")].into()),
        machines: Some(BTreeSet::new()),
    };
    (loaded, in_use)
}

#[track_caller]
fn check_problems(change: impl FnOnce(&mut Loaded, &mut InUse), expected: &[Problem]) -> Report {
    let (mut loaded, mut in_use) = world();
    change(&mut loaded, &mut in_use);
    let report = check(&loaded, &in_use);
    assert_eq!(report.problems, expected);
    report
}

#[test]
fn nothing_is_wrong_where_everybody_has_what_they_hold() {
    let report = check_problems(|_, _| {}, &[]);
    assert_eq!(report.allocations.len(), 4);
    let borrowed: Vec<_> = report
        .allocations
        .iter()
        .filter(|held| held.is_borrowed)
        .map(|held| held.address)
        .collect();
    assert_eq!(borrowed, [address("10.0.0.1")]);
    assert_eq!(report.allocations[0].state, State::InUse("ns/a".to_owned()));
}

#[test]
fn an_address_without_its_user_is_leaked() {
    let leaked = |at: &str| Problem::Leaked(address(at));
    check_problems(
        |_, who| {
            who.workloads
                .as_mut()
                .unwrap()
                .retain(|one| one.name != "a");
        },
        &[leaked("10.0.0.0")],
    );
    check_problems(
        |_, who| {
            who.nodes.as_mut().unwrap().get_mut("n1").unwrap().clear();
        },
        &[leaked("10.0.0.2")],
    );
    check_problems(
        |_, who| who.services.as_mut().unwrap().clear(),
        &[leaked("10.0.0.3")],
    );
    // A pod that has no address yet may be about to get it.
    check_problems(
        |_, who| who.workloads.as_mut().unwrap()[0].addresses.clear(),
        &[],
    );
    check_problems(
        |_, who| who.workloads.as_mut().unwrap()[0].addresses = [address("10.0.0.7")].into(),
        &[
            leaked("10.0.0.0"),
            Problem::Unallocated {
                address: address("10.0.0.7"),
                user: "ns/a".to_owned(),
            },
        ],
    );
    // What is not known is not leaked.
    check_problems(|_, who| *who = InUse::default(), &[]);
}

#[test]
fn users_without_an_allocation_are_found() {
    check_problems(
        |_, who| {
            who.services.as_mut().unwrap().insert(address("10.0.0.0"));
        },
        &[Problem::UsedTwice {
            address: address("10.0.0.0"),
            users: vec!["ns/a".to_owned(), "service".to_owned()],
        }],
    );
    check_problems(
        |_, who| {
            who.services.as_mut().unwrap().insert(address("192.0.2.1"));
        },
        &[Problem::OutsidePools {
            address: address("192.0.2.1"),
            user: "service".to_owned(),
        }],
    );
}

#[test]
fn handles_must_agree_with_blocks() {
    let block = net("10.0.0.0/29");
    check_problems(
        |loaded, _| {
            loaded.handles.remove(0);
        },
        &[Problem::MissingHandle {
            handle: "h1".to_owned(),
            address: address("10.0.0.0"),
        }],
    );
    check_problems(
        |loaded, _| handle::count(&mut loaded.handles[0], block, 1),
        &[Problem::HandleCount {
            handle: "h1".to_owned(),
            block,
            counted: 2,
            held: 1,
        }],
    );
    check_problems(
        |loaded, _| loaded.handles.push(handle::new_handle("x")),
        &[Problem::EmptyHandle("x".to_owned())],
    );
}

#[test]
fn blocks_and_claims_must_agree() {
    let (block, owner) = (net("10.0.0.0/29"), Owner::host("n1"));
    let users = [
        ("10.0.0.0", "ns/a"),
        ("10.0.0.1", "ns/b"),
        ("10.0.0.2", "node n1"),
        ("10.0.0.3", "service"),
    ];
    let mut expected: Vec<Problem> = users
        .map(|(at, user)| Problem::OutsidePools {
            address: address(at),
            user: user.to_owned(),
        })
        .to_vec();
    expected.push(Problem::BlockOutsidePools(block));
    check_problems(|loaded, _| loaded.pools.clear(), &expected);
    check_problems(
        |loaded, _| loaded.affinities.clear(),
        &[Problem::MissingAffinity(block, owner.clone())],
    );
    check_problems(
        |loaded, _| loaded.affinities[0].2 = BlockAffinityState::Pending,
        &[Problem::UnconfirmedAffinity(block, owner.clone())],
    );
    check_problems(
        |loaded, _| {
            loaded
                .affinities
                .push((Owner::host("n2"), block, BlockAffinityState::Confirmed));
        },
        &[Problem::StaleAffinity(block, Owner::host("n2"))],
    );
    let other = net("10.0.0.64/29");
    check_problems(
        |loaded, _| {
            loaded
                .affinities
                .push((Owner::host("n3"), other, BlockAffinityState::Confirmed));
        },
        &[
            Problem::AffinityWithoutBlock(other, Owner::host("n3")),
            Problem::OwnerGone(other, Owner::host("n3")),
        ],
    );
    let inner = net("10.0.0.4/30");
    check_problems(
        |loaded, _| {
            let mut abandoned = Block::new(inner, &owner, Timestamp::UNIX_EPOCH, None);
            abandoned.disown();
            loaded.blocks.push(abandoned);
        },
        &[
            Problem::BlocksOverlap(block, inner),
            Problem::AbandonedBlock(inner),
        ],
    );
}

/// Makes the first address that of a machine: its active and its alternate pod, if any.
fn of_machine(loaded: &mut Loaded, handle: &str, pods: [Option<&str>; 2]) {
    let mut block = loaded.blocks.remove(0).into_spec();
    let holder = &mut block.attributes[0];
    holder.handle_id = Some(handle.to_owned());
    [holder.active_owner_attrs, holder.alternate_owner_attrs] = pods.map(|pod| {
        let facts = pod.map(|pod| [("namespace", "ns"), ("pod", pod), ("vmi-name", "vm")]);
        let facts = facts.into_iter().flatten();
        facts
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    });
    loaded.blocks.push(Block::load(block).unwrap());
    handle.clone_into(&mut loaded.handles[0].spec.handle_id);
}

#[test]
fn a_machine_keeps_its_address_while_it_is_there_and_its_pod_is_not() {
    let leaked = [Problem::Leaked(address("10.0.0.0"))];
    let without_pod = |who: &mut InUse| {
        who.workloads.as_mut().unwrap().remove(0);
    };
    let long = "m".repeat(140);
    let hashed = crate::machine_handle("a.vmi.b", "ns", &long);
    for (handle, name, pods) in [
        ("net.vmi.ns.vm", "vm", [Some("gone"), None]),
        ("net.vmi.ns.vm", "vm", [None, Some("gone")]),
        ("net.vmi.ns.vm", "vm", [None, None]),
        (hashed.as_str(), long.as_str(), [None, None]),
    ] {
        let machine = ("ns".to_owned(), name.to_owned());
        let report = check_problems(
            |loaded, who| {
                of_machine(loaded, handle, pods);
                without_pod(who);
                who.machines = Some([machine.clone()].into());
            },
            &[],
        );
        let expected = format!("virtual machine ns/{name}");
        assert_eq!(
            report.allocations[0].state,
            State::InUse(expected),
            "{handle}"
        );
        check_problems(
            |loaded, who| {
                of_machine(loaded, handle, pods);
                without_pod(who);
            },
            &leaked,
        );
        let report = check_problems(
            |loaded, who| {
                of_machine(loaded, handle, pods);
                without_pod(who);
                who.machines = None;
            },
            &[],
        );
        assert_eq!(report.allocations[0].state, State::Unknown, "{handle}");
    }
}

#[test]
fn a_machine_that_moves_has_its_address_twice() {
    let twice = |loaded: &mut Loaded, who: &mut InUse, pods| {
        of_machine(loaded, "net.vmi.ns.vm", pods);
        let workloads = who.workloads.as_mut().unwrap();
        let mut target = workloads[0].clone();
        target.name = "target".to_owned();
        workloads.push(target);
    };
    check_problems(
        |loaded, who| twice(loaded, who, [Some("a"), Some("target")]),
        &[],
    );
    let stuck = Problem::UsedTwice {
        address: address("10.0.0.0"),
        users: vec!["ns/a".to_owned(), "ns/target".to_owned()],
    };
    check_problems(
        |loaded, who| twice(loaded, who, [Some("a"), None]),
        std::slice::from_ref(&stuck),
    );
    check_problems(
        |loaded, who| twice(loaded, who, [Some("a"), Some("third")]),
        &[stuck],
    );
}
