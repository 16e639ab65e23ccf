//! What one rule of a role allows.

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::access::Attributes;

/// Stands for all verbs, groups, resources or paths.
pub(super) const ALL: &str = "*";

/// What is to be done: with objects, or with a document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action<'a> {
    Objects(&'a Attributes<'a>),
    Path { verb: &'a str, path: &'a str },
}

impl Action<'_> {
    /// The namespace whose bindings count beside those of the cluster.
    pub(super) fn namespace(&self) -> Option<&str> {
        match self {
            Self::Objects(attributes) => attributes.namespace,
            Self::Path { .. } => None,
        }
    }
}

/// Whether a rule allows something.
pub(super) fn allows(rule: &PolicyRule, action: Action<'_>) -> bool {
    match action {
        Action::Objects(attributes) => {
            has(&rule.verbs, attributes.verb)
                && has(list(rule.api_groups.as_deref()), attributes.group)
                && allows_resource(
                    list(rule.resources.as_deref()),
                    attributes.resource,
                    attributes.subresource,
                )
                && allows_name(list(rule.resource_names.as_deref()), attributes.name)
        }
        Action::Path { verb, path } => {
            let paths = list(rule.non_resource_urls.as_deref());
            has(&rule.verbs, verb) && paths.iter().any(|own| is_path_within(own, path))
        }
    }
}

/// A list that may be left out.
pub(super) fn list(list: Option<&[String]>) -> &[String] {
    list.unwrap_or_default()
}

/// Whether a path is one that a rule names: the same, or below what ends in `*`.
pub(super) fn is_path_within(own: &str, path: &str) -> bool {
    let is_below = || own.ends_with(ALL) && path.starts_with(own.trim_end_matches('*'));
    own == path || is_below()
}

/// Whether a list has a word, or stands for all.
fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|own| own == ALL || own == word)
}

/// A resource is named as it is, or as a part of all resources, such as `*/status`. As in Kubernetes, `pods/*` is no
/// pattern.
fn allows_resource(resources: &[String], resource: &str, subresource: &str) -> bool {
    let is_part_of = |own: &str, resource: &str| {
        let part = own.strip_prefix(resource);
        part.and_then(|part| part.strip_prefix('/')) == Some(subresource)
    };
    resources.iter().any(|own| match subresource {
        _ if own == ALL => true,
        "" => own == resource,
        _ => is_part_of(own, resource) || is_part_of(own, ALL),
    })
}

fn allows_name(names: &[String], name: Option<&str>) -> bool {
    let name = name.unwrap_or_default();
    names.is_empty() || names.iter().any(|own| own == name)
}
