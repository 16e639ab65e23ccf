//! What callers rely on beyond what the recorded answers of Calico show, on the embedded datastore.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tortie_api::ipam_configuration::IpamConfigurationSpec;
use tortie_ipam::config::default_config;
use tortie_ipam::{
    AssignIp, AutoAssign, Error, Ipam, LOAD_BALANCER, Owner, OwnerKind, PoolUtilization, Use,
};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::{Key, Kind, Resource, Store};

struct World {
    store: Arc<dyn Store>,
    ipam: Ipam,
    seconds: Arc<AtomicI64>,
    _folder: TempDir,
}

impl World {
    async fn new(pools: &[(&str, Value)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let seconds = Arc::new(AtomicI64::new(1_800_000_000));
        let world = Self {
            ipam: ipam(&store, &seconds),
            store,
            seconds,
            _folder: folder,
        };
        for node in ["n1", "n2", "n3"] {
            world.create(Kind::Node, node, &json!({})).await;
        }
        for (name, spec) in pools {
            world.create(Kind::IpPool, name, spec).await;
        }
        world
    }

    async fn create(&self, kind: Kind, name: &str, spec: &Value) {
        let object =
            json!({ "metadata": { "name": name, "labels": { "name": name } }, "spec": spec });
        let resource = Resource::decode_stored(kind, &object).unwrap();
        self.store.create(resource).await.unwrap();
    }

    async fn change_pool(&self, name: &str, change: impl FnOnce(&mut tortie_api::IpPool)) {
        let key = Key::global(Kind::IpPool, name);
        let Resource::IpPool(mut pool) = self.store.get(&key).await.unwrap() else {
            panic!("a pool is a pool");
        };
        change(&mut pool);
        self.store.update((*pool).into()).await.unwrap();
    }

    /// As another process would see it.
    fn other(&self) -> Ipam {
        ipam(&self.store, &self.seconds)
    }

    fn advance(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    async fn assign(&self, host: &str, handle: &str, count: u32) -> Vec<String> {
        let assigned = self
            .ipam
            .auto_assign(&request(host, handle, count))
            .await
            .unwrap();
        assigned
            .v4
            .addresses
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

fn ipam(store: &Arc<dyn Store>, seconds: &Arc<AtomicI64>) -> Ipam {
    let seconds = Arc::clone(seconds);
    let clock = move || Timestamp::from_second(seconds.load(Ordering::Relaxed)).unwrap();
    Ipam::with_clock(Arc::clone(store), Arc::new(clock))
}

fn request(host: &str, handle: &str, count: u32) -> AutoAssign {
    AutoAssign {
        num4: count,
        handle: Some(handle.to_owned()),
        attributes: [("node".to_owned(), host.to_owned())].into(),
        ..AutoAssign::on(host)
    }
}

fn small() -> Value {
    json!({ "cidr": "10.0.0.0/29", "blockSize": 30 })
}

#[tokio::test]
async fn a_full_pool_says_so_and_addresses_are_borrowed_before() {
    let world = World::new(&[("p", small())]).await;
    world.assign("n1", "a", 4).await;
    world.assign("n2", "b", 2).await;
    // Both blocks are taken, and one has two addresses left.
    assert_eq!(world.assign("n3", "c", 1).await.len(), 1);
    let assigned = world
        .ipam
        .auto_assign(&request("n3", "d", 3))
        .await
        .unwrap();
    assert_eq!(assigned.v4.addresses.len(), 1);
    assert_eq!(
        assigned.v4.shortfall.unwrap().to_string(),
        "Assigned 1 out of 3 requested IPv4 addresses; No IPs available in pools: [10.0.0.0/29]"
    );
}

#[tokio::test]
async fn strict_affinity_forbids_borrowing_and_the_limit_of_blocks_is_an_error() {
    let world = World::new(&[("p", small())]).await;
    let strict = IpamConfigurationSpec {
        strict_affinity: true,
        ..default_config()
    };
    world.ipam.set_configuration(&strict).await.unwrap();
    world.assign("n1", "a", 4).await;
    world.assign("n2", "b", 1).await;
    let assigned = world
        .ipam
        .auto_assign(&request("n3", "c", 1))
        .await
        .unwrap();
    let shortfall = assigned.v4.shortfall.unwrap().to_string();
    assert!(
        shortfall.ends_with("; No more free affine blocks and strict affinity enabled"),
        "{shortfall}"
    );
    let taken = AssignIp::on("n3", "10.0.0.0".parse().unwrap());
    assert!(matches!(
        world.ipam.assign_ip(&taken).await,
        Err(Error::NotOurs)
    ));

    let limited = AutoAssign {
        max_blocks_per_host: 1,
        ..request("n2", "d", 4)
    };
    let error = world.ipam.auto_assign(&limited).await.unwrap_err();
    assert!(matches!(error.cause(), Error::BlockLimit));
    assert_eq!(error.assigned().unwrap().v4.addresses.len(), 3);
    let reason = error
        .assigned()
        .unwrap()
        .v4
        .shortfall
        .as_ref()
        .unwrap()
        .to_string();
    assert!(
        reason.contains("limit of 1 blocks reached for this node"),
        "{reason}"
    );

    let contradiction = IpamConfigurationSpec {
        auto_allocate_blocks: false,
        ..default_config()
    };
    assert!(world.ipam.set_configuration(&contradiction).await.is_err());
    assert_eq!(world.ipam.configuration().await.unwrap(), strict);
}

#[tokio::test]
async fn an_empty_block_of_another_is_taken_over_after_a_minute() {
    let world = World::new(&[("p", json!({ "cidr": "10.0.0.0/30", "blockSize": 30 }))]).await;
    world.assign("n1", "a", 1).await;
    world.ipam.release_by_handle("a").await.unwrap();
    let strict = IpamConfigurationSpec {
        strict_affinity: true,
        ..default_config()
    };
    world.ipam.set_configuration(&strict).await.unwrap();
    assert!(world.assign("n2", "b", 1).await.is_empty());
    world.advance(61);
    assert_eq!(world.assign("n2", "c", 1).await, ["10.0.0.0/30"]);
}

#[tokio::test]
async fn a_pool_that_was_disabled_meanwhile_is_not_used() {
    let world = World::new(&[("p", small())]).await;
    world.assign("n1", "a", 1).await;
    world
        .change_pool("p", |pool| pool.spec.disabled = true)
        .await;
    let error = world
        .ipam
        .auto_assign(&request("n1", "b", 1))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot find a qualified ippool");
    world
        .change_pool("p", |pool| pool.spec.disabled = false)
        .await;
    assert_eq!(world.assign("n1", "c", 1).await.len(), 1);
    assert!(world.ipam.ips_by_handle("b").await.is_err());
}

#[tokio::test]
async fn what_another_process_did_is_seen_although_it_is_not_remembered() {
    let world = World::new(&[("p", small())]).await;
    let other = world.other();
    assert_eq!(world.assign("n1", "a", 4).await.len(), 4);
    other.release_by_handle("a").await.unwrap();
    // The block is remembered as full.
    assert_eq!(world.assign("n1", "b", 4).await.len(), 4);
    assert_eq!(world.ipam.load().await.unwrap().blocks.len(), 1);
    other.release_by_handle("b").await.unwrap();
    assert!(matches!(
        world.ipam.release_by_handle("b").await,
        Err(Error::NoHandle(_)) | Ok(_)
    ));
    other.auto_assign(&request("n1", "b", 1)).await.unwrap();
    assert_eq!(world.ipam.release_by_handle("b").await.unwrap().len(), 1);
    assert!(world.ipam.load().await.unwrap().handles.is_empty());
}

#[tokio::test]
async fn a_handle_with_a_limit_gets_what_it_has() {
    let world = World::new(&[("p", small())]).await;
    let limited = AutoAssign {
        max_per_handle: Some(1),
        ..request("n1", "vm", 1)
    };
    let first = world.ipam.auto_assign(&limited).await.unwrap().v4.addresses[0].addr();
    let again = world.ipam.auto_assign(&limited).await.unwrap().v4.addresses;
    assert_eq!(again, [ipnet::IpNet::from(first)]);
    let same = AssignIp {
        handle: Some("vm".to_owned()),
        max_per_handle: Some(1),
        ..AssignIp::on("n1", first)
    };
    world.ipam.assign_ip(&same).await.unwrap();
    let other = AssignIp {
        address: "10.0.0.7".parse().unwrap(),
        ..same
    };
    let error = world.ipam.assign_ip(&other).await.unwrap_err();
    assert!(matches!(error, Error::HandleHasOther { .. }), "{error}");
    assert_eq!(world.ipam.ips_by_handle("vm").await.unwrap(), [first]);
}

#[tokio::test]
async fn uses_and_selectors_decide_which_pool() {
    let services =
        json!({ "cidr": "10.1.0.0/29", "blockSize": 30, "allowedUses": ["LoadBalancer"] });
    let n2_only = json!({ "cidr": "10.2.0.0/29", "blockSize": 30, "nodeSelector": "name == 'n2'" });
    let world = World::new(&[("a-n2", n2_only), ("b", small()), ("c-services", services)]).await;
    assert!(world.assign("n1", "a", 1).await[0].starts_with("10.0.0."));
    assert!(world.assign("n2", "b", 1).await[0].starts_with("10.2.0."));
    let service = AutoAssign {
        used_for: Use::LoadBalancer,
        ..request(LOAD_BALANCER, "lb", 1)
    };
    let assigned = world.ipam.auto_assign(&service).await.unwrap();
    assert!(assigned.v4.addresses[0].to_string().starts_with("10.1.0."));
    let affinities = world.ipam.load().await.unwrap().affinities;
    assert!(
        affinities
            .iter()
            .any(|(owner, ..)| owner.kind == OwnerKind::Virtual && owner.name == LOAD_BALANCER)
    );
    let tunnel = AssignIp {
        used_for: Some(Use::Tunnel),
        ..AssignIp::on("n1", "10.1.0.7".parse().unwrap())
    };
    let error = world.ipam.assign_ip(&tunnel).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "IP address 10.1.0.7 is in IP pool \"c-services\", which is not allowed for use \"Tunnel\" (allowedUses: [LoadBalancer])"
    );
    // The pool no longer selects the node, and its block becomes empty.
    world
        .change_pool("a-n2", |pool| {
            pool.spec.node_selector = "name == 'n3'".to_owned();
        })
        .await;
    world.advance(10);
    world.ipam.release_by_handle("b").await.unwrap();
    let blocks = world.ipam.load().await.unwrap().blocks;
    assert!(
        blocks
            .iter()
            .all(|block| !block.net().to_string().starts_with("10.2."))
    );
}

#[tokio::test]
async fn a_node_that_is_gone_leaves_nothing_but_what_others_have() {
    let world = World::new(&[("p", small())]).await;
    world.assign("n1", "a", 5).await;
    world.assign("n2", "b", 1).await;
    let unknown = AssignIp::on(
        "n1",
        world.assign("n1", "x", 1).await[0]
            .parse::<ipnet::IpNet>()
            .unwrap()
            .addr(),
    );
    world.ipam.release_by_handle("x").await.unwrap();
    world.ipam.assign_ip(&unknown).await.unwrap();
    let removed = world.other().remove_host("n1").await.unwrap();
    assert_eq!(removed.released.len(), 5);
    assert_eq!(removed.kept, [unknown.address]);
    let loaded = world.ipam.load().await.unwrap();
    assert!(
        loaded
            .affinities
            .iter()
            .all(|(owner, ..)| *owner != Owner::host("n1"))
    );
    let held: BTreeSet<IpAddr> = loaded
        .blocks
        .iter()
        .flat_map(|block| block.allocations().map(|held| held.0))
        .collect();
    let theirs: BTreeSet<IpAddr> = world
        .ipam
        .ips_by_handle("b")
        .await
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(held.difference(&theirs).count(), 1);
    assert!(world.ipam.ips_by_handle("a").await.is_err());
}

#[tokio::test]
async fn pools_are_summed_up_and_split() {
    let world = World::new(&[("p", small())]).await;
    world
        .create(
            Kind::IpReservation,
            "r",
            &json!({ "reservedCIDRs": ["10.0.0.7"] }),
        )
        .await;
    world.assign("n1", "a", 2).await;
    let usage = world.ipam.utilization(&[]).await.unwrap();
    let PoolUtilization {
        capacity,
        in_use,
        reserved,
        available,
        ..
    } = usage[0];
    assert_eq!((capacity, in_use, reserved, available), (8, 2, 1, 5));
    assert_eq!(
        (usage[1].name.as_str(), usage[1].blocks.len()),
        (PoolUtilization::ORPHANED, 0)
    );

    let split = world.ipam.split("p", 2).await.unwrap();
    assert!(split.new.iter().all(|pool| !pool.spec.disabled));
    let usage = world.ipam.utilization(&[]).await.unwrap();
    let names: Vec<&str> = usage.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["split-p-0", "split-p-1", PoolUtilization::ORPHANED]);
    assert_eq!(usage.iter().map(|pool| pool.in_use).sum::<u128>(), 2);
    assert_eq!(world.ipam.ips_by_handle("a").await.unwrap().len(), 2);
    // The pool is gone, and another has other blocks: the address is found all the same.
    let address = world.ipam.ips_by_handle("a").await.unwrap()[0];
    assert!(world.ipam.assignment(address).await.is_ok());
    assert!(
        world
            .ipam
            .release(&[address.into()])
            .await
            .unwrap()
            .unallocated
            .is_empty()
    );
}

#[tokio::test]
async fn affinities_can_be_claimed_and_given_up() {
    let world = World::new(&[("p", json!({ "cidr": "10.0.0.0/28", "blockSize": 30 }))]).await;
    let (n1, n2) = (Owner::host("n1"), Owner::host("n2"));
    let half = "10.0.0.0/29".parse().unwrap();
    assert_eq!(
        world
            .ipam
            .claim_affinity(half, &n1)
            .await
            .unwrap()
            .claimed
            .len(),
        2
    );
    let all = world
        .ipam
        .claim_affinity("10.0.0.0/28".parse().unwrap(), &n2)
        .await
        .unwrap();
    assert_eq!((all.claimed.len(), all.failed.len()), (2, 2));
    let error = world
        .ipam
        .claim_affinity("10.0.0.0/31".parse().unwrap(), &n1)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "The requested CIDR (10.0.0.0/31) is smaller than the minimum."
    );
    world.ipam.release_affinity(half, &n1, true).await.unwrap();
    assert_eq!(world.ipam.load().await.unwrap().affinities.len(), 2);
    world
        .ipam
        .release_pool_affinities("10.0.0.0/28".parse().unwrap())
        .await
        .unwrap();
    let loaded = world.ipam.load().await.unwrap();
    assert!(loaded.affinities.is_empty() && loaded.blocks.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_at_once_share_blocks() {
    let world = World::new(&[("p", json!({ "cidr": "10.0.0.0/16", "blockSize": 26 }))]).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..256 {
        let ipam = world.ipam.clone();
        tasks.spawn(async move {
            let assigned = ipam
                .auto_assign(&request("n1", &format!("h{number}"), 1))
                .await
                .unwrap();
            assigned.v4.addresses[0].addr()
        });
    }
    let addresses: BTreeSet<IpAddr> = tasks.join_all().await.into_iter().collect();
    assert_eq!(addresses.len(), 256);
    let loaded = world.ipam.load().await.unwrap();
    assert_eq!((loaded.blocks.len(), loaded.handles.len()), (4, 256));
}
