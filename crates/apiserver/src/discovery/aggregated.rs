//! All groups with all their resources in one document.

use serde_json::{Value, json};

use super::{STATUS_VERBS, TOKEN_REQUEST, categories, group_names, versions_of};
use crate::registry::{Registry, ResourceType};

/// Which version of `apidiscovery.k8s.io` is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregation {
    /// `v2`, since Kubernetes 1.30.
    V2,
    /// `v2beta1`, which says the same.
    V2Beta1,
}

impl Aggregation {
    /// The version in the media type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V2Beta1 => "v2beta1",
        }
    }
}

/// `/api` for clients that accept an `APIGroupDiscoveryList`.
pub fn aggregated_core(registry: &Registry, aggregation: Aggregation) -> Value {
    let is_served = versions_of(registry, "").next().is_some();
    list(registry, is_served.then_some(""), aggregation)
}

/// `/apis` for clients that accept an `APIGroupDiscoveryList`.
pub fn aggregated_groups(registry: &Registry, aggregation: Aggregation) -> Value {
    list(registry, group_names(registry), aggregation)
}

fn list(
    registry: &Registry,
    groups: impl IntoIterator<Item = &'static str>,
    aggregation: Aggregation,
) -> Value {
    let items: Vec<_> = groups
        .into_iter()
        .map(|group| describe_group(registry, group))
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{}", aggregation.as_str()),
        "metadata": {},
        "items": items,
    })
}

fn describe_group(registry: &Registry, group: &str) -> Value {
    let versions: Vec<_> = versions_of(registry, group)
        .map(|version| {
            let resources: Vec<_> = registry
                .in_group(group, version)
                .map(describe_resource)
                .collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = match group {
        "" => json!({}),
        name => json!({"name": name}),
    };
    json!({"metadata": metadata, "versions": versions})
}

fn describe_resource(resource: &ResourceType) -> Value {
    let kind = json!({
        "group": resource.group,
        "version": resource.version,
        "kind": resource.kind,
    });
    let scope = if resource.is_namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    let mut result = json!({
        "resource": resource.plural,
        "responseKind": kind,
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        result["shortNames"] = json!(resource.short_names);
    }
    if !categories(resource).is_empty() {
        result["categories"] = json!(categories(resource));
    }
    if resource.has_status {
        result["subresources"] =
            json!([{"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}]);
    }
    if resource.has_tokens() {
        let (group, version, kind) = TOKEN_REQUEST;
        let kind = json!({"group": group, "version": version, "kind": kind});
        result["subresources"] =
            json!([{"subresource": "token", "responseKind": kind, "verbs": ["create"]}]);
    }
    result
}
