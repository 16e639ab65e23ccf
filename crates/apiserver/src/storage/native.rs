//! What Kubernetes' own objects must look like, and what is filled in.

mod definition;
mod secret;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Namespace, Node, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event as NewEvent;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tortie_api::Problems;
use tortie_api::validate::{
    NameRule, ROLE_GROUP, check_cluster_role, check_cluster_role_binding,
    check_kubernetes_metadata, check_kubernetes_policy, check_role, check_role_binding,
};

use super::{Mode, services};
use crate::failure::{Failure, Result};
use crate::registry::{Content, Native, ResourceType};

/// The object as it is stored: with Kubernetes' defaults and without what its type does not have.
pub(super) fn checked(of: &ResourceType, mut object: Value, mode: Mode) -> Result<Value> {
    let Content::Native(native) = of.content else {
        return Ok(object);
    };
    complete(of, &mut object);
    let mut problems = Problems::default();
    let known = match native {
        Native::ClusterRole => known::<ClusterRole>(&object),
        Native::ClusterRoleBinding => known::<ClusterRoleBinding>(&object),
        Native::ConfigMap => known::<ConfigMap>(&object),
        Native::CustomResourceDefinition => known::<CustomResourceDefinition>(&object),
        Native::EndpointSlice => known::<EndpointSlice>(&object),
        Native::Event => known::<Event>(&object),
        Native::Lease => known::<Lease>(&object),
        Native::Namespace => known::<Namespace>(&object),
        Native::NetworkPolicy => known::<NetworkPolicy>(&object),
        Native::NewEvent => known::<NewEvent>(&object),
        Native::Node => known::<Node>(&object),
        Native::Pod => known::<Pod>(&object),
        Native::Role => known::<Role>(&object),
        Native::RoleBinding => known::<RoleBinding>(&object),
        Native::Secret => known::<Secret>(&object),
        Native::Service => known::<Service>(&object),
        Native::ServiceAccount => known::<ServiceAccount>(&object),
    };
    let known = known.map_err(|error| {
        Failure::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {error}",
            of.kind,
            of.api_version(),
            of.kind
        ))
    })?;
    if !mode.drops_unknown_fields {
        check_unknown(&object, &known)?;
    }
    check(native, &known, &mut problems);
    if problems.is_empty() {
        return Ok(known);
    }
    let name = known["metadata"]["name"].as_str().unwrap_or_default();
    Err(Failure::invalid(of.group, of.kind, name, &problems))
}

/// Fills in Kubernetes' defaults.
pub(super) fn complete(of: &ResourceType, object: &mut Value) {
    if let Content::Native(native) = of.content {
        fill_in(native, object);
    }
}

/// The object with the fields that its type has.
fn known<K: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, String> {
    let typed: K =
        serde_path_to_error::deserialize(object.clone()).map_err(|error| error.to_string())?;
    serde_json::to_value(&typed).map_err(|error| error.to_string())
}

fn check(native: Native, object: &Value, problems: &mut Problems) {
    let rule = match native {
        Native::Namespace | Native::Service => NameRule::Label,
        native if native.is_role_or_binding() => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    };
    let meta = serde_json::from_value(object["metadata"].clone()).unwrap_or_default();
    check_kubernetes_metadata(&meta, rule, problems);
    let root = tortie_api::Path::ROOT;
    let spec = root.field("spec");
    match native {
        Native::NetworkPolicy => check_kubernetes_policy(&typed(object), problems),
        Native::ClusterRole => check_cluster_role(&typed(object), problems),
        Native::ClusterRoleBinding => check_cluster_role_binding(&typed(object), problems),
        Native::Role => check_role(&typed(object), problems),
        Native::RoleBinding => check_role_binding(&typed(object), problems),
        Native::CustomResourceDefinition => definition::check(object, problems),
        Native::Event => check_event(object, "involvedObject", problems),
        Native::NewEvent => check_event(object, "regarding", problems),
        Native::Secret => secret::check(object, problems),
        Native::Service => services::check(object, problems),
        Native::Pod if is_empty(&object["spec"]["containers"]) => {
            problems.add_missing(&spec.field("containers"), "must name at least one");
        }
        Native::EndpointSlice => {
            let family = &object["addressType"];
            if !matches!(family.as_str(), Some("IPv4" | "IPv6" | "FQDN")) {
                problems.add(
                    &root.field("addressType"),
                    family,
                    "must be IPv4, IPv6 or FQDN",
                );
            }
        }
        _ => {}
    }
}

