//! How often the datastore is asked.

use std::sync::Arc;

use serde_json::json;
use tortie_ipam::{AutoAssign, Ipam, Owner};
use tortie_store::{Kind, Resource, Store};

use crate::model::gate::Gate;
use crate::model::memory::MemoryStore;
use crate::model::script::{HOSTS, set_up};

async fn assign(ipam: &Ipam, handle: &str) {
    let request = AutoAssign {
        num4: 1,
        handle: Some(handle.to_owned()),
        ..AutoAssign::on(HOSTS[0])
    };
    let assigned = ipam.auto_assign(&request).await.unwrap();
    assert_eq!(assigned.v4.addresses.len(), 1);
}

/// One host, and one pool with blocks of this size.
async fn one_host(block_size: u8) -> (Arc<Gate>, Ipam) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let pool = json!({ "cidr": "10.0.0.0/22", "blockSize": block_size });
    for (kind, name, spec) in [
        (Kind::Node, HOSTS[0], json!({})),
        (Kind::IpPool, "pool", pool),
    ] {
        let object = json!({ "metadata": { "name": name }, "spec": spec });
        let resource = Resource::decode_stored(kind, &object).unwrap();
        store.create(resource).await.unwrap();
    }
    let gate = Arc::new(Gate::new(store, true, usize::MAX));
    let ipam = Ipam::new(Arc::<Gate>::clone(&gate));
    (gate, ipam)
}

/// An allocation and a release by a process that has done so before are one write each; a new process reads six objects
/// and lists, the first five of them at once, and writes once.
#[tokio::test]
async fn a_warm_process_asks_once_and_a_new_one_seven_times() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    set_up(&*store, true).await;
    let gate = Arc::new(Gate::new(Arc::clone(&store), true, usize::MAX));
    let ipam = Ipam::new(Arc::<Gate>::clone(&gate));
    assign(&ipam, "first").await;
    for (handle, expected) in [("a", 1), ("b", 1)] {
        let before = gate.passed();
        assign(&ipam, handle).await;
        assert_eq!(gate.passed() - before, expected, "assign {handle}");
    }
    let before = gate.passed();
    ipam.release_by_handle("a").await.unwrap();
    assert_eq!(gate.passed() - before, 1, "release");

    let gate = Arc::new(Gate::new(store, true, usize::MAX));
    let ipam = Ipam::new(Arc::<Gate>::clone(&gate));
    assign(&ipam, "c").await;
    assert_eq!(gate.passed(), 7, "a new process");
}

/// However many blocks the host has, and others before the next free one: the owner's claims, whether its blocks are still
/// full, and the next candidates are asked for at once; then block, claim, handle and address are one write.
#[tokio::test]
async fn the_next_block_costs_four_requests() {
    let (gate, ipam) = one_host(30).await;
    for number in 0..20 {
        let before = gate.passed();
        assign(&ipam, &format!("h{number}")).await;
        let expected = match number {
            // Pools, reservations, settings, the node and its claims come first.
            0 => 7,
            number if number % 4 == 0 => 4,
            _ => 1,
        };
        assert_eq!(gate.passed() - before, expected, "address {number}");
    }
    // The five candidates that come next are another's.
    let own = ipam.load().await.unwrap().blocks.len();
    let owner = Owner::host("another");
    let taken = tortie_ipam::walk::Walk::new("10.0.0.0/22".parse().unwrap(), 30, HOSTS[0], 0);
    for net in taken.skip(own).take(5) {
        let claimed = ipam.claim_affinity(net, &owner).await.unwrap();
        assert_eq!(claimed.claimed, [net]);
    }
    let before = gate.passed();
    assign(&ipam, "last").await;
    assert_eq!(gate.passed() - before, 4);
}

/// Callers who find all blocks of their host full wait for the one of them who claims another, and are served by the write
/// that claims it.
#[tokio::test]
async fn all_who_wait_for_a_block_cost_no_more_than_one() {
    let (gate, ipam) = one_host(26).await;
    for number in 0..64 {
        assign(&ipam, &format!("h{number}")).await;
    }
    let before = gate.passed();
    let handles: Vec<String> = (64..128).map(|number| format!("h{number}")).collect();
    futures::future::join_all(handles.iter().map(|handle| assign(&ipam, handle))).await;
    assert_eq!(gate.passed() - before, 4);
    assert_eq!(ipam.load().await.unwrap().blocks.len(), 2);
}
