//! The schemas of kinds, of lists of them, and of what they refer to, by name.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReview};
use k8s_openapi::api::authorization::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Namespace, Node, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event as NewEvent;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    DeleteOptions, ListMeta, ObjectMeta, Patch, Status, WatchEvent,
};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use tortie_api::crd;

use super::schema::V2_PREFIX;
use crate::registry::{Content, Native, ResourceType, Review};
use crate::structure::{ListType, Structure};

/// How deep lists that are merged item by item lie at most.
const MAX_DEPTH: usize = 4;

type Definitions = Map<String, Value>;

/// The definitions that the documents of some resources need, with references as in version 2.
pub(super) fn of(types: &[&ResourceType]) -> Definitions {
    let mut generator = generator();
    for resource in types {
        match resource.content {
            Content::Native(native) => add_native(native, &mut generator),
            Content::Review(review) => add_review(review, &mut generator),
            Content::Calico(_) | Content::Custom => {}
        }
    }
    generator.subschema_for::<DeleteOptions>();
    generator.subschema_for::<ListMeta>();
    generator.subschema_for::<ObjectMeta>();
    generator.subschema_for::<Patch>();
    generator.subschema_for::<Status>();
    generator.subschema_for::<WatchEvent<Value>>();
    let mut definitions = generator.take_definitions(false);

    let common: [(String, &str); 3] = [
        (name_of::<DeleteOptions>(), "DeleteOptions"),
        (name_of::<Status>(), "Status"),
        (name_of::<WatchEvent<Value>>(), "WatchEvent"),
    ];
    for (name, kind) in common {
        definitions[&name][KIND_KEYWORD] = json!([{"group": "", "version": "v1", "kind": kind}]);
    }
    for resource in types {
        add_kind(resource, &mut definitions);
    }
    definitions
}

/// Names the kind that a schema describes.
const KIND_KEYWORD: &str = "x-kubernetes-group-version-kind";

/// The name of a kind's definition.
pub(super) fn name_of_kind(resource: &ResourceType) -> String {
    match resource.content {
        Content::Native(native) => name_of_native(native),
        Content::Review(review) => name_of_review(review),
        Content::Calico(_) | Content::Custom => {
            let group: Vec<_> = resource.group.rsplit('.').collect();
            format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
        }
    }
}

/// The name of the definition of lists of a kind.
pub(super) fn name_of_list(resource: &ResourceType) -> String {
    format!("{}List", name_of_kind(resource))
}

/// The name of a type's definition.
pub(super) fn name_of<T: JsonSchema>() -> String {
    T::schema_name().into_owned()
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/definitions".into();
        settings.meta_schema = None;
    });
    settings.into_generator()
}

macro_rules! natives {
    ($($name:ident),*) => {
        fn add_native(native: Native, generator: &mut SchemaGenerator) {
            match native { $(Native::$name => { generator.subschema_for::<$name>(); })* }
        }

        fn name_of_native(native: Native) -> String {
            match native { $(Native::$name => name_of::<$name>(),)* }
        }
    };
}

natives!(
    ClusterRole,
    ClusterRoleBinding,
    ConfigMap,
    CustomResourceDefinition,
    EndpointSlice,
    Event,
    Lease,
    Namespace,
    NetworkPolicy,
    NewEvent,
    Node,
    Pod,
    Role,
    RoleBinding,
    Secret,
    Service,
    ServiceAccount
);

macro_rules! reviews {
    ($($review:ident: $name:ident),*) => {
        fn add_review(review: Review, generator: &mut SchemaGenerator) {
            match review { $(Review::$review => { generator.subschema_for::<$name>(); })* }
        }

        fn name_of_review(review: Review) -> String {
            match review { $(Review::$review => name_of::<$name>(),)* }
        }
    };
}

reviews!(
    LocalSubjectAccess: LocalSubjectAccessReview,
    SelfSubject: SelfSubjectReview,
    SelfSubjectAccess: SelfSubjectAccessReview,
    SelfSubjectRules: SelfSubjectRulesReview,
    SubjectAccess: SubjectAccessReview,
    Token: TokenReview
);

