//! What services ask for, and what they have, as it stands in them.

use serde_json::{Value, json};

/// The address of a service that wants none.
pub(super) const HEADLESS: &str = "None";

/// Whether services of this type have an address of the cluster, or say that they want none.
pub(super) fn needs_address(spec: &Value) -> bool {
    spec["type"] != "ExternalName"
}

/// Whether the ports of a service are open on nodes.
pub(super) fn needs_node_ports(spec: &Value) -> bool {
    match spec["type"].as_str() {
        Some("NodePort") => true,
        Some("LoadBalancer") => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

/// Whether nodes tell on a port of its own which of them have endpoints of a service.
pub(super) fn needs_health_port(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

/// Whether a service should have an address and has none.
pub(super) fn lacks_address(service: &Value) -> bool {
    let spec = &service["spec"];
    needs_address(spec) && address(spec).is_none()
}

/// The first address of a service, also if that is the word for none.
pub(super) fn address(spec: &Value) -> Option<&str> {
    let first = spec["clusterIP"].as_str();
    let first = first.filter(|text| !text.is_empty());
    first.or_else(|| spec["clusterIPs"][0].as_str())
}

/// A number that is given and not 0.
pub(super) fn number(value: &Value) -> Option<u16> {
    let number = value.as_u64().filter(|number| *number != 0);
    number.map(|number| u16::try_from(number).unwrap_or(u16::MAX))
}

pub(super) fn ports(spec: &Value) -> impl Iterator<Item = &Value> {
    items(&spec["ports"])
}

/// The items of a list; none if it is no list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Gives a service that is replaced what it was given before, where the new state leaves that out; and takes out what its
/// new type has no use for. As Kubernetes does it, so that a client may write what it applied at first.
pub(crate) fn keep_allocated(old: &Value, new: &mut Value) {
    let before = &old["spec"];
    let Some(after) = new.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    match (needs_address(before), needs_address(after)) {
        (true, true) => {
            if address(after).is_none() {
                copy(before, after, "clusterIP");
            }
            if after["clusterIP"] == before["clusterIP"]
                && items(&after["clusterIPs"]).next().is_none()
            {
                copy(before, after, "clusterIPs");
            }
        }
        (true, false) => {
            for field in [
                "clusterIP",
                "clusterIPs",
                "ipFamilies",
                "ipFamilyPolicy",
                "internalTrafficPolicy",
            ] {
                remove_if_same(before, after, field);
            }
        }
        (false, _) => {}
    }
    match (needs_node_ports(before), needs_node_ports(after)) {
        (true, true) => keep_node_ports(before, after),
        (true, false) => drop_node_ports(before, after),
        (false, _) => {}
    }
    match (needs_health_port(before), needs_health_port(after)) {
        (true, true) if number(&after["healthCheckNodePort"]).is_none() => {
            copy(before, after, "healthCheckNodePort");
        }
        (true, false) => remove_if_same(before, after, "healthCheckNodePort"),
        _ => {}
    }
    let is_outside =
        |spec: &Value| matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if is_outside(before) && !is_outside(after) {
        remove_if_same(before, after, "externalTrafficPolicy");
    }
    if before["type"] == "LoadBalancer" && after["type"] != "LoadBalancer" {
        remove_if_same(before, after, "allocateLoadBalancerNodePorts");
    }
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    if let Some(value) = from.get(field) {
        to[field] = value.clone();
    }
}

fn remove_if_same(before: &Value, after: &mut Value, field: &str) {
    if before.get(field) == after.get(field)
        && let Some(fields) = after.as_object_mut()
    {
        fields.remove(field);
    }
}

fn keep_node_ports(before: &Value, after: &mut Value) {
    let mut used: Vec<u16> = ports(after)
        .filter_map(|port| number(&port["nodePort"]))
        .collect();
    for port in after["ports"].as_array_mut().into_iter().flatten() {
        if number(&port["nodePort"]).is_some() {
            continue;
        }
        let mut old = ports(before);
        let same = old.find(|old| is_same_port(old, port));
        let on_node = same.and_then(|old| number(&old["nodePort"]));
        if let Some(on_node) = on_node.filter(|on_node| !used.contains(on_node)) {
            used.push(on_node);
            port["nodePort"] = json!(on_node);
        }
    }
}

fn drop_node_ports(before: &Value, after: &mut Value) {
    for port in after["ports"].as_array_mut().into_iter().flatten() {
        let mut old = ports(before);
        if let Some(old) = old.find(|old| is_same_port(old, port)) {
            remove_if_same(old, port, "nodePort");
        }
    }
}

fn is_same_port(one: &Value, other: &Value) -> bool {
    let key = |port: &Value| (protocol(port), port["port"].as_u64());
    key(one) == key(other)
}

/// The protocol of a port, perhaps before defaults are filled in.
fn protocol(port: &Value) -> String {
    port["protocol"].as_str().unwrap_or("TCP").to_owned()
}
