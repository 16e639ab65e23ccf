//! Roles and bindings of Kubernetes, by the rules that its API server has for them.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use super::kubernetes::{NameRule, check_name, check_selector};
use crate::problem::{Path, Problems};

/// The group of roles, of bindings, and of the users and groups that bindings name.
pub const ROLE_GROUP: &str = "rbac.authorization.k8s.io";

/// Notes what is wrong with a role of a namespace, beyond its metadata and the types of its fields.
pub fn check_role(role: &Role, problems: &mut Problems) {
    check_rules(role.rules.as_deref(), true, problems);
}

/// Notes what is wrong with a role of the cluster.
pub fn check_cluster_role(role: &ClusterRole, problems: &mut Problems) {
    check_rules(role.rules.as_deref(), false, problems);
    let Some(aggregation) = &role.aggregation_rule else {
        return;
    };
    let root = Path::ROOT;
    let at = root.field("aggregationRule");
    let at = at.field("clusterRoleSelectors");
    let selectors = aggregation.cluster_role_selectors.as_deref();
    let selectors = selectors.unwrap_or_default();
    if selectors.is_empty() {
        problems.add_missing(
            &at,
            "must have at least one where there is an aggregationRule",
        );
    }
    for (index, selector) in selectors.iter().enumerate() {
        check_selector(&at.index(index), Some(selector), problems);
    }
}

/// Notes what is wrong with a binding in a namespace.
pub fn check_role_binding(binding: &RoleBinding, problems: &mut Problems) {
    check_reference(&binding.role_ref, &["Role", "ClusterRole"], problems);
    check_subjects(binding.subjects.as_deref(), true, problems);
}

/// Notes what is wrong with a binding for the whole cluster.
pub fn check_cluster_role_binding(binding: &ClusterRoleBinding, problems: &mut Problems) {
    check_reference(&binding.role_ref, &["ClusterRole"], problems);
    check_subjects(binding.subjects.as_deref(), false, problems);
}

fn check_rules(rules: Option<&[PolicyRule]>, is_namespaced: bool, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("rules");
    for (index, rule) in rules.unwrap_or_default().iter().enumerate() {
        check_rule(&at.index(index), rule, is_namespaced, problems);
    }
}

fn check_rule(at: &Path<'_>, rule: &PolicyRule, is_namespaced: bool, problems: &mut Problems) {
    let has = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    if rule.verbs.is_empty() {
        problems.add_missing(&at.field("verbs"), "must have at least one value");
    }
    if has(&rule.non_resource_urls) {
        let at = at.field("nonResourceURLs");
        if is_namespaced {
            let text = "must not be given in a namespace: namespaced rules cannot apply to non-resource URLs";
            problems.add(&at, &rule.non_resource_urls, text);
        }
        if has(&rule.api_groups) || has(&rule.resources) || has(&rule.resource_names) {
            let text = "must stand alone: rules cannot apply to both regular resources and non-resource URLs";
            problems.add(&at, &rule.non_resource_urls, text);
        }
        return;
    }
    for (field, list, what) in [
        ("apiGroups", &rule.api_groups, "api group"),
        ("resources", &rule.resources, "resource"),
    ] {
        if !has(list) {
            let text = format!("must be given: resource rules must supply at least one {what}");
            problems.add_missing(&at.field(field), text);
        }
    }
}

fn check_reference(reference: &RoleRef, kinds: &[&str], problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("roleRef");
    if reference.api_group.as_deref() != Some(ROLE_GROUP) {
        let text = format!("must be {ROLE_GROUP}");
        problems.add(&at.field("apiGroup"), &reference.api_group, text);
    }
    if !kinds.contains(&reference.kind.as_str()) {
        let text = format!("must be {}", kinds.join(" or "));
        problems.add(&at.field("kind"), &reference.kind, text);
    }
    check_name(
        &at.field("name"),
        &reference.name,
        NameRule::PathSegment,
        problems,
    );
}

fn check_subjects(subjects: Option<&[Subject]>, is_namespaced: bool, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("subjects");
    for (index, subject) in subjects.unwrap_or_default().iter().enumerate() {
        check_subject(&at.index(index), subject, is_namespaced, problems);
    }
}

fn check_subject(at: &Path<'_>, subject: &Subject, is_namespaced: bool, problems: &mut Problems) {
    let group = subject.api_group.as_deref().unwrap_or_default();
    let group_at = at.field("apiGroup");
    match subject.kind.as_str() {
        "User" | "Group" => {
            if subject.name.is_empty() {
                problems.add_missing(&at.field("name"), "must be given");
            }
            if group != ROLE_GROUP {
                problems.add(&group_at, group, format!("must be {ROLE_GROUP}"));
            }
        }
        "ServiceAccount" => {
            check_name(
                &at.field("name"),
                &subject.name,
                NameRule::Subdomain,
                problems,
            );
            if !group.is_empty() {
                problems.add(&group_at, group, "must be empty for a ServiceAccount");
            }
            if !is_namespaced && subject.namespace.as_deref().unwrap_or_default().is_empty() {
                problems.add_missing(&at.field("namespace"), "must be given for a ServiceAccount");
            }
        }
        other => problems.add(
            &at.field("kind"),
            other,
            "must be User, Group or ServiceAccount",
        ),
    }
}
