//! Address management on a real kube-apiserver, which changes one object at a time: processes that are stopped anywhere
//! break nothing, and the objects are those that Calico expects.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use serde_json::{Value, json};
use tortie_api::crd::{self, Group};
use tortie_ipam::{AutoAssign, Ipam};
use tortie_store::Store;
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_testkit::KubeApiServer;

use crate::model::crowd::run;
use crate::model::script::{HOSTS, set_up};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_breaks_on_kubernetes_and_objects_are_those_of_calico() {
    let server = KubeApiServer::shared();
    apply(server, &crd::manifests(Group::V3));
    let wait = [
        "wait",
        "crd",
        "--all",
        "--for=condition=Established",
        "--timeout=60s",
    ];
    server.kubectl(&wait).unwrap().into_stdout().unwrap();
    let nodes = HOSTS
        .map(|name| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }));
    apply(server, &nodes);
    let config = KubernetesConfig {
        kubeconfig: vec![server.kubeconfig().into()],
        api_group: Some(Group::V3),
        ..KubernetesConfig::default()
    };
    let store: Arc<dyn Store> = Arc::new(KubernetesStore::connect(&config).await.unwrap());
    set_up(&*store, false).await;
    for seed in 0..4 {
        run(&store, seed, true, 2).await;
    }

    let ipam = Ipam::new(Arc::clone(&store));
    let request = AutoAssign {
        num4: 1,
        handle: Some("k8s-pod-network.0A1B".to_owned()),
        ..AutoAssign::on(HOSTS[0])
    };
    let assigned = ipam.auto_assign(&request).await.unwrap();
    let block = assigned.v4.addresses[0].trunc();
    let get = |kind: &str| -> Value {
        let text = server
            .kubectl(&["get", kind, "-o", "json"])
            .unwrap()
            .into_stdout()
            .unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{kind}");
        list["items"][0].clone()
    };
    let name = block.to_string().replace(['.', '/'], "-");
    let stored = get("ipamblocks");
    assert_eq!(stored["metadata"]["name"], json!(name));
    assert_eq!(
        stored["spec"]["affinity"],
        json!(format!("host:{}", HOSTS[0]))
    );
    assert_eq!(
        stored["spec"]["attributes"][0]["handle_id"],
        json!("k8s-pod-network.0A1B")
    );
    let handle = get("ipamhandles");
    assert_eq!(handle["metadata"]["name"], json!("k8s-pod-network.0a1b"));
    assert_eq!(handle["spec"]["block"], json!({ block.to_string(): 1 }));
    let affinity = get("blockaffinities");
    assert_eq!(
        affinity["metadata"]["name"],
        json!(format!("{}-{name}", HOSTS[0]))
    );
    assert_eq!(affinity["spec"]["state"], json!("confirmed"));
    ipam.release_by_handle("k8s-pod-network.0A1B")
        .await
        .unwrap();
    ipam.remove_host(HOSTS[0]).await.unwrap();
    assert!(ipam.load().await.unwrap().blocks.is_empty());
}

fn apply(server: &KubeApiServer, objects: &[Value]) {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
    let applied = server.kubectl_stdin(&["apply", "--validate=false", "-f", "-"], &list);
    applied.unwrap().into_stdout().unwrap();
}
