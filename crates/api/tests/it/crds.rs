//! The printed CRDs against Calico's own: field names, types, enums and required fields.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use tortie_api::crd::{Group, manifests};

/// Calico's manifests of one group, by plural.
fn expected(folder: &Path, group: Group) -> BTreeMap<String, Value> {
    let suffix = format!("{}_", group.name());
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(&suffix)
        })
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let crd: Value = serde_saphyr::from_str(&text).unwrap();
            (
                crd["spec"]["names"]["plural"].as_str().unwrap().to_owned(),
                crd,
            )
        })
        .collect()
}

fn strings(value: &Value) -> BTreeSet<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect()
}

fn compare(path: &str, ours: &Value, theirs: &Value, differences: &mut Vec<String>) {
    for keyword in ["type", "nullable", "x-kubernetes-int-or-string", "default"] {
        if ours[keyword] != theirs[keyword] {
            differences.push(format!(
                "{path}: {keyword} is {}, not {}",
                ours[keyword], theirs[keyword]
            ));
        }
    }
    for keyword in ["enum", "required"] {
        if strings(&ours[keyword]) != strings(&theirs[keyword]) {
            differences.push(format!(
                "{path}: {keyword} is {}, not {}",
                ours[keyword], theirs[keyword]
            ));
        }
    }
    let fields = |schema: &Value| -> BTreeMap<String, Value> {
        schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    let (our_fields, their_fields) = (fields(ours), fields(theirs));
    for name in our_fields
        .keys()
        .chain(their_fields.keys())
        .collect::<BTreeSet<_>>()
    {
        let path = format!("{path}.{name}");
        match (our_fields.get(name), their_fields.get(name)) {
            (Some(ours), Some(theirs)) => compare(&path, ours, theirs, differences),
            (Some(_), None) => differences.push(format!("{path}: only ours")),
            (None, _) => differences.push(format!("{path}: missing")),
        }
    }
    for (keyword, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if ours[keyword].is_object() || theirs[keyword].is_object() {
            compare(
                &format!("{path}{step}"),
                &ours[keyword],
                &theirs[keyword],
                differences,
            );
        }
    }
}

fn check(group: Group) {
    let folder = tortie_testkit::calico_folder().join(match group {
        Group::V3 => "crds-v3",
        Group::V1 => "crds-v1",
    });
    let expected = expected(&folder, group);
    assert!(!expected.is_empty(), "no manifests in {}", folder.display());
    let ours: BTreeMap<String, Value> = manifests(group)
        .into_iter()
        .map(|crd| {
            (
                crd["spec"]["names"]["plural"].as_str().unwrap().to_owned(),
                crd,
            )
        })
        .collect();
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    let mut differences = Vec::new();
    for (plural, theirs) in &expected {
        let ours = &ours[plural];
        for pointer in [
            "/metadata/name",
            "/spec/group",
            "/spec/scope",
            "/spec/names",
            "/spec/versions/0/name",
        ] {
            if ours.pointer(pointer) != theirs.pointer(pointer) {
                differences.push(format!(
                    "{plural}: {pointer} is {:?}, not {:?}",
                    ours.pointer(pointer),
                    theirs.pointer(pointer)
                ));
            }
        }
        let schema = |crd: &Value| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        compare(plural, &schema(ours), &schema(theirs), &mut differences);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_v3_group_agrees_with_calico() {
    check(Group::V3);
}

#[test]
fn the_v1_group_agrees_with_calico() {
    check(Group::V1);
}
