//! What clients send to the API server: no bytes make it panic, as an object in protobuf, a patch of one, or a selector.

use serde_json::{Value, json};
use tortie_apiserver::patch::Patch;
use tortie_apiserver::protobuf;
use tortie_apiserver::selector::{FieldSelector, LabelSelector};
use tortie_apiserver::structure::Structure;

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    let object = protobuf::decode(data).unwrap_or_else(|_| json!({"metadata": {"name": "a"}}));
    // The bytes as a Pod, which chance would hardly find.
    let mut pod = b"k8s\0\x0a\x05\x12\x03Pod".to_vec();
    pod.push(0x12);
    let mut length = data.len();
    while length > 0x7f {
        pod.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    pod.push(length.to_le_bytes()[0]);
    pod.extend(data);
    let pod = protobuf::decode(&pod).unwrap_or(object);
    patch(&pod, data);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = LabelSelector::parse(text);
        let _ = FieldSelector::parse(text, &["metadata.name"]);
    }
}

fn patch(object: &Value, data: &[u8]) {
    let structure = Structure::of("", "Pod");
    for media_type in [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ] {
        if let Ok(patch) = Patch::parse(media_type, data) {
            let _ = patch.apply(object, structure);
        }
    }
}
