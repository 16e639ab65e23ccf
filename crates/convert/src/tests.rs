//! Tests of the conversions, one file per group of kinds, and against Calico's own results.

mod cluster;
mod endpoint;
mod network;
mod policy;
mod rule;
mod vectors;

use serde_json::{Value, json};
use tortie_api::{Kind, Resource};

use super::{Converted, Converter};
use tortie_engine::input::Update;

/// An object as it is stored.
fn resource(kind: Kind, namespace: &str, name: &str, spec: &Value) -> Resource {
    with_metadata(kind, &json!({"namespace": namespace, "name": name}), spec)
}

fn with_metadata(kind: Kind, metadata: &Value, spec: &Value) -> Resource {
    let object = json!({"metadata": metadata, "spec": spec});
    Resource::decode_stored(kind, &object).unwrap()
}

/// What a new converter makes of one object.
fn convert(resource: &Resource) -> Converted {
    Converter::new().set(resource)
}

/// The one update that an object without problems gives.
#[track_caller]
fn only_update(resource: &Resource) -> Update {
    let Converted {
        updates, problems, ..
    } = convert(resource);
    assert_eq!(problems, [], "{}", resource.id());
    let [update] = <[Update; 1]>::try_from(updates).expect("one update");
    update
}

/// The problems of an object, as text.
fn problems(converted: &Converted) -> Vec<String> {
    converted.problems.iter().map(ToString::to_string).collect()
}

/// The value of an update as JSON; null for a removal.
#[track_caller]
fn value_of(update: &Update) -> Value {
    let json = serde_json::to_value(update).unwrap();
    match json.as_object().and_then(|fields| fields.values().next()) {
        Some(Value::Array(key_and_value)) => key_and_value[1].clone(),
        other => panic!("{other:?} is not a key with a value"),
    }
}

#[test]
fn other_kinds_give_no_updates() {
    let mut converter = Converter::new();
    for kind in [
        Kind::BgpFilter,
        Kind::BlockAffinity,
        Kind::CalicoNodeStatus,
        Kind::IpamConfiguration,
        Kind::IpamHandle,
        Kind::IpReservation,
        Kind::KubeControllersConfiguration,
    ] {
        assert_eq!(
            converter.set(&resource(kind, "", "a", &json!({}))),
            Converted::default()
        );
        assert_eq!(converter.remove(kind, "", "a"), []);
    }
}

/// Every kind that gives an update when it is set gives one for the same key when it is removed.
#[test]
fn what_was_set_is_removed() {
    let specs = [
        (Kind::IpPool, json!({"cidr": "10.0.0.0/16"})),
        (Kind::IpamBlock, json!({"cidr": "10.0.0.0/26"})),
        (
            Kind::HostEndpoint,
            json!({"node": "n", "interfaceName": "eth0"}),
        ),
        (
            Kind::WorkloadEndpoint,
            json!({"ipNetworks": ["10.0.0.1"], "interfaceName": "cali1"}),
        ),
    ];
    let mut counted = 0;
    for &kind in Kind::ALL {
        let namespace = if kind.is_namespaced() { "ns" } else { "" };
        let name = match kind {
            Kind::WorkloadEndpoint => "n-k8s-pod-eth0",
            _ => "default",
        };
        let spec = specs.iter().find(|(other, _)| *other == kind);
        let spec = spec.map_or(json!({}), |(_, spec)| spec.clone());
        let mut converter = Converter::new();
        let set = converter.set(&resource(kind, namespace, name, &spec));
        assert_eq!(set.problems, [], "{kind}");
        let removed = converter.remove(kind, namespace, name);
        let keys = |updates: &[Update]| -> Vec<String> {
            let without_value = |update: &Update| {
                let mut json = serde_json::to_value(update).unwrap();
                for value in json.as_object_mut().unwrap().values_mut() {
                    match value {
                        Value::Array(key_and_value) => key_and_value[1] = Value::Null,
                        other => *other = Value::Null,
                    }
                }
                json.to_string()
            };
            updates.iter().map(without_value).collect()
        };
        assert_eq!(keys(&set.updates), keys(&removed), "{kind}");
        for update in &removed {
            let json = serde_json::to_value(update).unwrap();
            assert_eq!(
                keys(std::slice::from_ref(update)),
                [json.to_string()],
                "{kind}"
            );
        }
        counted += set.updates.len();
    }
    assert_eq!(counted, 19);
}
