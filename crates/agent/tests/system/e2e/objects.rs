//! Resources as the tests write them.

use serde_json::{Value, json};
use tortie_api::{Kind, Resource};

use crate::e2e::setting::NODE;

/// The profile that allows everything.
pub(crate) const OPEN: &str = "open";

/// A resource, as a datastore holds it.
pub(crate) fn resource(kind: Kind, namespace: &str, name: &str, spec: &Value) -> Resource {
    labelled(kind, namespace, name, &json!({}), spec)
}

/// A resource with labels.
pub(crate) fn labelled(
    kind: Kind,
    namespace: &str,
    name: &str,
    labels: &Value,
    spec: &Value,
) -> Resource {
    let object = json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": kind.to_string(),
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    });
    let mut resource = Resource::decode_stored(kind, &object).unwrap();
    resource.set_defaults();
    resource
}

/// A policy of the default tier for all namespaces.
pub(crate) fn policy(name: &str, spec: &Value) -> Resource {
    resource(
        Kind::GlobalNetworkPolicy,
        "",
        &format!("default.{name}"),
        spec,
    )
}

/// The profile that allows everything.
pub(crate) fn open_profile() -> Resource {
    let allow = json!([{"action": "Allow"}]);
    resource(
        Kind::Profile,
        "",
        OPEN,
        &json!({"ingress": allow, "egress": allow}),
    )
}

/// An interface of the node, with the open profile.
pub(crate) fn host_endpoint(name: &str, interface: &str, labels: &Value) -> Resource {
    labelled(
        Kind::HostEndpoint,
        "",
        name,
        labels,
        &json!({"node": NODE, "interfaceName": interface, "profiles": [OPEN]}),
    )
}
