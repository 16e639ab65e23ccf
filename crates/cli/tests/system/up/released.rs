//! What address management holds for pools and nodes goes with them, also where the API server deletes them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tortie_api::Kind;
use tortie_ipam::{Ipam, Owner};
use tortie_store::socket::SocketStore;
use tortie_store::{Query, Store};

use crate::up::server::{NODE, Up, node};

async fn store(up: &Up) -> Arc<dyn Store> {
    let store = SocketStore::connect(up.file("tortie.sock")).await;
    Arc::new(store.unwrap())
}

async fn count(store: &Arc<dyn Store>, kind: Kind) -> usize {
    store.list(&Query::all(kind)).await.unwrap().items.len()
}

async fn claim(store: &Arc<dyn Store>, node: &str, net: &str) {
    let ipam = Ipam::new(Arc::clone(store));
    let owner = Owner::host(node);
    let claimed = ipam.claim_affinity(net.parse().unwrap(), &owner).await;
    assert_eq!(claimed.unwrap().claimed.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_is_deleted_gives_up_its_blocks() {
    let up = Up::api_server();
    let pool = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "IPPool",
        "metadata": {"name": "spare"}, "spec": {"cidr": "10.70.0.0/24", "blockSize": 26},
    });
    let store = store(&up).await;
    for _ in 0..2 {
        up.kubectl_with(&["create", "--filename=-"], &pool.to_string());
        claim(&store, NODE, "10.70.0.0/26").await;
        let before = count(&store, Kind::BlockAffinity).await;
        let dry = ["delete", "ippool", "spare", "--dry-run=server"];
        up.kubectl(&dry);
        assert_eq!(count(&store, Kind::BlockAffinity).await, before);
        up.kubectl(&["delete", "ippool", "spare"]);
        assert_eq!(count(&store, Kind::BlockAffinity).await, before - 1);
    }
    assert_eq!(count(&store, Kind::IpamBlock).await, 0);
}

/// The controllers hear of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_deleted_gives_up_its_blocks() {
    let machine = node();
    let up = Up::on(machine.namespace(), Vec::new());
    let store = store(&up).await;
    let kubernetes = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}});
    up.kubectl_with(&["create", "--filename=-"], &kubernetes.to_string());
    let calico = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "Node", "metadata": {"name": "n2"},
        "spec": {"orchRefs": [{"nodeName": "n2", "orchestrator": "k8s"}]},
    });
    let applied = up.try_tortie_with(&["apply", "-f", "-"], &calico.to_string());
    assert!(applied.success(), "{}", applied.stderr);
    claim(&store, "n2", "10.65.0.192/26").await;
    let nodes = count(&store, Kind::Node).await;
    let blocks = count(&store, Kind::BlockAffinity).await;
    up.kubectl(&["delete", "node", "n2"]);
    let gone = async {
        while count(&store, Kind::Node).await == nodes
            || count(&store, Kind::BlockAffinity).await == blocks
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(1), gone).await;
    assert!(waited.is_ok(), "{}", up.log());
}
