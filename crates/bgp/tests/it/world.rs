//! Inputs of a few resources.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tortie_api::{Resource, yaml};
use tortie_bgp::{Family, Identity, Inputs, Plan, Update};
use tortie_testkit::read_labels_as_yaml_1_1;

/// The node whose plans are looked at.
pub(crate) const NODE: &str = "node1";

/// Inputs of node `node1`, with these resources.
pub(crate) fn inputs(identity: Identity, resources: impl IntoIterator<Item = Value>) -> Inputs {
    let mut inputs = Inputs::new(identity);
    for value in resources {
        inputs.update(Update::Resource(resource(&value)));
    }
    inputs
}

pub(crate) fn identity() -> Identity {
    Identity {
        node: NODE.to_owned(),
        ..Identity::default()
    }
}

#[track_caller]
pub(crate) fn resource(value: &Value) -> Resource {
    Resource::decode_strict(value).unwrap_or_else(|problems| panic!("{problems:?} in {value}"))
}

/// The documents of a folder of vectors, and its variables.
pub(crate) fn vector(folder: &Path) -> Inputs {
    let text = fs::read_to_string(folder.join("input.yaml")).unwrap();
    let mut documents = yaml::parse(&text).unwrap();
    documents.iter_mut().for_each(read_labels_as_yaml_1_1);
    let variables = fs::read_to_string(folder.join("env")).unwrap_or_default();
    let router_id = variables
        .lines()
        .find_map(|line| line.strip_prefix("CALICO_ROUTER_ID="));
    let identity = Identity {
        router_id: router_id.map(str::to_owned),
        ..identity()
    };
    inputs(identity, documents)
}

/// A resource of Calico, by kind, name and spec.
#[expect(
    clippy::needless_pass_by_value,
    reason = "specs are written where they are used"
)]
pub(crate) fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    })
}

pub(crate) fn node(name: &str, ipv4: &str) -> Value {
    object("Node", name, json!({"bgp": {"ipv4Address": ipv4}}))
}

pub(crate) fn labelled(mut object: Value, labels: Value) -> Value {
    object["metadata"]["labels"] = labels;
    object
}

pub(crate) fn peer(name: &str, spec: Value) -> Value {
    object("BGPPeer", name, spec)
}

pub(crate) fn configuration(spec: Value) -> Value {
    object("BGPConfiguration", "default", spec)
}

/// Objects as a datastore may hold them, whatever validation says.
#[track_caller]
pub(crate) fn stored(value: &Value) -> Resource {
    let kind = value["kind"].as_str().unwrap();
    let kind = tortie_api::Kind::ALL.iter().find(|k| k.as_str() == kind);
    Resource::decode_stored(*kind.unwrap(), value).unwrap()
}

/// The plan of two nodes of a mesh, `192.0.2.1` and `192.0.2.2`, with these resources beside.
#[track_caller]
pub(crate) fn plan(resources: &[Value]) -> Plan {
    let mut all = inputs(
        identity(),
        [node("node1", "192.0.2.1/24"), node("node2", "192.0.2.2/24")],
    );
    for value in resources {
        all.update(Update::Resource(stored(value)));
    }
    Plan::new(&all)
}

/// The sessions of a plan, by their names.
pub(crate) fn sessions(plan: &Plan) -> Vec<&str> {
    let peers = Family::BOTH
        .into_iter()
        .flat_map(|family| &plan.family(family).peers);
    peers.map(|peer| peer.name.as_str()).collect()
}
