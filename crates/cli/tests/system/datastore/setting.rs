//! An etcd that is filled, and a cluster that is to take it over.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tortie_api::crd::Group;
use tortie_api::{ClusterInformation, IpPool, Kind, Resource};
use tortie_ipam::{AutoAssign, Ipam, Use, attribute};
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::{Key, Query, Store};
use tortie_testkit::{Etcd, KubeApiServer};

use crate::datastore::program::Tortie;

/// Nodes with other names than in Kubernetes.
const NODES: &str = "
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n1}
spec:
  bgp: {ipv4Address: 192.168.0.1/24}
  orchRefs: [{nodeName: node-1.example.com, orchestrator: k8s}]
---
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n2}
spec:
  orchRefs: [{nodeName: other.example.com, orchestrator: k8s}]
---
apiVersion: projectcalico.org/v3
kind: FelixConfiguration
metadata: {name: node.n1}
spec: {defaultEndpointToHostAction: ACCEPT}
---
apiVersion: projectcalico.org/v3
kind: HostEndpoint
metadata: {name: eth0-of-n1}
spec: {node: n1, interfaceName: eth0}
";

/// What is not moved: Kubernetes has it, or it is told apart.
const LEFT: [Kind; 4] = [
    Kind::Profile,
    Kind::WorkloadEndpoint,
    Kind::ClusterInformation,
    Kind::LiveMigration,
];

pub(crate) struct Source {
    pub(crate) tortie: Tortie,
    etcd: Etcd,
    runtime: Runtime,
    store: Arc<dyn Store>,
}

pub(crate) struct Target<'a> {
    pub(crate) tortie: Tortie,
    server: &'a KubeApiServer,
    runtime: Runtime,
    group: Group,
}

impl Source {
    /// With all kinds of resources, and a hundred addresses.
    pub(crate) fn start() -> Self {
        let etcd = Etcd::start().unwrap();
        let tortie = Tortie::with_variables(vec![
            ("DATASTORE_TYPE", "etcdv3".to_owned()),
            ("ETCD_ENDPOINTS", etcd.endpoint().to_owned()),
        ]);
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cli/all-kinds.yaml");
        tortie.ok(&["apply", "-f", fixture]);
        let applied = tortie.run_with_input(&["apply", "-f", "-"], NODES);
        assert_eq!(applied.code, 0, "{}", applied.stderr);
        let runtime = Runtime::new().unwrap();
        let config = EtcdConfig::new([etcd.endpoint()]);
        let store: Arc<dyn Store> =
            Arc::new(runtime.block_on(EtcdStore::connect(&config)).unwrap());
        let source = Self {
            tortie,
            etcd,
            runtime,
            store,
        };
        source.runtime.block_on(source.fill());
        source
    }

    async fn fill(&self) {
        let pool: IpPool = serde_json::from_value(json!({
            "metadata": { "name": "more-pods" },
            "spec": { "cidr": "10.77.0.0/16", "blockSize": 24, "nodeSelector": "all()",
                "allowedUses": ["Workload", "Tunnel"], "ipipMode": "Never", "vxlanMode": "Never",
                "assignmentMode": "Automatic" },
        }))
        .unwrap();
        self.store.create(pool.into()).await.unwrap();
        let ipam = Ipam::new(Arc::clone(&self.store));
        let assign = async |handle: String, kind: &str, used_for| {
            let attributes = [
                (attribute::NODE.to_owned(), "n1".to_owned()),
                (kind.to_owned(), "x".to_owned()),
            ];
            let request = AutoAssign {
                num4: 1,
                handle: Some(handle),
                attributes: attributes.into(),
                used_for,
                pools4: vec!["10.77.0.0/16".parse().unwrap()],
                ..AutoAssign::on("n1")
            };
            ipam.auto_assign(&request).await.unwrap();
        };
        for number in 0..100 {
            assign(format!("net.{number}"), attribute::POD, Use::Workload).await;
        }
        let tunnel = "vxlan-tunnel-addr-n1".to_owned();
        assign(tunnel, attribute::TYPE, Use::Tunnel).await;
    }

    pub(crate) fn put(&self, key: &str, value: &str) {
        self.etcd.etcdctl(&["put", key, value]).unwrap();
    }

    /// The address of a handle.
    pub(crate) fn address(&self, handle: &str) -> String {
        let ipam = Ipam::new(Arc::clone(&self.store));
        let addresses = self.runtime.block_on(ipam.ips_by_handle(handle)).unwrap();
        addresses[0].to_string()
    }

    pub(crate) fn information(&self) -> ClusterInformation {
        self.runtime.block_on(information(&*self.store))
    }

