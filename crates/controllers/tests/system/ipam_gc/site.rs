//! A real cluster with a real datastore, filled as needed, and the collector on it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::AbortHandle;
use tortie_api::crd::{self, Group};
use tortie_controllers::ipam_gc::{self, Settings};
use tortie_ipam::{AutoAssign, Ipam, attribute};
use tortie_operator::{Cache, CacheOptions};
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::{Kind, Query, Resource, Store};
use tortie_testkit::{Etcd, KubeApiServer};

/// Where the resources are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Datastore {
    Etcd,
    Kubernetes,
}

pub(crate) struct Site {
    pub(crate) server: KubeApiServer,
    pub(crate) client: kube::Client,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) datastore: Datastore,
    /// Runs as long as this.
    _etcd: Option<Etcd>,
}

/// Runs until it is dropped.
pub(crate) struct Collecting {
    task: AbortHandle,
    pub(crate) registry: Registry,
}

impl Drop for Collecting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    pub(crate) async fn start(datastore: Datastore) -> Self {
        let server = KubeApiServer::start().unwrap();
        let config = KubernetesConfig {
            kubeconfig: vec![server.kubeconfig().into()],
            api_group: Some(Group::V3),
            ..KubernetesConfig::default()
        };
        let cluster = KubernetesStore::connect(&config).await.unwrap();
        let client = cluster.client().clone();
        let (store, etcd): (Arc<dyn Store>, _) = match datastore {
            Datastore::Kubernetes => {
                apply(&server, &crd::manifests(Group::V3));
                let wait = "wait crd --all --for=condition=Established --timeout=60s";
                let wait: Vec<&str> = wait.split(' ').collect();
                server.kubectl(&wait).unwrap().into_stdout().unwrap();
                (Arc::new(cluster), None)
            }
            Datastore::Etcd => {
                let etcd = Etcd::start().unwrap();
                let config = EtcdConfig::new([etcd.endpoint()]);
                let store = EtcdStore::connect(&config).await.unwrap();
                (Arc::new(store), Some(etcd))
            }
        };
        let site = Self {
            server,
            client,
            store,
            datastore,
            _etcd: etcd,
        };
        site.create(
            &json!({ "kind": "ClusterInformation", "metadata": { "name": "default" },
            "spec": { "datastoreReady": true } }),
        )
        .await;
        site
    }

    /// Stores a resource.
    pub(crate) async fn create(&self, resource: &Value) {
        let mut resource = resource.clone();
        resource["apiVersion"] = json!("projectcalico.org/v3");
        let resource = Resource::decode_strict(&resource).unwrap();
        self.store.create(resource).await.unwrap();
    }

    pub(crate) async fn create_pool(&self, cidr: &str, block_size: u8) {
        self.create(&json!({ "kind": "IPPool", "metadata": { "name": "pool" },
            "spec": { "cidr": cidr, "blockSize": block_size, "nodeSelector": "all()",
                "allowedUses": ["Workload", "Tunnel"] } }))
            .await;
    }

    /// Makes nodes of the cluster, and of the datastore if that is another.
    pub(crate) async fn create_nodes(&self, names: &[String]) {
        let nodes: Vec<Value> = names
            .iter()
            .map(|name| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }))
            .collect();
        put_all(&self.server, "minions", &nodes);
        if self.datastore == Datastore::Etcd {
            for name in names {
                self.create(&json!({ "kind": "Node", "metadata": { "name": name },
                    "spec": { "orchRefs": [{ "nodeName": name, "orchestrator": "k8s" }] } }))
                    .await;
            }
        }
    }

    /// Gives a pod an address, as the CNI plugin does.
    pub(crate) async fn assign(&self, ipam: &Ipam, node: &str, pod: &str, handle: &str) -> IpAddr {
        let attributes = [
            (attribute::NODE, node),
            (attribute::NAMESPACE, "default"),
            (attribute::POD, pod),
        ];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = AutoAssign {
            num4: 1,
            handle: Some(handle.to_owned()),
            attributes: attributes.into(),
            ..AutoAssign::on(node)
        };
        let assigned = ipam.auto_assign(&request).await.unwrap();
        assigned.v4.addresses[0].addr()
    }

    pub(crate) fn collect(&self, grace: Duration) -> Collecting {
        let pods = Cache::start(self.client.clone(), CacheOptions::default());
        let nodes = Cache::start(self.client.clone(), CacheOptions::default());
        let settings = Settings {
            leak_grace_period: Some(grace),
        };
        let mut registry = Registry::default();
        let store = Arc::clone(&self.store);
        let collector = ipam_gc::collect(
            self.client.clone(),
            pods,
            nodes,
            store,
            settings,
            &mut registry,
        );
        let task = tokio::spawn(collector).abort_handle();
        Collecting { task, registry }
    }

    /// The addresses that are held.
    pub(crate) async fn held(&self) -> BTreeSet<IpAddr> {
        let loaded = Ipam::new(Arc::clone(&self.store)).load().await.unwrap();
        let blocks = loaded.blocks.iter();
        blocks
            .flat_map(|block| block.allocations().map(|(address, _)| address))
            .collect()
    }

    /// How many objects of a kind there are.
    pub(crate) async fn count(&self, kind: Kind) -> usize {
        self.store
            .list(&Query::all(kind))
            .await
            .unwrap()
            .items
            .len()
    }

    /// Waits until exactly these addresses are held; meanwhile they must be, at any time.
    pub(crate) async fn wait_for(&self, expected: &BTreeSet<IpAddr>, patience: Duration) {
        let start = Instant::now();
        loop {
            let held = self.held().await;
            let lost: Vec<_> = expected.difference(&held).collect();
            assert!(lost.is_empty(), "addresses in use were released: {lost:?}");
            if held == *expected {
                return;
            }
            let left = held.len() - expected.len();
            assert!(
                start.elapsed() < patience,
                "{left} addresses are still held"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

pub(crate) fn pod(name: &str, node: &str, address: Option<IpAddr>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "x" }] },
        "status": { "phase": "Running" },
    });
    if let Some(address) = address {
        pod["status"]["podIP"] = json!(address);
        pod["status"]["podIPs"] = json!([{ "ip": address }]);
    }
    pod
}