/// Adds the definitions of a kind and of lists of it, if there are any.
fn add_kind(resource: &ResourceType, definitions: &mut Definitions) {
    let name = name_of_kind(resource);
    // What `apiVersion` and `kind` mean is the same everywhere.
    let properties = &definitions[&name_of::<Status>()]["properties"];
    let (api_version, kind) = (properties["apiVersion"].clone(), properties["kind"].clone());
    if let Content::Calico(calico) = resource.content {
        let mut schema = crd::schema(calico);
        let properties = &mut schema["properties"];
        properties["apiVersion"] = api_version.clone();
        properties["kind"] = kind.clone();
        properties["metadata"] = reference(&name_of::<ObjectMeta>());
        properties["metadata"]["description"] =
            json!("Name, labels and what else all objects have.");
        if let Some(description) = properties["spec"].get("description") {
            schema["description"] = description.clone();
        }
        definitions.insert(name.clone(), schema);
    } else if let Some(Value::Array(required)) = definitions[&name].get_mut("required") {
        required.retain(|field| field != "metadata");
        if required.is_empty() {
            definitions[&name]
                .as_object_mut()
                .map(|schema| schema.remove("required"));
        }
    }
    definitions[&name][KIND_KEYWORD] = kind_of(resource, "");
    if !resource.is_stored() {
        return;
    }
    definitions.insert(
        name_of_list(resource),
        json!({
            "description": format!("{0}List is a list of {0}.", resource.kind),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": api_version,
                "items": {
                    "description": "The objects.",
                    "type": "array",
                    "items": reference(&name),
                },
                "kind": kind,
                "metadata": reference(&name_of::<ListMeta>()),
            },
            (KIND_KEYWORD): kind_of(resource, "List"),
        }),
    );
    let structure = Structure::of(resource.group, resource.kind);
    mark_lists(definitions, &name, &[], &mut Vec::new(), structure);
}

fn kind_of(resource: &ResourceType, suffix: &str) -> Value {
    json!([{
        "group": resource.group,
        "version": resource.version,
        "kind": format!("{}{suffix}", resource.kind),
    }])
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{V2_PREFIX}{name}")})
}

/// Says of lists how they are merged, for clients that compute patches.
///
/// `inner` is the way within the definition `name`, `path` the way from the object.
fn mark_lists(
    definitions: &mut Definitions,
    name: &str,
    inner: &[String],
    path: &mut Vec<String>,
    structure: Structure,
) {
    if path.len() >= MAX_DEPTH {
        return;
    }
    let Some(fields) = find(definitions, name, inner).and_then(|schema| schema.get("properties"))
    else {
        return;
    };
    let fields: Vec<String> = fields
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .cloned()
        .collect();
    for field in fields {
        let mut inner = inner.to_vec();
        inner.extend(["properties".to_owned(), field.clone()]);
        path.push(field);
        let list = find(definitions, name, &inner).filter(|schema| schema["type"] == "array");
        if let Some(list) = list {
            mark(list, structure.list_type(path));
            inner.push("items".to_owned());
        }
        let target = find(definitions, name, &inner).and_then(|schema| schema["$ref"].as_str());
        let target = target
            .and_then(|target| target.strip_prefix(V2_PREFIX))
            .map(str::to_owned);
        match target {
            Some(target) => mark_lists(definitions, &target, &[], path, structure),
            None => mark_lists(definitions, name, &inner, path, structure),
        }
        path.pop();
    }
}

fn find<'a>(
    definitions: &'a mut Definitions,
    name: &str,
    inner: &[String],
) -> Option<&'a mut Value> {
    let definition = definitions.get_mut(name)?;
    inner
        .iter()
        .try_fold(definition, |schema, step| schema.get_mut(step))
}

fn mark(list: &mut Value, list_type: ListType) {
    match list_type {
        ListType::Atomic => {}
        ListType::Set => {
            list["x-kubernetes-list-type"] = json!("set");
            list["x-kubernetes-patch-strategy"] = json!("merge");
        }
        ListType::Map(keys) => {
            list["x-kubernetes-list-type"] = json!("map");
            list["x-kubernetes-list-map-keys"] = json!(keys);
            list["x-kubernetes-patch-strategy"] = json!("merge");
            list["x-kubernetes-patch-merge-key"] = json!(keys.first());
        }
    }
}