    /// What is to be moved, as it should be in Kubernetes.
    pub(crate) fn resources(&self) -> BTreeMap<Key, Value> {
        let resources = self.runtime.block_on(all(&*self.store));
        resources
            .into_iter()
            .map(|resource| {
                let mut value = serde_json::to_value(&resource).unwrap();
                rename(&mut value["spec"]);
                let kind = resource.kind();
                if matches!(
                    kind,
                    Kind::Node | Kind::FelixConfiguration | Kind::IpamHandle
                ) {
                    rename(&mut value["metadata"]["name"]);
                }
                let name = value["metadata"]["name"].as_str().unwrap_or_default();
                let mut key = Key::of(&resource);
                key.name = match key.kind {
                    Kind::BlockAffinity | Kind::IpamHandle => {
                        name.replace("n1-10", "node-1.example.com-10")
                    }
                    _ => name.to_owned(),
                };
                (key, content(value))
            })
            .collect()
    }
}

impl<'a> Target<'a> {
    pub(crate) fn new(server: &'a KubeApiServer, group: Group) -> Self {
        let kubeconfig = server.kubeconfig().display().to_string();
        let name = match group {
            Group::V1 => "crd.projectcalico.org/v1",
            Group::V3 => "projectcalico.org/v3",
        };
        let tortie = Tortie::with_variables(vec![
            ("DATASTORE_TYPE", "kubernetes".to_owned()),
            ("KUBECONFIG", kubeconfig),
            ("CALICO_API_GROUP", name.to_owned()),
        ]);
        server
            .kubectl(&["create", "namespace", "shop"])
            .unwrap()
            .into_stdout()
            .unwrap();
        Self {
            tortie,
            server,
            runtime: Runtime::new().unwrap(),
            group,
        }
    }

    pub(crate) fn create_node(&self, name: &str) {
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        let created = self
            .server
            .kubectl_stdin(&["create", "-f", "-"], &node.to_string());
        created.unwrap().into_stdout().unwrap();
    }

    /// Does for a namespace that is being deleted what the controller of Kubernetes does, which does not run here.
    pub(crate) fn finalize_namespace(&self, name: &str) {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
            "spec": { "finalizers": [] } });
        let path = format!("/api/v1/namespaces/{name}/finalize");
        let arguments = ["replace", "--raw", &path, "-f", "-"];
        let finalized = self
            .server
            .kubectl_stdin(&arguments, &namespace.to_string());
        finalized.unwrap().into_stdout().unwrap();
    }

    pub(crate) fn information(&self) -> ClusterInformation {
        self.runtime
            .block_on(async { information(&self.store().await).await })
    }

    pub(crate) fn resources(&self) -> BTreeMap<Key, Value> {
        let resources = self
            .runtime
            .block_on(async { all(&self.store().await).await });
        resources
            .into_iter()
            .map(|resource| {
                let value = serde_json::to_value(&resource).unwrap();
                (Key::of(&resource), content(value))
            })
            .collect()
    }

    async fn store(&self) -> KubernetesStore {
        let config = KubernetesConfig {
            kubeconfig: vec![self.server.kubeconfig().into()],
            api_group: Some(self.group),
            ..KubernetesConfig::default()
        };
        KubernetesStore::connect(&config).await.unwrap()
    }
}

async fn information(store: &dyn Store) -> ClusterInformation {
    let key = Key::global(Kind::ClusterInformation, "default");
    match store.get(&key).await.unwrap() {
        Resource::ClusterInformation(information) => *information,
        other => panic!("{other:?}"),
    }
}

async fn all(store: &dyn Store) -> Vec<Resource> {
    let mut resources = Vec::new();
    for kind in Kind::ALL.iter().filter(|kind| !LEFT.contains(*kind)) {
        let list = store.list(&Query::all(*kind)).await.unwrap();
        assert!(list.invalid.is_empty(), "{:?}", list.invalid);
        resources.extend(list.items);
    }
    resources
}

/// What a resource says, without what each datastore says of it.
fn content(mut value: Value) -> Value {
    let is_node = value["kind"] == "Node";
    let metadata = value["metadata"].as_object_mut().unwrap();
    metadata.retain(|field, _| {
        ["name", "namespace", "labels", "annotations"].contains(&field.as_str())
    });
    // Of a node, Kubernetes tells its own labels and addresses too.
    if is_node {
        metadata.retain(|field, _| field == "name");
        value["spec"] = json!({ "bgp": value["spec"]["bgp"] });
        value.as_object_mut().unwrap().remove("status");
    }
    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
    if [
        "IPAMHandle",
        "BlockAffinity",
        "IPAMBlock",
        "IPAMConfiguration",
    ]
    .contains(&kind.as_str())
    {
        value["metadata"] = json!({});
    }
    value
}

/// Puts the names that Kubernetes has in the place of those in etcd, in any text.
fn rename(value: &mut Value) {
    const NEW: &str = "node-1.example.com";
    match value {
        Value::String(text) => match text.as_str() {
            "n1" => NEW.clone_into(text),
            "n2" => "other.example.com".clone_into(text),
            "host:n1" => *text = format!("host:{NEW}"),
            "node.n1" => *text = format!("node.{NEW}"),
            "vxlan-tunnel-addr-n1" => *text = format!("vxlan-tunnel-addr-{NEW}"),
            "ACCEPT" => "Accept".clone_into(text),
            _ => {}
        },
        Value::Array(list) => list.iter_mut().for_each(rename),
        Value::Object(fields) => fields.values_mut().for_each(rename),
        _ => {}
    }
}
