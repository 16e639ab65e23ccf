//! The chart beside Helm, kustomize and a real API server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod helm;
mod kube;
mod kustomize;

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tortie_install::{Chart, Release, Rendered, Values};

const NAMESPACE: &str = "tortie-system";

fn deploy(path: &str) -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    PathBuf::from(root).join(path)
}

fn render(fields: &[&str]) -> Rendered {
    let values = Values::new([], fields.iter().copied()).unwrap();
    let release = Release {
        namespace: NAMESPACE.to_owned(),
    };
    Chart::new().unwrap().render(&values, &release).unwrap()
}

/// What a program prints.
#[track_caller]
fn output(command: &mut Command) -> String {
    let ran = command.output();
    let ran =
        ran.unwrap_or_else(|error| panic!("{command:?}: {error}; setup/test-deps installs it"));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {said}");
    String::from_utf8(ran.stdout).unwrap()
}

/// Objects in an order of their own, without what tells a rendering from another.
fn comparable<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Vec<(String, Value)> {
    let mut all: Vec<_> = objects
        .into_iter()
        .map(|object| {
            let mut object = object.clone();
            let digest = "/spec/template/metadata/annotations/tortie~1values";
            if let Some(digest) = object.pointer_mut(digest) {
                assert_eq!(digest.as_str().unwrap().len(), 64);
                *digest = Value::Null;
            }
            let [kind, name, namespace] = ["/kind", "/metadata/name", "/metadata/namespace"]
                .map(|field| object.pointer(field).and_then(Value::as_str).unwrap_or(""));
            (format!("{kind} {namespace}/{name}"), object)
        })
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

#[track_caller]
fn assert_same(ours: &[(String, Value)], others: &[(String, Value)]) {
    let names = |all: &[(String, Value)]| all.iter().map(|one| one.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(ours), names(others));
    for ((name, ours), (_, others)) in ours.iter().zip(others) {
        assert_eq!(ours, others, "{name}");
    }
}