/// An event is in the namespace of what it is about, or in that for what is in none.
fn check_event(event: &Value, about: &str, problems: &mut Problems) {
    let of = event[about]["namespace"].as_str().unwrap_or_default();
    let of = if of.is_empty() { "default" } else { of };
    let own = event["metadata"]["namespace"].as_str();
    if own.is_some_and(|own| own != of && !(of == "default" && own == "kube-system")) {
        let root = tortie_api::Path::ROOT;
        let at = root.field(about);
        problems.add(&at.field("namespace"), of, "does not match event.namespace");
    }
}

/// What was written from this type.
fn typed<K: DeserializeOwned + Default>(object: &Value) -> K {
    serde_json::from_value(object.clone()).unwrap_or_default()
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

/// Kubernetes' defaults, as far as something here reads them. What is of a wrong type is left alone: it is refused later.
fn fill_in(native: Native, object: &mut Value) {
    if matches!(native, Native::ClusterRoleBinding | Native::RoleBinding) {
        return fill_in_role_group(object);
    }
    match native {
        Native::Secret => return secret::fill_in(object),
        Native::CustomResourceDefinition => return definition::fill_in(object),
        _ => {}
    }
    let Some(spec) = object.get_mut("spec") else {
        if native == Native::EndpointSlice {
            fill_in_protocols(object);
        }
        return;
    };
    match native {
        Native::NetworkPolicy => {
            for rules in ["ingress", "egress"] {
                items_mut(spec, rules).for_each(fill_in_protocols);
            }
            let mut types = vec!["Ingress"];
            if spec.get("egress").is_some_and(|rules| !is_empty(rules)) {
                types.push("Egress");
            }
            default(spec, "policyTypes", json!(types));
        }
        Native::Pod => {
            default(spec, "restartPolicy", json!("Always"));
            default(spec, "serviceAccountName", json!("default"));
            for containers in ["containers", "initContainers"] {
                items_mut(spec, containers).for_each(fill_in_protocols);
            }
        }
        Native::Service => {
            default(spec, "type", json!("ClusterIP"));
            default(spec, "sessionAffinity", json!("None"));
            if spec["type"] != "ExternalName" {
                default(spec, "internalTrafficPolicy", json!("Cluster"));
            }
            if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
                default(spec, "externalTrafficPolicy", json!("Cluster"));
            }
            if spec["type"] == "LoadBalancer" {
                default(spec, "allocateLoadBalancerNodePorts", json!(true));
            }
            fill_in_protocols(spec);
            for port in items_mut(spec, "ports") {
                if let Some(number) = port.get("port").cloned() {
                    default(port, "targetPort", number);
                }
            }
        }
        _ => {}
    }
}

fn fill_in_role_group(binding: &mut Value) {
    if let Some(reference) = binding.get_mut("roleRef") {
        default(reference, "apiGroup", json!(ROLE_GROUP));
    }
    for subject in items_mut(binding, "subjects") {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            default(subject, "apiGroup", json!(ROLE_GROUP));
        }
    }
}

fn fill_in_protocols(object: &mut Value) {
    for port in items_mut(object, "ports") {
        default(port, "protocol", json!("TCP"));
    }
}

/// The objects of a list in an object.
fn items_mut<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.get_mut(field).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

/// Sets a field that is missing or holds nothing.
fn default(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut()
        && fields.get(field).is_none_or(is_nothing)
    {
        fields.insert(field.to_owned(), value);
    }
}

/// Refuses what was written and is not in the type.
pub(crate) fn check_unknown(given: &Value, known: &Value) -> Result<()> {
    let mut unknown = Vec::new();
    collect_unknown(given, known, "", &mut unknown);
    if unknown.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    Err(Failure::bad_request(format!(
        "strict decoding error: {}",
        texts.join(", ")
    )))
}