/// Puts objects straight into the datastore of the API server, which reads JSON there: thousands in seconds. `folder` is
/// where it keeps them.
pub(crate) fn put_all(server: &KubeApiServer, folder: &str, objects: &[Value]) {
    // etcd takes 128 operations at once.
    for chunk in objects.chunks(100) {
        let mut script = String::from("\n");
        for object in chunk {
            let mut object = object.clone();
            let metadata = &mut object["metadata"];
            let name = metadata["name"].as_str().unwrap().to_owned();
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            metadata["uid"] = json!(format!("00000000-0000-4000-8000-{number:012x}"));
            metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
            let namespace = metadata["namespace"]
                .as_str()
                .map(|namespace| format!("{namespace}/"));
            let path = format!("/registry/{folder}/{}{name}", namespace.unwrap_or_default());
            let value = json!(object.to_string());
            writeln!(script, "put {path} {value}").unwrap();
        }
        script.push_str("\n\n");
        transact(server, &script);
    }
}

/// Makes each uid another one.
static COUNTER: AtomicU64 = AtomicU64::new(0);

fn transact(server: &KubeApiServer, script: &str) {
    let mut etcdctl = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", server.etcd().endpoint(), "txn"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    etcdctl
        .stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    let output = etcdctl.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("SUCCESS"),
        "{text}"
    );
}

pub(crate) fn apply(server: &KubeApiServer, objects: &[Value]) {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
    let applied = server.kubectl_stdin(&["apply", "--validate=false", "-f", "-"], &list);
    applied.unwrap().into_stdout().unwrap();
}
