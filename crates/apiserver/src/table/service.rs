//! The cells of a service.

use serde_json::Value;

use super::native::labels;
use super::{NONE, items, join_or_none, text_or};

/// All cells but name and age.
pub(super) fn cells(service: &Value) -> Vec<Value> {
    let spec = &service["spec"];
    vec![
        text_or(&spec["type"], "ClusterIP").into(),
        cluster_ip(spec).into(),
        external_ip(service).into(),
        ports(spec).into(),
        labels(&spec["selector"]).into(),
    ]
}

fn cluster_ip(spec: &Value) -> &str {
    let first = items(&spec["clusterIPs"]).next();
    text_or(first.unwrap_or(&spec["clusterIP"]), NONE)
}

fn external_ip(service: &Value) -> String {
    let spec = &service["spec"];
    let own = items(&spec["externalIPs"]).filter_map(Value::as_str);
    match spec["type"].as_str() {
        Some("ExternalName") => text_or(&spec["externalName"], NONE).to_owned(),
        Some("LoadBalancer") => {
            let ingress = items(&service["status"]["loadBalancer"]["ingress"]);
            let given = ingress.map(|entry| text_or(&entry["ip"], text_or(&entry["hostname"], "")));
            let all: Vec<_> = given.filter(|text| !text.is_empty()).chain(own).collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        _ => join_or_none(own),
    }
}

fn ports(spec: &Value) -> String {
    join_or_none(items(&spec["ports"]).map(|port| {
        let protocol = text_or(&port["protocol"], "TCP");
        let number = port["port"].as_u64().unwrap_or_default();
        match port["nodePort"].as_u64() {
            None | Some(0) => format!("{number}/{protocol}"),
            Some(on_node) => format!("{number}:{on_node}/{protocol}"),
        }
    }))
}