pub(super) fn collect_unknown(given: &Value, known: &Value, path: &str, unknown: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (field, value) in given {
                let path = if path.is_empty() {
                    field.clone()
                } else {
                    format!("{path}.{field}")
                };
                match known.get(field) {
                    Some(inner) => collect_unknown(value, inner, &path, unknown),
                    // What holds nothing may be left out when it is written back.
                    None if is_nothing(value) => {}
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (index, (given, known)) in given.iter().zip(known).enumerate() {
                collect_unknown(given, known, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Reason;
    use crate::registry::Registry;

    fn of(kind: &str) -> ResourceType {
        let registry = Registry::standalone();
        let mut types = registry.types().iter();
        let found = types.find(|of| of.kind == kind && matches!(of.content, Content::Native(_)));
        found.unwrap().clone()
    }

    const DROPS: Mode = Mode {
        is_dry_run: false,
        drops_unknown_fields: true,
        is_status: false,
    };

    #[test]
    fn defaults_are_filled_in() {
        let object = json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}], "egress": [{}]},
        });
        let policy = checked(&of("NetworkPolicy"), object, Mode::default()).unwrap();
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
        assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["protocol"], "TCP");
        let object = json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let pod = checked(&of("Pod"), object, Mode::default()).unwrap();
        assert_eq!(pod["spec"]["serviceAccountName"], "default");
    }

    #[test]
    fn roles_and_those_who_hold_them_are_of_one_group() {
        let object = json!({
            "metadata": {"name": "system:view", "namespace": "n"},
            "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "User", "name": "ann"}, {"kind": "ServiceAccount", "name": "web"}],
        });
        let binding = checked(&of("RoleBinding"), object, Mode::default()).unwrap();
        assert_eq!(binding["roleRef"]["apiGroup"], ROLE_GROUP);
        assert_eq!(binding["subjects"][0]["apiGroup"], ROLE_GROUP);
        assert_eq!(binding["subjects"][1].get("apiGroup"), None);
    }

    #[test]
    fn what_the_type_does_not_have_is_refused_or_dropped() {
        let object = json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"containers": [{"name": "c", "colour": "red"}]},
        });
        let failure = checked(&of("Pod"), object.clone(), Mode::default()).unwrap_err();
        assert_eq!(failure.reason, Reason::BadRequest);
        assert!(
            failure.message.contains("spec.containers[0].colour"),
            "{failure}"
        );
        let pod = checked(&of("Pod"), object, DROPS).unwrap();
        assert_eq!(pod["spec"]["containers"][0].get("colour"), None);
    }

    #[test]
    fn wrong_objects_are_refused() {
        for (kind, object, expected) in [
            (
                "Namespace",
                json!({"metadata": {"name": "a.b"}}),
                "metadata.name",
            ),
            (
                "Pod",
                json!({"metadata": {"name": "a"}, "spec": {}}),
                "spec.containers",
            ),
            (
                "NetworkPolicy",
                json!({"metadata": {"name": "a"}, "spec": {"podSelector": {}, "ingress": [{"from": [{}]}]}}),
                "spec.ingress[0].from[0]",
            ),
            (
                "Role",
                json!({"metadata": {"name": "a"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}),
                "rules[0].nonResourceURLs",
            ),
            (
                "Role",
                json!({"metadata": {"name": "a/b"}}),
                "metadata.name",
            ),
            (
                "ClusterRole",
                json!({"metadata": {"name": "a"}, "rules": [{"verbs": ["get"], "resources": ["pods"]}]}),
                "rules[0].apiGroups",
            ),
            (
                "ClusterRole",
                json!({"metadata": {"name": "a"}, "rules": [
                    {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "nonResourceURLs": ["/x"]},
                ]}),
                "rules[0].nonResourceURLs",
            ),
            (
                "ClusterRole",
                json!({"metadata": {"name": "a"}, "rules": [{"verbs": [], "apiGroups": [""], "resources": ["pods"]}]}),
                "rules[0].verbs",
            ),
            (
                "ClusterRole",
                json!({"metadata": {"name": "a"}, "aggregationRule": {"clusterRoleSelectors": []}}),
                "aggregationRule.clusterRoleSelectors",
            ),
            (
                "RoleBinding",
                json!({"metadata": {"name": "a"}, "roleRef": {"kind": "Pod", "name": "x"}}),
                "roleRef.kind",
            ),
            (
                "ClusterRoleBinding",
                json!({"metadata": {"name": "a"}, "roleRef": {"kind": "Role", "name": "x"}}),
                "roleRef.kind",
            ),
            (
                "ClusterRoleBinding",
                json!({
                    "metadata": {"name": "a"}, "roleRef": {"kind": "ClusterRole", "name": "x"},
                    "subjects": [{"kind": "ServiceAccount", "name": "x"}],
                }),
                "subjects[0].namespace",
            ),
            (
                "RoleBinding",
                json!({
                    "metadata": {"name": "a"}, "roleRef": {"kind": "ClusterRole", "name": "x"},
                    "subjects": [{"kind": "Robot", "name": "x"}],
                }),
                "subjects[0].kind",
            ),
        ] {
            let failure = checked(&of(kind), object, DROPS).unwrap_err();
            assert_eq!(failure.reason, Reason::Invalid);
            assert_eq!(failure.details.causes[0].field, expected);
        }
        let object = json!({"metadata": {"name": "a"}, "spec": {"containers": 3}});
        let failure = checked(&of("Pod"), object, DROPS).unwrap_err();
        assert_eq!(failure.reason, Reason::BadRequest);
    }
}
