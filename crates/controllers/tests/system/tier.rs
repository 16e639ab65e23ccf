//! Deletion of tiers, on a real API server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tortie_controllers::tier;

use crate::cluster::Cluster;

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "projectcalico.org/v3", "kind": kind, "metadata": { "name": name }, "spec": spec,
    });
    if kind == "NetworkPolicy" {
        object["metadata"]["namespace"] = json!("default");
    }
    object
}

async fn wait_for(cluster: &Cluster, path: &str, expected: &str) {
    let mut found = String::new();
    for _ in 0..100 {
        found = cluster.kubectl(&format!(
            "get tiers.projectcalico.org --ignore-not-found -o jsonpath={path}"
        ));
        if found == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tier_goes_once_its_last_policy_has() {
    let cluster = Cluster::start().await;
    let in_tier = json!({ "tier": "security" });
    cluster.apply(&[
        object("Tier", "security", &json!({ "order": 10.0 })),
        object("NetworkPolicy", "security.one", &in_tier),
        object("GlobalNetworkPolicy", "security.two", &in_tier),
        object("GlobalNetworkPolicy", "security.three", &in_tier),
    ]);
    let _controller = tokio::spawn(tier::run(Arc::clone(&cluster.store)));
    wait_for(
        &cluster,
        "{.items[*].metadata.finalizers}",
        "[\"projectcalico.org/tier-controller\"]",
    )
    .await;
    cluster.kubectl("delete tiers.projectcalico.org security --wait=false");
    let message = "{.items[*].status.conditions[*].message}";
    let left = "Waiting for policies to be removed: 2 GlobalNetworkPolicies, 1 NetworkPolicy";
    wait_for(&cluster, message, left).await;
    cluster.kubectl("delete globalnetworkpolicies.projectcalico.org security.two");
    cluster.kubectl("delete networkpolicies.projectcalico.org security.one");
    let left = "Waiting for policies to be removed: 1 GlobalNetworkPolicy";
    wait_for(&cluster, message, left).await;
    wait_for(
        &cluster,
        "{.items[*].status.conditions[*].reason}",
        "Terminating",
    )
    .await;
    cluster.kubectl("delete globalnetworkpolicies.projectcalico.org security.three");
    wait_for(&cluster, "{.items[*].metadata.name}", "").await;
}
