//! One API server for all tests, and what they do with it besides the driver.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tortie_api::crd::{self, Group};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::{Change, Event, Key, Kind, Query, Resource, Revision, Store, Watch};
use tortie_store_contract as contract;
use tortie_testkit::KubeApiServer;

/// Far beyond what anything here takes; only a lost event waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn server() -> &'static KubeApiServer {
    let server = KubeApiServer::shared();
    let prepared = server.prepare("crds", || {
        install_crds(server, Group::V1);
        install_crds(server, Group::V3);
        install_foreign_crds(server);
    });
    prepared.unwrap();
    server
}

pub(crate) fn install_crds(server: &KubeApiServer, group: Group) {
    install(server, &crd::manifests(group));
    // The API server keeps the changes of a custom resource from its first use on, and the contract
    // watches host endpoints from a revision of another kind.
    let plural = format!("hostendpoints.{}", group.name());
    server
        .kubectl(&["get", &plural])
        .unwrap()
        .into_stdout()
        .unwrap();
}

/// CRDs of other projects, as far as objects must be accepted.
fn install_foreign_crds(server: &KubeApiServer) {
    let crd = |group: &str, version: &str, scope: &str, kind: &str, plural: &str| {
        let schema = json!({
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{group}"),
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": group,
                "scope": scope,
                "names": {"kind": kind, "plural": plural},
                "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
            },
        })
    };
    let group = "policy.networking.k8s.io";
    let (kind, plural) = ("ClusterNetworkPolicy", "clusternetworkpolicies");
    let policies = crd(group, "v1alpha2", "Cluster", kind, plural);
    let (kind, plural) = (
        "VirtualMachineInstanceMigration",
        "virtualmachineinstancemigrations",
    );
    let migrations = crd("kubevirt.io", "v1", "Namespaced", kind, plural);
    install(server, &[policies, migrations]);
}

fn install(server: &KubeApiServer, crds: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": crds}).to_string();
    let apply = server.kubectl_stdin(&["apply", "--validate=false", "-f", "-"], &list);
    apply.unwrap().into_stdout().unwrap();
    let wait = [
        "wait",
        "crd",
        "--all",
        "--for=condition=Established",
        "--timeout=60s",
    ];
    server.kubectl(&wait).unwrap().into_stdout().unwrap();
}

pub(crate) async fn store(group: Group) -> KubernetesStore {
    let config = KubernetesConfig {
        kubeconfig: vec![server().kubeconfig().into()],
        api_group: Some(group),
        ..KubernetesConfig::default()
    };
    KubernetesStore::connect(&config).await.unwrap()
}

pub(crate) fn create_namespaces(names: &[String]) {
    let namespaces: Vec<_> = names
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .collect();
    apply(&namespaces);
}

pub(crate) fn apply(objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    server()
        .kubectl_stdin(&["apply", "--validate=false", "-f", "-"], &list)
        .unwrap()
        .into_stdout()
        .unwrap();
}

/// Posts an object to a path.
pub(crate) fn create_raw(path: &str, object: &Value) {
    let create = server().kubectl_stdin(&["create", "--raw", path, "-f", "-"], &object.to_string());
    create.unwrap().into_stdout().unwrap();
}

pub(crate) fn kubectl(args: &[&str]) {
    server().kubectl(args).unwrap().into_stdout().unwrap();
}

pub(crate) fn kubectl_json(args: &[&str]) -> Value {
    let output = server()
        .kubectl(&[args, &["-o", "json"]].concat())
        .unwrap()
        .into_stdout()
        .unwrap();
    serde_json::from_str(&output).unwrap()
}

pub(crate) fn pod(namespace: &str, name: &str, mut spec: Value) -> Value {
    spec["containers"] = json!([{"name": "c", "image": "i"}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

pub(crate) fn resource(kind: Kind, namespace: &str, name: &str, spec: &Value) -> Resource {
    let object = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
    Resource::decode_stored(kind, &object).unwrap()
}

/// Watches, also after the API server ends a connection in good order, as it does when kinds change.
pub(crate) async fn follow(store: &KubernetesStore, query: &Query, from: &Revision) -> Watch {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    contract::watch(&store, query, from).await.unwrap()
}

/// Waits until an object of this name is put.
pub(crate) async fn next_put(watch: &mut Watch, name: &str) -> Event {
    next(
        watch,
        |change| matches!(change, Change::Put(resource) if resource.metadata().name == name),
    )
    .await
}

/// The key in the next change that is a put or a delete, which must be a delete.
pub(crate) async fn next_delete(watch: &mut Watch) -> Key {
    match next(watch, |change| *change != Change::Bookmark)
        .await
        .change
    {
        Change::Delete(key) => key,
        other => panic!("{other:?} instead of a delete"),
    }
}

pub(crate) async fn next(watch: &mut Watch, is_wanted: impl Fn(&Change) -> bool) -> Event {
    let wanted = async {
        loop {
            let event = watch
                .next()
                .await
                .expect("a watch ends with an error only")
                .expect("the watch goes on");
            if is_wanted(&event.change) {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wanted)
        .await
        .expect("the change comes")
}
