//! Addresses whose users change while they stay, on the embedded datastore.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use tortie_ipam::{AddressOwners, AutoAssign, Error, Ipam, machine_handle};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::{Kind, Resource, Store};

async fn store() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
    let objects = [
        (Kind::Node, json!({})),
        (
            Kind::IpPool,
            json!({ "cidr": "10.0.0.0/24", "blockSize": 29 }),
        ),
        (
            Kind::IpPool,
            json!({ "cidr": "fd00::/112", "blockSize": 122 }),
        ),
    ];
    for ((kind, spec), name) in objects.into_iter().zip(["n1", "four", "six"]) {
        let object = json!({ "metadata": { "name": name }, "spec": spec });
        let resource = Resource::decode_stored(kind, &object).unwrap();
        store.create(resource).await.unwrap();
    }
    (Arc::new(store), folder)
}

fn facts(pod: &str) -> BTreeMap<String, String> {
    [("namespace", "ns"), ("pod", pod)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

async fn assign(ipam: &Ipam, handle: &str, pod: &str) {
    let request = AutoAssign {
        num4: 1,
        num6: 1,
        handle: Some(handle.to_owned()),
        attributes: facts(pod),
        max_per_handle: Some(1),
        ..AutoAssign::on("n1")
    };
    ipam.auto_assign(&request).await.unwrap();
}

#[tokio::test]
async fn all_addresses_of_a_handle_change_and_no_others() {
    let (store, _folder) = store().await;
    let ipam = Ipam::new(Arc::clone(&store));
    let handle = machine_handle("net", "ns", "vm");
    assign(&ipam, &handle, "a").await;
    assign(&ipam, "net.other", "a").await;
    let changed = ipam
        .change_owners(&handle, |owners| owners.admit(&facts("b"), true))
        .await
        .unwrap();
    let expected = AddressOwners {
        active: facts("a"),
        alternate: facts("b"),
    };
    assert_eq!(changed.len(), 2);
    // As another process sees it, too.
    let other = Ipam::new(Arc::clone(&store));
    for (address, owners) in &changed {
        assert_eq!(*owners, expected);
        let holder = other.assignment(*address).await.unwrap();
        assert_eq!(holder.handle.as_deref(), Some(handle.as_str()));
        assert_eq!(holder.attributes, facts("a"));
        assert_eq!(holder.alternate_attributes, facts("b"));
    }
    for address in ipam.ips_by_handle("net.other").await.unwrap() {
        let holder = ipam.assignment(address).await.unwrap();
        assert_eq!(holder.attributes, facts("a"));
        assert!(holder.alternate_attributes.is_empty());
    }
    // What was remembered before the change is not written over it.
    assign(&ipam, "net.third", "c").await;
    let seen = other.change_owners(&handle, |_| {}).await.unwrap();
    assert_eq!(seen, changed);
    assert_eq!(ipam.release_by_handle(&handle).await.unwrap().len(), 2);
    let gone = ipam.change_owners(&handle, |_| {}).await;
    assert!(matches!(gone, Err(Error::NoHandle(_))), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_at_the_same_time_are_all_made() {
    let (store, _folder) = store().await;
    let handle = machine_handle("net", "ns", "vm");
    assign(&Ipam::new(Arc::clone(&store)), &handle, "a").await;
    let tasks = (0..24).map(|number| {
        let (store, handle) = (Arc::clone(&store), handle.clone());
        tokio::spawn(async move {
            let ipam = Ipam::new(store);
            let change = |owners: &mut AddressOwners| {
                owners
                    .active
                    .insert(format!("mark-{number}"), String::new());
            };
            ipam.change_owners(&handle, change).await.unwrap();
            assign(&ipam, &format!("net.{number}"), "x").await;
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let found = Ipam::new(store)
        .change_owners(&handle, |_| {})
        .await
        .unwrap();
    assert_eq!(found.len(), 2);
    for (address, owners) in found {
        let marks = owners.active.keys().filter(|name| name.starts_with("mark"));
        assert_eq!(marks.count(), 24, "{address}");
    }
}
