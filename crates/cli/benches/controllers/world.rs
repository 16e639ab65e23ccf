//! A large cluster, and the datastore that is to follow it.

use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use tempfile::TempDir;
use tokio::time::sleep;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Kind, Query, Resource, Store as _};
use tortie_testkit::{Etcd, KubeApiServer};

use crate::{calico, large_cluster};

const SETTINGS: &str =
    "/calico/resources/v3/projectcalico.org/kubecontrollersconfigurations/default";

pub(crate) struct World {
    pub(crate) api: KubeApiServer,
    pub(crate) etcd: Etcd,
    pub(crate) pods: usize,
    nodes: usize,
    policies: usize,
    folder: TempDir,
}

impl World {
    pub(crate) fn new(nodes: usize, pods: usize, policies: usize) -> Self {
        let world = Self {
            api: KubeApiServer::start().unwrap(),
            etcd: Etcd::start().unwrap(),
            pods,
            nodes,
            policies,
            folder: tempfile::tempdir().unwrap(),
        };
        large_cluster::put(
            world.api.etcd().endpoint(),
            &large_cluster::kubernetes(nodes, pods, policies),
        );
        let mut calico = calico::objects(nodes, pods);
        // All that is on without any settings, but for the port of the metrics, which may be taken.
        let period = serde_json::json!({"reconcilerPeriod": "5m"});
        let settings = serde_json::json!({
            "apiVersion": "projectcalico.org/v3", "kind": "KubeControllersConfiguration",
            "metadata": {
                "name": "default", "uid": "2d1e4a3f-0000-4000-8000-000000000001",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"prometheusMetricsPort": 0, "controllers": {
                "policy": period, "namespace": period, "serviceAccount": period, "workloadEndpoint": period,
                "node": {"leakGracePeriod": "15m"}, "loadBalancer": {},
            }},
        });
        calico.push((SETTINGS.to_owned(), settings));
        large_cluster::put(world.etcd.endpoint(), &calico);
        world
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn cluster(&self) -> kube::Client {
        let kubeconfig = Kubeconfig::read_from(self.api.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        kube::Client::try_from(config.unwrap()).unwrap()
    }

    pub(crate) async fn store(&self) -> EtcdStore {
        let config = EtcdConfig {
            endpoints: vec![self.etcd.endpoint().to_owned()],
            ..EtcdConfig::default()
        };
        EtcdStore::connect(&config).await.unwrap()
    }

    /// Waits until every policy and every namespace is copied, and the labels of every node.
    pub(crate) async fn await_copies(&self) {
        let count = |kind: &str| {
            let prefix = format!("/calico/resources/v3/projectcalico.org/{kind}");
            let arguments = [
                "get",
                "--prefix",
                &prefix,
                "--keys-only",
                "--limit=1",
                "-w",
                "json",
            ];
            let answer = self.etcd.etcdctl(&arguments).unwrap();
            let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
            // Left out where there is none.
            answer["count"].as_u64().unwrap_or_default()
        };
        while count("networkpolicies/") < self.policies as u64
            || count("profiles/kns.ns-") < large_cluster::NAMESPACES as u64
            || count("profiles/ksa.ns-") < large_cluster::NAMESPACES as u64
        {
            sleep(Duration::from_millis(20)).await;
        }
        let store = self.store().await;
        loop {
            let nodes = store.list(&Query::all(Kind::Node)).await.unwrap().items;
            let labelled = |node: &Resource| {
                let labels = &node.metadata().labels;
                labels.contains_key("kubernetes.io/hostname")
            };
            if nodes.iter().filter(|node| labelled(node)).count() >= self.nodes {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the endpoint of a pod has the label of this round.
    pub(crate) async fn await_round(&self, pod: usize, round: &str) {
        let store = self.store().await;
        let query = Query::in_namespace(Kind::WorkloadEndpoint, large_cluster::namespace(pod));
        loop {
            let endpoints = store.list(&query).await.unwrap().items;
            let is_it = |endpoint: &Resource| match endpoint {
                Resource::WorkloadEndpoint(endpoint) => {
                    endpoint.spec.pod == large_cluster::pod_name(pod)
                        && endpoint
                            .metadata
                            .labels
                            .get("round")
                            .is_some_and(|label| label == round)
                }
                _ => false,
            };
            if endpoints.iter().any(is_it) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}
