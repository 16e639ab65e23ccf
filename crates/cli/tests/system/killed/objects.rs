//! Resources as the test writes them.

use serde_json::{Value, json};
use tortie_api::{Kind, Resource};

/// The node that the agent works for.
pub(crate) const NODE: &str = "node1";

/// A port of the server that policy always lets through, and one that it lets through for members of a set, to which the
/// client always belongs.
pub(crate) const OPEN: u16 = 7000;
pub(crate) const OPEN_BY_SET: u16 = 7001;

/// A port that nothing lets through, and one for members of a set, to which the client never belongs.
pub(crate) const CLOSED: u16 = 7002;
pub(crate) const CLOSED_BY_SET: u16 = 7003;

/// The values of the label that makes an object a member of one of the sets.
pub(crate) const GUESTS: &str = "guests";
pub(crate) const OTHERS: &str = "others";

/// The profile that lets everything through.
const PROFILE: &str = "open";

/// What every datastore holds.
pub(crate) fn common() -> Vec<Resource> {
    let allow = json!([{"action": "Allow"}]);
    vec![
        resource(
            Kind::ClusterInformation,
            "default",
            &json!({"datastoreReady": true}),
        ),
        resource(
            Kind::Tier,
            "default",
            &json!({"order": 1_000_000, "defaultAction": "Deny"}),
        ),
        resource(
            Kind::Profile,
            PROFILE,
            &json!({"ingress": allow, "egress": allow}),
        ),
        policy(
            "guard",
            &json!({
                "order": 100,
                "selector": "role == 'server'",
                "types": ["Ingress"],
                "ingress": [
                    rule("Allow", "UDP", OPEN, None),
                    rule("Allow", "UDP", OPEN_BY_SET, Some(GUESTS)),
                    rule("Allow", "UDP", CLOSED_BY_SET, Some(OTHERS)),
                ],
            }),
        ),
    ]
}

/// A rule for packets to a port, perhaps only from members of a set.
pub(crate) fn rule(action: &str, protocol: &str, port: u16, set: Option<&str>) -> Value {
    let mut rule =
        json!({"action": action, "protocol": protocol, "destination": {"ports": [port]}});
    if let Some(set) = set {
        rule["source"] = json!({"selector": format!("list == '{set}'")});
    }
    rule
}

/// A policy of the default tier for all namespaces.
pub(crate) fn policy(name: &str, spec: &Value) -> Resource {
    resource(Kind::GlobalNetworkPolicy, &format!("default.{name}"), spec)
}

/// A pod's endpoint.
pub(crate) fn endpoint(
    name: &str,
    interface: &str,
    networks: &[String],
    labels: &[(&str, &str)],
) -> Resource {
    let spec = json!({
        "node": NODE,
        "orchestrator": "k8s",
        "pod": name,
        "endpoint": "eth0",
        "interfaceName": interface,
        "ipNetworks": networks,
        "profiles": [PROFILE],
    });
    let name = format!("{NODE}-k8s-{name}-eth0");
    labelled(Kind::WorkloadEndpoint, "default", &name, labels, &spec)
}

/// A list of networks.
pub(crate) fn network_set(name: &str, networks: &[String], labels: &[(&str, &str)]) -> Resource {
    let spec = json!({"nets": networks});
    labelled(Kind::GlobalNetworkSet, "", name, labels, &spec)
}

pub(crate) fn resource(kind: Kind, name: &str, spec: &Value) -> Resource {
    labelled(kind, "", name, &[], spec)
}

fn labelled(
    kind: Kind,
    namespace: &str,
    name: &str,
    labels: &[(&str, &str)],
    spec: &Value,
) -> Resource {
    let object = json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": kind.to_string(),
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    });
    let mut resource = Resource::decode_stored(kind, &object).unwrap();
    resource.set_defaults();
    let labels = labels.iter();
    resource.metadata_mut().labels = labels
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    resource
}
