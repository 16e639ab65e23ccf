use std::collections::BTreeSet;

use prost::Message as _;

use super::*;

fn registries() -> [Registry; 2] {
    [Registry::standalone(), Registry::aggregated()]
}

fn v3_documents(registry: &Registry) -> Vec<Value> {
    let groups = registry.groups().into_iter();
    groups
        .map(|(group, version)| v3_document(registry, group, version))
        .collect()
}

/// Calls a function for each object anywhere in a value.
fn each_object(value: &Value, look: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            look(fields);
            for field in fields.values() {
                each_object(field, look);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_object(item, look)),
        _ => {}
    }
}

/// Calls a function for each schema in a document of version 2.
fn each_schema(document: &Value, look: &mut impl FnMut(&Map<String, Value>)) {
    fn walk(schema: &Value, look: &mut impl FnMut(&Map<String, Value>)) {
        let fields = schema.as_object().expect("schemas are objects");
        look(fields);
        let mut copy = fields.clone();
        let mut below = Vec::new();
        schema::each_below(&mut copy, &mut |schema| below.push(schema.clone()));
        for schema in below {
            walk(&schema, look);
        }
    }
    let definitions = document["definitions"].as_object().unwrap();
    for schema in definitions.values() {
        walk(schema, look);
    }
}

