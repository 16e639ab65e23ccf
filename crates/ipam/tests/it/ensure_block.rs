//! A host gets a block before anybody asks for an address, as it must on Windows.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use serde_json::{Value, json};
use tortie_ipam::{AutoAssign, EnsureBlock, Error, HostReserved, Ipam, Owner};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::{Kind, Resource, Store};

fn reserved() -> HostReserved {
    HostReserved {
        start: 3,
        end: 1,
        handle: "windows-reserved-ipam-handle".to_owned(),
        note: "windows host rsvd".to_owned(),
    }
}

async fn create(store: &dyn Store, kind: Kind, name: &str, spec: Value) {
    let object = json!({ "metadata": { "name": name }, "spec": spec });
    let resource = Resource::decode_stored(kind, &object).unwrap();
    store.create(resource).await.unwrap();
}

#[tokio::test]
async fn a_host_gets_one_block_of_each_version_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(folder.path().join("s")).unwrap());
    create(&*store, Kind::Node, "win", json!({})).await;
    create(&*store, Kind::Node, "late", json!({})).await;
    let four = json!({ "cidr": "10.0.0.0/28", "blockSize": 29 });
    create(&*store, Kind::IpPool, "four", four).await;
    let six = json!({ "cidr": "fd00::/120", "blockSize": 122 });
    create(&*store, Kind::IpPool, "six", six).await;
    let ipam = Ipam::new(Arc::clone(&store));
    let nothing = EnsureBlock {
        host: "win".to_owned(),
        ..EnsureBlock::default()
    };
    assert_eq!(ipam.ensure_block(&nothing).await.unwrap(), (None, None));
    let both = EnsureBlock {
        reserved4: Some(reserved()),
        reserved6: Some(reserved()),
        ..nothing.clone()
    };
    let first = ipam.ensure_block(&both).await.unwrap();
    assert!(first.0.is_some() && first.1.is_some(), "{first:?}");
    assert_eq!(ipam.ensure_block(&both).await.unwrap(), first);
    let again = Ipam::new(Arc::clone(&store)).ensure_block(&both).await;
    assert_eq!(again.unwrap(), first);

    // The next address is from that block, and none that the host keeps for itself.
    let request = AutoAssign {
        num4: 4,
        reserved4: Some(reserved()),
        ..AutoAssign::on("win")
    };
    let assigned = ipam.auto_assign(&request).await.unwrap().v4.addresses;
    let block = first.0.unwrap();
    assert!(
        assigned.iter().all(|net| net.trunc() == block),
        "{assigned:?}"
    );
    let bytes = assigned.iter().map(|net| match net.addr() {
        std::net::IpAddr::V4(address) => address.octets()[3] % 8,
        std::net::IpAddr::V6(_) => 255,
    });
    assert_eq!(bytes.collect::<Vec<_>>(), [3, 4, 5, 6]);
    // A full block is a block all the same.
    assert_eq!(ipam.ensure_block(&both).await.unwrap(), first);

    let other = Owner::host("other");
    let rest = ipam.claim_affinity("10.0.0.0/28".parse().unwrap(), &other);
    assert_eq!(rest.await.unwrap().claimed.len(), 1);
    let late = EnsureBlock {
        host: "late".to_owned(),
        reserved4: Some(reserved()),
        ..EnsureBlock::default()
    };
    let error = ipam.ensure_block(&late).await.unwrap_err();
    assert!(matches!(error, Error::NoFreeBlocks), "{error}");
    // A pool whose blocks have nothing left beside what is kept back counts as absent.
    let small = json!({ "cidr": "10.1.0.0/24", "blockSize": 30, "nodeSelector": "all()" });
    create(&*store, Kind::IpPool, "small", small).await;
    let only_small = EnsureBlock {
        pools4: vec!["10.1.0.0/24".parse().unwrap()],
        ..late
    };
    let error = Ipam::new(store)
        .ensure_block(&only_small)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the given pool (10.1.0.0/24)"), "{text}");
}
