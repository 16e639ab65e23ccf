use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResourceList, APIVersions,
};

use super::*;

#[test]
fn documents_are_what_clients_read() {
    let registry = Registry::standalone();
    let versions: APIVersions = serde_json::from_value(core_versions(&registry).unwrap()).unwrap();
    assert_eq!(versions.versions, ["v1"]);
    let list: APIGroupList = serde_json::from_value(groups(&registry)).unwrap();
    assert_eq!(list.groups.len(), registry.groups().len() - 1);
    for found in list.groups {
        let one = group(&registry, &found.name).unwrap();
        let one: APIGroup = serde_json::from_value(one).unwrap();
        assert_eq!(one, found);
        assert_eq!(one.preferred_version.as_ref(), one.versions.first());
    }
    for (group, version) in registry.groups() {
        let list = resources(&registry, group, version).unwrap();
        let list: APIResourceList = serde_json::from_value(list).unwrap();
        let types: Vec<_> = registry.in_group(group, version).collect();
        assert_eq!(list.group_version, types[0].api_version());
        let status = types.iter().filter(|found| found.has_status).count();
        let tokens = types.iter().filter(|found| found.has_tokens()).count();
        assert_eq!(list.resources.len(), types.len() + status + tokens);
    }
}

#[test]
fn what_is_not_served_has_no_document() {
    let registry = Registry::aggregated();
    assert_eq!(core_versions(&registry), None);
    assert_eq!(group(&registry, "networking.k8s.io"), None);
    assert_eq!(group(&registry, ""), None);
    assert_eq!(resources(&registry, "", "v1"), None);
    assert_eq!(resources(&registry, "projectcalico.org", "v1"), None);
    let core = aggregated_core(&registry, Aggregation::V2);
    assert_eq!(core["items"], json!([]));
    let groups = aggregated_groups(&registry, Aggregation::V2);
    assert_eq!(groups["items"][0]["metadata"]["name"], "projectcalico.org");
    assert_eq!(groups["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_resource_has_its_words_and_its_status() {
    let registry = Registry::standalone();
    let list = resources(&registry, "", "v1").unwrap();
    let list = list["resources"].as_array().unwrap();
    let find = |name: &str| list.iter().find(|found| found["name"] == name).unwrap();
    let pods = find("pods");
    assert_eq!(pods["shortNames"], json!(["po"]));
    assert_eq!(pods["categories"], json!(["all"]));
    // As every server of Kubernetes says.
    assert_eq!(pods["storageVersionHash"], "xPOwRZ+Yhw8=");
    assert_eq!(
        find("pods/status")["verbs"],
        json!(["get", "patch", "update"])
    );
    assert!(
        !list
            .iter()
            .any(|found| found["name"] == "configmaps/status")
    );
}

#[test]
fn both_forms_name_the_same_resources() {
    let registry = Registry::standalone();
    let document = aggregated_groups(&registry, Aggregation::V2Beta1);
    assert_eq!(document["apiVersion"], "apidiscovery.k8s.io/v2beta1");
    let core = aggregated_core(&registry, Aggregation::V2);
    let mut seen = 0;
    for item in [&document, &core]
        .into_iter()
        .flat_map(|list| list["items"].as_array().unwrap())
    {
        let group = item["metadata"]["name"].as_str().unwrap_or_default();
        for version in item["versions"].as_array().unwrap() {
            for found in version["resources"].as_array().unwrap() {
                let plural = found["resource"].as_str().unwrap();
                let resource = registry.find(group, version["version"].as_str().unwrap(), plural);
                let resource = resource.unwrap();
                assert_eq!(found["responseKind"]["kind"], resource.kind);
                assert_eq!(found["scope"] == "Namespaced", resource.is_namespaced);
                let has_parts = resource.has_status || resource.has_tokens();
                assert_eq!(found.get("subresources").is_some(), has_parts);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, registry.types().len());
}

#[test]
fn the_version_is_that_of_kubernetes_with_ours_behind() {
    let version = version();
    assert_eq!(version["major"], "1");
    let ours = version["gitVersion"]
        .as_str()
        .unwrap()
        .strip_prefix("v1.36.0+tortie.");
    assert_eq!(ours, Some(env!("CARGO_PKG_VERSION")));
}
