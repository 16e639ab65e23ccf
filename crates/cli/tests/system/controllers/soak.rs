//! Many changes: memory stays flat, and nothing is lost.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::controllers::program::Program;
use crate::controllers::site::{Site, eventually_within};

const PODS: usize = 100;
const ROUNDS: usize = 40;
const WARM_UP: usize = 15;

/// How much more memory may be held after the last round than after the first ones, in MB.
const GROWTH: u64 = 8;

#[test]
fn memory_is_flat_over_thousands_of_pod_changes() {
    let site = Site::new();
    site.kubectl(&["create", "namespace", "shop"]);
    for number in 0..PODS {
        let endpoint = json!({
            "metadata": {"name": format!("n1-k8s-p{number}-eth0"), "namespace": "shop"},
            "spec": {
                "node": "n1", "orchestrator": "k8s", "pod": format!("p{number}"), "endpoint": "eth0",
                "interfaceName": format!("cali{number}"), "ipNetworks": ["10.0.0.1/32"],
            },
        });
        site.write(&path(number), &endpoint.to_string());
    }
    let program = Program::start(&site, &[], &[]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pods = runtime.block_on(pods(&site));
    runtime.block_on(create(&pods));
    let mut warm = 0;
    for round in 0..ROUNDS {
        runtime.block_on(relabel(&pods, round));
        if round % 10 == 0 || round == WARM_UP || round == ROUNDS - 1 {
            await_labels(&site, round);
        }
        if round == WARM_UP {
            warm = program.resident();
        }
    }
    let held = program.resident();
    assert!(held <= warm + GROWTH, "{warm} MB became {held} MB");
    assert!(program.terminate().success());
}

fn path(number: usize) -> String {
    format!("workloadendpoints/shop/n1-k8s-p{number}-eth0")
}

async fn pods(site: &Site) -> Api<Pod> {
    let kubeconfig = kube::config::Kubeconfig::read_from(site.api.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Api::namespaced(Client::try_from(config).unwrap(), "shop")
}

async fn create(pods: &Api<Pod>) {
    for number in 0..PODS {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": format!("p{number}")},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        }))
        .unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let status = json!({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}});
        let patch = Patch::Merge(status);
        let name = format!("p{number}");
        pods.patch_status(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

async fn relabel(pods: &Api<Pod>, round: usize) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
    let names: Vec<String> = (0..PODS).map(|number| format!("p{number}")).collect();
    let patches = names
        .iter()
        .map(|name| pods.patch(name, &PARAMETERS, &patch));
    futures::future::try_join_all(patches).await.unwrap();
}

static PARAMETERS: std::sync::LazyLock<PatchParams> =
    std::sync::LazyLock::new(PatchParams::default);

#[track_caller]
fn await_labels(site: &Site, round: usize) {
    let round = round.to_string();
    let has_it = |number: usize| {
        let stored: Option<Value> = site.stored(&path(number));
        stored.is_some_and(|endpoint| endpoint["metadata"]["labels"]["round"] == *round)
    };
    for number in 0..PODS {
        let found = eventually_within(Duration::from_mins(1), || has_it(number));
        assert!(found, "endpoint {number} is not of round {round}");
    }
}
