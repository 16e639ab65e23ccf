//! What a server says about itself: its version, its groups, and the resources of each.
//!
//! Clients ask for one document for each group, or for all groups at once ("aggregated"). Both are given.

mod aggregated;

pub use aggregated::{Aggregation, aggregated_core, aggregated_groups};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::registry::{Content, Native, Registry, ResourceType};

/// The version of Kubernetes whose conventions and types are served.
const KUBERNETES: (u32, u32, u32) = (1, 36, 0);

/// What can be done with the observed state of an object.
const STATUS_VERBS: &[&str] = &["get", "patch", "update"];

/// Group, version and kind of what asks for a token.
const TOKEN_REQUEST: (&str, &str, &str) = ("authentication.k8s.io", "v1", "TokenRequest");

pub fn version() -> Value {
    let (major, minor, _) = KUBERNETES;
    json!({
        "major": major.to_string(),
        "minor": minor.to_string(),
        "gitVersion": git_version(),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
    })
}

/// The version of Kubernetes, with ours as build metadata.
pub(crate) fn git_version() -> String {
    let (major, minor, patch) = KUBERNETES;
    format!(
        "v{major}.{minor}.{patch}+tortie.{}",
        env!("CARGO_PKG_VERSION")
    )
}

/// The processor, as Kubernetes spells it.
fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `/api`: the versions of the core group. Nothing if the group is not served.
pub fn core_versions(registry: &Registry) -> Option<Value> {
    let versions: Vec<_> = versions_of(registry, "").collect();
    (!versions.is_empty()).then(|| {
        json!({
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [],
        })
    })
}

/// `/apis`: all groups but the core group.
pub fn groups(registry: &Registry) -> Value {
    let groups: Vec<_> = group_names(registry)
        .into_iter()
        .map(|group| describe_group(registry, group))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`. Nothing if the group is not served.
pub fn group(registry: &Registry, group: &str) -> Option<Value> {
    let group = group_names(registry)
        .into_iter()
        .find(|known| *known == group)?;
    let mut result = describe_group(registry, group);
    result["kind"] = json!("APIGroup");
    result["apiVersion"] = json!("v1");
    Some(result)
}

/// `/api/VERSION` and `/apis/GROUP/VERSION`: the resources of a group. Nothing if there are none.
pub fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<_> = registry
        .in_group(group, version)
        .flat_map(describe_resource)
        .collect();
    (!resources.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version(group, version),
            "resources": resources,
        })
    })
}

fn versions_of<'a>(registry: &Registry, group: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    let groups = registry.groups().into_iter();
    groups
        .filter(move |(name, _)| *name == group)
        .map(|(_, version)| version)
}

fn group_names(registry: &Registry) -> Vec<&'static str> {
    let groups = registry.groups().into_iter();
    let mut names: Vec<_> = groups
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty())
        .collect();
    names.dedup();
    names
}

fn describe_group(registry: &Registry, group: &str) -> Value {
    let versions: Vec<_> = versions_of(registry, group)
        .map(|version| json!({"groupVersion": group_version(group, version), "version": version}))
        .collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

/// The entry of a resource, and those of its parts that are written apart.
fn describe_resource(resource: &ResourceType) -> impl Iterator<Item = Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs(),
    });
    if resource.is_stored() {
        main["storageVersionHash"] = json!(storage_version_hash(resource));
    }
    if !resource.short_names.is_empty() {
        main["shortNames"] = json!(resource.short_names);
    }
    if !categories(resource).is_empty() {
        main["categories"] = json!(categories(resource));
    }
    let status = resource.has_status.then(|| {
        json!({
            "name": format!("{}/status", resource.plural),
            "singularName": "",
            "namespaced": resource.is_namespaced,
            "kind": resource.kind,
            "verbs": STATUS_VERBS,
        })
    });
    let token = resource.has_tokens().then(|| {
        json!({
            "name": format!("{}/token", resource.plural),
            "singularName": "",
            "namespaced": resource.is_namespaced,
            "group": TOKEN_REQUEST.0,
            "version": TOKEN_REQUEST.1,
            "kind": TOKEN_REQUEST.2,
            "verbs": ["create"],
        })
    });
    [Some(main), status, token].into_iter().flatten()
}

/// The words for several resources at once, such as in `kubectl get all`, that a resource goes by.
fn categories(resource: &ResourceType) -> &'static [&'static str] {
    match resource.content {
        Content::Native(Native::Pod | Native::Service) => &["all"],
        _ => &[],
    }
}

/// What changes when objects are stored in another version, computed as Kubernetes does.
fn storage_version_hash(resource: &ResourceType) -> String {
    let text = format!("{}/{}/{}", resource.group, resource.version, resource.kind);
    STANDARD.encode(&Sha256::digest(text)[..8])
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

#[cfg(test)]
mod tests;
