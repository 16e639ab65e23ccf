//! The cells of a node.

use serde_json::{Map, Value};

use super::{NONE, items, join_or_none, text_or};

const UNKNOWN: &str = "<unknown>";
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

/// All cells but name and age.
pub(super) fn cells(node: &Value) -> Vec<Value> {
    let info = &node["status"]["nodeInfo"];
    vec![
        status(node).into(),
        roles(node).into(),
        text_or(&info["kubeletVersion"], "").into(),
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
        text_or(&info["osImage"], UNKNOWN).into(),
        text_or(&info["kernelVersion"], UNKNOWN).into(),
        text_or(&info["containerRuntimeVersion"], UNKNOWN).into(),
    ]
}

fn status(node: &Value) -> String {
    let mut conditions = items(&node["status"]["conditions"]);
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    let status = match ready.map(|condition| condition["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    if node["spec"]["unschedulable"] == true {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_owned()
    }
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object();
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flat_map(Map::iter)
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            None if key == ROLE => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    join_or_none(roles)
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let mut addresses = items(&node["status"]["addresses"]);
    let found = addresses.find(|address| address["type"] == kind);
    found.map_or(NONE, |address| text_or(&address["address"], NONE))
}
