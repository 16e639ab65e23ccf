//! What goes with a node.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use serde_json::{Value, json};
use tortie_api::{Kind, Resource};
use tortie_client::Client;
use tortie_ipam::{AutoAssign, Ipam, attribute};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::{Key, Precondition, Query, Store};

/// A datastore with a node that has an address for a pod, and a host endpoint.
async fn with_node(folder: &tempfile::TempDir) -> (Client, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(folder.path().join("store")).unwrap());
    let create = async |kind, name: &str, spec: Value| {
        let object = json!({ "metadata": { "name": name }, "spec": spec });
        let resource = Resource::decode_stored(kind, &object).unwrap();
        store.create(resource).await.unwrap();
    };
    create(Kind::Node, "n1", json!({})).await;
    create(Kind::IpPool, "pool", json!({ "cidr": "10.0.0.0/24" })).await;
    let endpoint = json!({ "node": "n1", "interfaceName": "eth0" });
    create(Kind::HostEndpoint, "n1-eth0", endpoint).await;
    let mut request = AutoAssign {
        num4: 1,
        handle: Some("pod".to_owned()),
        ..AutoAssign::on("n1")
    };
    let node = (attribute::NODE.to_owned(), "n1".to_owned());
    request.attributes.extend([node]);
    let ipam = Ipam::new(Arc::clone(&store));
    ipam.auto_assign(&request).await.unwrap();
    (Client::new(Arc::clone(&store)), store)
}

async fn count(store: &Arc<dyn Store>, kind: Kind) -> usize {
    store.list(&Query::all(kind)).await.unwrap().items.len()
}

#[tokio::test]
async fn a_node_goes_with_its_addresses_and_endpoints() {
    let folder = tempfile::tempdir().unwrap();
    let (client, store) = with_node(&folder).await;
    let key = Key::global(Kind::Node, "n1");
    client.delete(&key, &Precondition::default()).await.unwrap();
    for kind in [Kind::Node, Kind::HostEndpoint, Kind::IpamHandle] {
        assert_eq!(count(&store, kind).await, 0, "{kind}");
    }
}

#[tokio::test]
async fn addresses_stay_where_the_caller_releases_them() {
    let folder = tempfile::tempdir().unwrap();
    let (client, store) = with_node(&folder).await;
    let key = Key::global(Kind::Node, "n1");
    client.delete_node_but_addresses(&key).await.unwrap();
    for kind in [Kind::Node, Kind::HostEndpoint] {
        assert_eq!(count(&store, kind).await, 0, "{kind}");
    }
    assert_eq!(
        count(&store, Kind::IpamHandle).await,
        1,
        "its pod may still run"
    );
}
