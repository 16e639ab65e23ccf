//! The start of an agent in a large cluster, with a real kube-apiserver as the datastore.

use serde_json::json;
use tortie_api::crd::{self, Group};
use tortie_testkit::KubeApiServer;
use tortie_testkit::net::Node;

use crate::process::AgentProcess;
use crate::{large_cluster, print_memory, print_ready};

const NODES: usize = 500;
const PODS: usize = 50_000;
const POLICIES: usize = 10_000;

pub(crate) fn start(dataplane: &'static str) {
    let node = Node::new().unwrap();
    let measure = || {
        let server = KubeApiServer::start().unwrap();
        prepare(&server);
        let objects = large_cluster::kubernetes(NODES, PODS, POLICIES);
        large_cluster::put(server.etcd().endpoint(), &objects);
        let kubeconfig = server.kubeconfig().to_str().unwrap();
        let datastore = [
            ("DATASTORE_TYPE", "kubernetes"),
            ("KUBECONFIG", kubeconfig),
            ("CALICO_API_GROUP", "projectcalico.org/v3"),
        ];
        let agent = AgentProcess::start("node-0", &datastore, dataplane);
        print_ready(dataplane, "kubernetes", &agent);
        print_memory(dataplane, "kubernetes", &agent);
    };
    node.namespace().run(measure).unwrap();
}

/// Defines the kinds, and says that the datastore is ready.
fn prepare(server: &KubeApiServer) {
    let kinds = crd::manifests(Group::V3);
    let of = |kind: &str, spec: serde_json::Value| {
        json!({
            "apiVersion": "projectcalico.org/v3", "kind": kind, "metadata": {"name": "default"}, "spec": spec,
        })
    };
    let objects = [
        of("ClusterInformation", json!({"datastoreReady": true})),
        of("Tier", json!({"order": 1_000_000, "defaultAction": "Deny"})),
    ];
    let established = ["wait", "crd", "--all", "--for=condition=Established"];
    apply(server, &kinds);
    let waited = server.kubectl(&established).unwrap();
    waited.into_stdout().unwrap();
    apply(server, &objects);
}

fn apply(server: &KubeApiServer, objects: &[serde_json::Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let arguments = ["apply", "--validate=false", "-f", "-"];
    let applied = server.kubectl_stdin(&arguments, &list).unwrap();
    applied.into_stdout().unwrap();
}
