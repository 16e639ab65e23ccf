//! Tables of Kubernetes' own kinds, as its server makes them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, NONE, age, event, items, join_or_none, node, pod, service, text_or};
use crate::registry::Native;

/// How many ports and addresses of a slice are shown.
const MAX_SHOWN: usize = 3;

const NAME: Column = Column::new("Name");
const AGE: Column = Column::new("Age");

const CREATED: Column = Column::new("Created At");

pub(super) fn columns(kind: Native) -> &'static [Column] {
    match kind {
        Native::ClusterRole | Native::CustomResourceDefinition | Native::Role => {
            const { &[NAME, CREATED] }
        }
        Native::ClusterRoleBinding | Native::RoleBinding => {
            const {
                &[
                    NAME,
                    Column::new("Role"),
                    AGE,
                    Column::wide("Users"),
                    Column::wide("Groups"),
                    Column::wide("ServiceAccounts"),
                ]
            }
        }
        Native::ConfigMap => const { &[NAME, Column::whole("Data"), AGE] },
        Native::EndpointSlice => {
            const {
                &[
                    NAME,
                    Column::new("AddressType"),
                    Column::new("Ports"),
                    Column::new("Endpoints"),
                    AGE,
                ]
            }
        }
        Native::Event | Native::NewEvent => event::COLUMNS,
        Native::Secret => const { &[NAME, Column::new("Type"), Column::whole("Data"), AGE] },
        Native::Lease => const { &[NAME, Column::new("Holder"), AGE] },
        Native::Namespace => const { &[NAME, Column::new("Status"), AGE] },
        Native::NetworkPolicy => const { &[NAME, Column::new("Pod-Selector"), AGE] },
        Native::Node => {
            const {
                &[
                    NAME,
                    Column::new("Status"),
                    Column::new("Roles"),
                    AGE,
                    Column::new("Version"),
                    Column::wide("Internal-IP"),
                    Column::wide("External-IP"),
                    Column::wide("OS-Image"),
                    Column::wide("Kernel-Version"),
                    Column::wide("Container-Runtime"),
                ]
            }
        }
        Native::Pod => {
            const {
                &[
                    NAME,
                    Column::new("Ready"),
                    Column::new("Status"),
                    Column::new("Restarts"),
                    AGE,
                    Column::wide("IP"),
                    Column::wide("Node"),
                    Column::wide("Nominated Node"),
                    Column::wide("Readiness Gates"),
                ]
            }
        }
        Native::Service => {
            const {
                &[
                    NAME,
                    Column::new("Type"),
                    Column::new("Cluster-IP"),
                    Column::new("External-IP"),
                    Column::new("Port(s)"),
                    AGE,
                    Column::wide("Selector"),
                ]
            }
        }
        Native::ServiceAccount => const { &[NAME, Column::whole("Secrets"), AGE] },
    }
}

pub(super) fn cells(kind: Native, object: &Value, now: Timestamp) -> Vec<Value> {
    let own = match kind {
        Native::Event | Native::NewEvent => return event::cells(object, now),
        Native::Secret => {
            let count = object["data"].as_object().map_or(0, serde_json::Map::len);
            vec![text_or(&object["type"], "").into(), json!(count)]
        }
        Native::ClusterRole | Native::CustomResourceDefinition | Native::Role => {
            vec![object["metadata"]["creationTimestamp"].clone()]
        }
        Native::ClusterRoleBinding | Native::RoleBinding => binding(object),
        Native::ConfigMap => {
            let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
            vec![json!(count("data") + count("binaryData"))]
        }
        Native::EndpointSlice => vec![
            text_or(&object["addressType"], "").into(),
            ports(object).into(),
            endpoints(object).into(),
        ],
        Native::Lease => vec![text_or(&object["spec"]["holderIdentity"], "").into()],
        Native::Namespace => vec![text_or(&object["status"]["phase"], "").into()],
        Native::NetworkPolicy => vec![selector(&object["spec"]["podSelector"]).into()],
        Native::Node => node::cells(object),
        Native::Pod => pod::cells(object, now),
        Native::Service => service::cells(object),
        Native::ServiceAccount => vec![json!(items(&object["secrets"]).count())],
    };
    let metadata = &object["metadata"];
    let age = age::since(&metadata["creationTimestamp"], now).into();
    let mut cells = vec![metadata["name"].clone()];
    cells.extend(own);
    if let Some(place) = columns(kind).iter().position(|column| *column == AGE) {
        cells.insert(place.min(cells.len()), age);
    }
    cells
}

/// The role of a binding, and who holds it, by kind.
fn binding(binding: &Value) -> Vec<Value> {
    let role = &binding["roleRef"];
    let role = format!(
        "{}/{}",
        text_or(&role["kind"], ""),
        text_or(&role["name"], "")
    );
    let of_kind = |kind: &str| {
        let subjects = items(&binding["subjects"]).filter(|subject| subject["kind"] == kind);
        let names = subjects.map(|subject| {
            let name = text_or(&subject["name"], "");
            match subject["namespace"].as_str() {
                Some(namespace) => format!("{namespace}/{name}"),
                None => name.to_owned(),
            }
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let mut cells = vec![json!(role)];
    cells.extend(["User", "Group", "ServiceAccount"].map(|kind| json!(of_kind(kind))));
    cells
}

fn ports(slice: &Value) -> String {
    let ports = items(&slice["ports"]).map(|port| match port["port"].as_u64() {
        Some(number) => number.to_string(),
        None => "*".to_owned(),
    });
    shorten(ports.collect())
}

fn endpoints(slice: &Value) -> String {
    let addresses = items(&slice["endpoints"]).flat_map(|endpoint| items(&endpoint["addresses"]));
    let addresses = addresses.filter_map(Value::as_str).map(str::to_owned);
    shorten(addresses.collect())
}

/// The first few of some texts.
fn shorten(mut texts: Vec<String>) -> String {
    if texts.is_empty() {
        return "<unset>".to_owned();
    }
    let more = texts.len().saturating_sub(MAX_SHOWN);
    texts.truncate(MAX_SHOWN);
    match more {
        0 => texts.join(","),
        more => format!("{} + {more} more...", texts.join(",")),
    }
}

/// A label selector in one line.
fn selector(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", text_or(value, "")));
    let expressions = items(&selector["matchExpressions"]).map(|expression| {
        let key = text_or(&expression["key"], "");
        let values: Vec<_> = items(&expression["values"])
            .filter_map(Value::as_str)
            .collect();
        let values = values.join(",");
        match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        }
    });
    join_or_none(labels.chain(expressions))
}

/// Labels in one line.
pub(super) fn labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    join_or_none(labels.map(|(key, value)| format!("{key}={}", text_or(value, NONE))))
}
