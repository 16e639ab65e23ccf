//! Inputs of a few resources.

use std::path::Path;
use std::{fs, str};

use serde_json::Value;
use tortie_api::{Resource, yaml};
use tortie_bgp::{Identity, Inputs, Update};

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
    documents.iter_mut().for_each(read_keys_as_yaml_1_1);
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

/// The answers were recorded with a reader of YAML 1.1, to which a label `n` is called `false`.
fn read_keys_as_yaml_1_1(document: &mut Value) {
    let Some(Value::Object(labels)) = document.pointer_mut("/metadata/labels") else {
        return;
    };
    for (names, meant) in [(["n", "no", "off"], "false"), (["y", "yes", "on"], "true")] {
        for name in names {
            if let Some(value) = labels.remove(name) {
                labels.insert(meant.to_owned(), value);
            }
        }
    }
}
