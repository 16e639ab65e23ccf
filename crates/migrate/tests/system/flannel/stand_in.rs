//! Says of pods and `DaemonSets` what kubelets and controllers would.

use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tortie_migrate::flannel::{CALICO, NETWORK_LABEL};

/// Goes on until it is dropped.
pub(crate) async fn run(client: Client) {
    loop {
        end_pods(&client).await;
        run_agents(&client).await;
        end_daemonsets(&client).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Pods that are to go are gone at once, and commands succeed.
async fn end_pods(client: &Client) {
    let pods: Api<Pod> = Api::all(client.clone());
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
        let name = pod.name_any();
        if pod.metadata.deletion_timestamp.is_some() {
            let _ = api
                .delete(&name, &DeleteParams::default().grace_period(0))
                .await;
        } else if pod.labels().contains_key("flannel-migration") {
            let status = json!({"status": {"phase": "Succeeded"}});
            let _ = api
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
                .await;
        }
    }
}

/// Nodes whose label asks for it have an agent that is ready.
async fn run_agents(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let moved = ListParams::default().labels(&format!("{NETWORK_LABEL}={CALICO}"));
    let api: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    for node in nodes.list(&moved).await.unwrap() {
        let name = format!("calico-node-{}", node.name_any());
        let agent = json!({
            "metadata": {"name": name, "labels": {"k8s-app": "calico-node"}},
            "spec": {
                "nodeName": node.name_any(), "hostNetwork": true,
                "containers": [{"name": "calico-node", "image": "calico/node"}],
            },
        });
        let agent: Pod = serde_json::from_value(agent).unwrap();
        if api.create(&PostParams::default(), &agent).await.is_ok() {
            let status = json!({"status": {
                "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            }});
            let patch = Patch::Merge(status);
            api.patch_status(&name, &PatchParams::default(), &patch)
                .await
                .unwrap();
        }
    }
}

/// What waits for its pods to go has none.
async fn end_daemonsets(client: &Client) {
    let all: Api<DaemonSet> = Api::all(client.clone());
    for daemonset in all.list(&ListParams::default()).await.unwrap() {
        if daemonset.metadata.deletion_timestamp.is_some() {
            let namespace = daemonset.namespace().unwrap();
            let api: Api<DaemonSet> = Api::namespaced(client.clone(), &namespace);
            let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = api
                .patch(&daemonset.name_any(), &PatchParams::default(), &freed)
                .await;
        }
    }
}