#[track_caller]
fn check_references(document: &Value) {
    each_object(document, &mut |fields| {
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').expect("references are local");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    });
}

#[test]
fn references_resolve() {
    for registry in registries() {
        check_references(&v2_document(&registry));
        v3_documents(&registry).iter().for_each(check_references);
    }
}

fn kinds_in(definitions: &Value) -> BTreeSet<(String, String, String)> {
    let definitions = definitions.as_object().unwrap().values();
    let kinds = definitions.filter_map(|found| found["x-kubernetes-group-version-kind"].as_array());
    kinds
        .flatten()
        .map(|kind| {
            let text = |name: &str| kind[name].as_str().unwrap().to_owned();
            (text("group"), text("version"), text("kind"))
        })
        .collect()
}

#[test]
fn every_kind_and_its_list_has_a_definition() {
    for registry in registries() {
        let v2 = kinds_in(&v2_document(&registry)["definitions"]);
        for (group, version) in registry.groups() {
            let document = v3_document(&registry, group, version);
            let v3 = kinds_in(&document["components"]["schemas"]);
            for found in registry.in_group(group, version) {
                let list = found.is_stored().then(|| format!("{}List", found.kind));
                for kind in std::iter::once(found.kind.to_owned()).chain(list) {
                    let key = (group.to_owned(), version.to_owned(), kind);
                    assert!(v2.contains(&key) && v3.contains(&key), "{key:?}");
                }
            }
        }
    }
}

#[test]
fn version_2_holds_only_what_kubectl_reads() {
    let document = v2_document(&Registry::standalone());
    each_schema(&document, &mut |schema| {
        for (keyword, value) in schema {
            let is_known = protobuf::KEYWORDS.contains(&keyword.as_str());
            assert!(is_known || keyword.starts_with("x-"), "{keyword}: {value}");
        }
        let kind = schema.get("type");
        if let Some(kind) = kind {
            let known = ["array", "boolean", "integer", "number", "object", "string"];
            assert!(known.contains(&kind.as_str().unwrap()), "{schema:?}");
        }
        assert_eq!(
            kind == Some(&json!("array")),
            schema.contains_key("items"),
            "{schema:?}"
        );
        if schema.contains_key("$ref") {
            assert!(
                kind.is_none() && !schema.contains_key("properties"),
                "{schema:?}"
            );
        }
    });
}

#[test]
fn ports_are_numbers_or_names_in_both_versions() {
    let registry = Registry::standalone();
    let v2 = v2_document(&registry);
    let port = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    assert_eq!(v2["definitions"][port]["type"], "string");
    assert_eq!(v2["definitions"][port]["format"], "int-or-string");
    let v3 = v3_document(&registry, "networking.k8s.io", "v1");
    let port = &v3["components"]["schemas"][port];
    assert_eq!(
        port["oneOf"],
        json!([{"type": "integer"}, {"type": "string"}])
    );
    assert_eq!(port["type"], Value::Null);
}

#[test]
fn what_is_said_beside_a_reference_is_kept_in_both_versions() {
    let registry = Registry::aggregated();
    let tier = "org.projectcalico.v3.Tier";
    let v2 = v2_document(&registry);
    let metadata = &v2["definitions"][tier]["properties"]["metadata"];
    assert!(metadata["$ref"].is_string() && metadata["description"].is_string());
    let v3 = v3_document(&registry, "projectcalico.org", "v3");
    let metadata = &v3["components"]["schemas"][tier]["properties"]["metadata"];
    assert!(metadata["allOf"][0]["$ref"].is_string() && metadata["description"].is_string());
    assert_eq!(metadata.get("$ref"), None);
}

#[test]
fn a_patch_names_its_parameters_itself() {
    let registry = Registry::standalone();
    let v2 = v2_document(&registry);
    let mut patches = BTreeSet::new();
    for item in v2["paths"].as_object().unwrap().values() {
        let Some(patch) = item.get("patch") else {
            continue;
        };
        let parameters = patch["parameters"].as_array().unwrap();
        for name in ["dryRun", "fieldManager", "force"] {
            let found = parameters.iter().find(|found| found["name"] == name);
            assert_eq!(found.unwrap()["in"], "query");
        }
        let kind = &patch["x-kubernetes-group-version-kind"];
        patches.insert((kind["group"].to_string(), kind["kind"].to_string()));
    }
    let stored = registry.types().iter().filter(|found| found.is_stored());
    assert_eq!(patches.len(), stored.count());
}

#[test]
fn operations_have_names_of_their_own() {
    let v2 = v2_document(&Registry::standalone());
    let mut seen = BTreeSet::new();
    each_object(&v2["paths"], &mut |fields| {
        if let Some(id) = fields.get("operationId").and_then(Value::as_str) {
            assert!(seen.insert(id.to_owned()), "{id}");
        }
    });
    assert!(seen.contains("listCoreV1NamespacedPod"));
    assert!(seen.contains("listCoreV1PodForAllNamespaces"));
    assert!(seen.contains("patchProjectcalicoOrgV3TierStatus"));
}

#[test]
fn lists_say_how_they_are_merged() {
    let v2 = v2_document(&Registry::standalone());
    let field =
        |definition: &str, field: &str| v2["definitions"][definition]["properties"][field].clone();
    let containers = field("io.k8s.api.core.v1.PodSpec", "containers");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    let ports = field("io.k8s.api.core.v1.Container", "ports");
    assert_eq!(
        ports["x-kubernetes-list-map-keys"],
        json!(["containerPort", "protocol"])
    );
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(field(meta, "finalizers")["x-kubernetes-list-type"], "set");
    let tolerations = field("io.k8s.api.core.v1.PodSpec", "tolerations");
    assert_eq!(tolerations["x-kubernetes-patch-merge-key"], Value::Null);
}

#[test]
fn protobuf_says_what_json_says() {
    for registry in registries() {
        let document = v2_document(&registry);
        let bytes = v2(&registry).protobuf.bytes;
        let read = messages::Document::decode(bytes.as_slice()).unwrap();
        assert_eq!(read, protobuf::message(&document));
        let definitions = read.definitions.unwrap().additional_properties;
        assert_eq!(
            definitions.len(),
            document["definitions"].as_object().unwrap().len()
        );
        let tier = definitions
            .iter()
            .find(|found| found.name.ends_with(".v3.Tier"));
        let tier = tier.unwrap().value.as_ref().unwrap();
        let kind = tier
            .vendor_extension
            .iter()
            .find(|found| found.name.ends_with("-kind"));
        let kind: Value =
            serde_json::from_str(&kind.unwrap().value.as_ref().unwrap().yaml).unwrap();
        assert_eq!(
            kind,
            json!([{"group": "projectcalico.org", "version": "v3", "kind": "Tier"}])
        );
        let paths = read.paths.unwrap().path;
        assert_eq!(paths.len(), document["paths"].as_object().unwrap().len());
    }
}

#[test]
fn the_index_leads_to_each_document_by_its_hash() {
    let registry = Registry::standalone();
    let v3 = v3(&registry);
    let index: Value = serde_json::from_slice(&v3.index.bytes).unwrap();
    let core = v3.group("", "v1").unwrap();
    let url = format!("/openapi/v3/api/v1?hash={}", core.hash);
    assert_eq!(index["paths"]["api/v1"]["serverRelativeURL"], url);
    assert_eq!(
        index["paths"].as_object().unwrap().len(),
        registry.groups().len()
    );
    assert_eq!(v3.group("projectcalico.org", "v1"), None);
}

/// All documents of a server stay in memory.
#[test]
fn documents_are_small() {
    let registry = Registry::standalone();
    let (v2, v3) = (v2(&registry), v3(&registry));
    let groups: usize = v3
        .groups
        .iter()
        .map(|(_, _, found)| found.bytes.len())
        .sum();
    let sizes = [v2.json.bytes.len(), v2.protobuf.bytes.len(), groups];
    assert!(sizes.iter().sum::<usize>() < 3_200_000, "{sizes:?}");
}
