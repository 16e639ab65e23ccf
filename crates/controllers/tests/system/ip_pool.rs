//! Conditions and finalizers of pools, on a real API server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tortie_controllers::ip_pool;
use tortie_ipam::{AutoAssign, Ipam};

use crate::cluster::Cluster;

fn pool(name: &str, cidr: &str, is_disabled: bool) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "IPPool", "metadata": { "name": name },
        "spec": { "cidr": cidr, "blockSize": 29, "nodeSelector": "all()", "disabled": is_disabled,
            "allowedUses": ["Workload"] },
    })
}

/// Waits until that is said of a pool, and it has finalizers or not.
async fn wait_for(cluster: &Cluster, pool: &str, reason: &str, finalizers: &str) {
    let mut found = String::new();
    for _ in 0..100 {
        let path = "jsonpath={.status.conditions[*].reason}|{.metadata.finalizers}";
        found = cluster.kubectl(&format!("get ippool {pool} -o {path}"));
        if found == format!("{reason}|{finalizers}") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{pool}: {found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_overlapping_pools_is_used_and_none_goes_while_it_is() {
    const HELD: &str = "[\"projectcalico.org/ippool-finalizer\"]";
    let cluster = Cluster::start().await;
    let store = &cluster.store;
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node" } });
    cluster.apply(&[node, pool("first", "10.1.0.0/24", false)]);
    let controller = tokio::spawn(ip_pool::run(Arc::clone(store)));
    wait_for(&cluster, "first", "OK", HELD).await;
    cluster.apply(&[
        pool("second", "10.1.0.0/16", false),
        pool("off", "10.1.0.0/24", true),
    ]);
    wait_for(&cluster, "second", "CIDROverlap", "").await;
    wait_for(&cluster, "off", "PoolDisabled", "").await;

    // Somebody has an address: the pool stays until it is given back, and keeps others out.
    let ipam = Ipam::new(Arc::clone(store));
    let request = AutoAssign {
        num4: 1,
        handle: Some("held".to_owned()),
        ..AutoAssign::on("node")
    };
    let address = ipam.auto_assign(&request).await.unwrap().v4.addresses[0];
    assert!(address.to_string().starts_with("10.1.0."), "{address}");
    cluster.kubectl("delete ippool first --wait=false");
    wait_for(&cluster, "first", "Terminating", HELD).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    wait_for(&cluster, "first", "Terminating", HELD).await;
    wait_for(&cluster, "second", "CIDROverlap", "").await;
    // A start anew comes to the same.
    controller.abort();
    let _controller = tokio::spawn(ip_pool::run(Arc::clone(store)));
    ipam.release_by_handle("held").await.unwrap();
    wait_for(&cluster, "second", "OK", HELD).await;
    let pools = cluster.kubectl("get ippools -o name");
    assert!(!pools.contains("first"), "{pools}");
    // One that nobody uses goes at once; one that is not allocatable was never held.
    cluster.kubectl("delete ippool off second --timeout=20s");
}
