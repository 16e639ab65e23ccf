//! The life of an object: what clients may say of it, and what the server keeps to itself.

use serde_json::{Map, Value, json};
use tortie_api::Problems;

use crate::failure::{Failure, Reason, Result};
use crate::registry::{Content, Native, ResourceType};
use crate::storage::Mode;
use crate::storage::services::keep_allocated;

/// Metadata that only the server writes.
const KEPT: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// What a client wrote is an object of the type and namespace of the request's path. What it left out is filled in.
pub(crate) fn check_envelope(
    of: &ResourceType,
    namespace: Option<&str>,
    name: Option<&str>,
    object: &mut Value,
) -> Result<()> {
    let api_version = of.api_version();
    let Some(fields) = object.as_object_mut() else {
        return Err(Failure::bad_request("the body must be a JSON object"));
    };
    for (field, expected) in [("kind", of.kind), ("apiVersion", api_version.as_str())] {
        match fields.get(field) {
            None | Some(Value::Null) => {
                fields.insert(field.to_owned(), json!(expected));
            }
            Some(given) if given == expected => {}
            Some(given) => {
                return Err(Failure::bad_request(format!(
                    "{field}: {given} does not fit the path of the request, which is for {expected:?}"
                )));
            }
        }
    }
    let metadata = metadata_mut(fields)?;
    if let Some(name) = name {
        fill(metadata, "name", name, "the name of the object")?;
    }
    match namespace {
        Some(namespace) => fill(
            metadata,
            "namespace",
            namespace,
            "the namespace of the object",
        )?,
        None => {
            metadata.remove("namespace");
        }
    }
    Ok(())
}

/// Sets a text that must be absent, empty or just this.
fn fill(metadata: &mut Map<String, Value>, field: &str, expected: &str, what: &str) -> Result<()> {
    match metadata.get(field).map(|value| value.as_str()) {
        None | Some(Some("")) => {
            metadata.insert(field.to_owned(), json!(expected));
            Ok(())
        }
        Some(Some(given)) if given == expected => Ok(()),
        Some(given) => Err(Failure::bad_request(format!(
            "{what} ({}) does not match that of the request ({expected})",
            given.unwrap_or("not a text")
        ))),
    }
}

/// What a client wants to create, as it is stored: with an identity of its own and without a state that nobody observed.
pub(super) fn prepare_new(
    of: &ResourceType,
    object: &mut Value,
    identity: &Identity,
) -> Result<()> {
    let Some(fields) = object.as_object_mut() else {
        return Err(Failure::bad_request("the body must be a JSON object"));
    };
    if of.has_status {
        fields.remove("status");
    }
    let metadata = metadata_mut(fields)?;
    if text(metadata, "resourceVersion").is_some() {
        return Err(Failure::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    for field in KEPT {
        metadata.remove(*field);
    }
    if text(metadata, "name").is_none() {
        let Some(prefix) = text(metadata, "generateName") else {
            return Err(Failure::new(
                Reason::Invalid,
                format!(
                    "{}: metadata.name or metadata.generateName is required",
                    of.kind
                ),
            ));
        };
        // Names have at most 63 characters where they are labels; the suffix has five.
        let prefix: String = prefix.chars().take(58).collect();
        let name = format!("{prefix}{}", identity.suffix);
        metadata.insert("name".to_owned(), json!(name));
    }
    metadata.insert("uid".to_owned(), json!(identity.uid));
    metadata.insert("creationTimestamp".to_owned(), json!(identity.now));
    metadata.insert("generation".to_owned(), json!(1));
    Ok(())
}

/// What makes an object this very one.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) uid: String,
    /// Ends a generated name.
    pub(super) suffix: String,
    /// In RFC 3339, in whole seconds.
    pub(super) now: String,
}

/// What a client wants an object to become, as it is stored: with the identity of the old one, and with the part of it
/// that this request is not about.
pub(super) fn prepare_change(
    of: &ResourceType,
    old: &Value,
    new: &mut Value,
    mode: Mode,
) -> Result<()> {
    let Some(fields) = new.as_object_mut() else {
        return Err(Failure::bad_request("the body must be a JSON object"));
    };
    if mode.is_status {
        let status = fields.remove("status");
        let given = fields.remove("metadata").unwrap_or_default();
        *new = old.clone();
        set_or_remove(new, "status", status);
        let metadata = &mut new["metadata"];
        for field in ["managedFields", "resourceVersion", "uid"] {
            if let Some(value) = given.get(field) {
                set_or_remove(metadata, field, Some(value.clone()));
            }
        }
        // Only custom resources keep theirs: of a pod, say, a plugin writes address and annotations at once.
        if matches!(of.content, Content::Native(native) if native != Native::CustomResourceDefinition)
        {
            for field in ["annotations", "finalizers", "labels"] {
                set_or_remove(metadata, field, given.get(field).cloned());
            }
        }
        return check_identity(of, old, new);
    }
    if of.has_status {
        let status = old.get("status").cloned();
        set_or_remove(new, "status", status);
    }
    if of.content == Content::Native(Native::Service) {
        keep_allocated(old, new);
    }
    check_identity(of, old, new)?;
    check_role_reference(of, old, new)?;
    check_immutable(of, old, new)?;
    for field in KEPT {
        let value = old["metadata"].get(*field).cloned();
        set_or_remove(&mut new["metadata"], field, value);
    }
    if !has_same_specification(old, new) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(1);
        new["metadata"]["generation"] = json!(generation.saturating_add(1));
    }
    Ok(())
}

/// Whom a binding is for may change, never what it gives them: somebody has looked at that.
fn check_role_reference(of: &ResourceType, old: &Value, new: &Value) -> Result<()> {
    let is_binding = matches!(
        of.content,
        Content::Native(Native::RoleBinding | Native::ClusterRoleBinding)
    );
    let (before, after) = (&old["roleRef"], &new["roleRef"]);
    let is_same = |field: &str| before[field] == after[field];
    if !is_binding || ["apiGroup", "kind", "name"].into_iter().all(is_same) {
        return Ok(());
    }
    let mut problems = Problems::default();
    let root = tortie_api::Path::ROOT;
    problems.add(&root.field("roleRef"), after, "cannot change roleRef");
    let name = old["metadata"]["name"].as_str().unwrap_or_default();
    Err(Failure::invalid(of.group, of.kind, name, &problems))
}

/// What is said to be immutable stays so, and a secret keeps its type.
fn check_immutable(of: &ResourceType, old: &Value, new: &Value) -> Result<()> {
    let fields: &[&str] = match of.content {
        Content::Native(Native::Secret) if old["immutable"] == true => {
            &["/data", "/immutable", "/type"]
        }
        Content::Native(Native::Secret) => &["/type"],
        Content::Native(Native::ConfigMap) if old["immutable"] == true => {
            &["/binaryData", "/data", "/immutable"]
        }
        Content::Native(Native::CustomResourceDefinition) => &["/spec/names/kind", "/spec/scope"],
        _ => return Ok(()),
    };
    let mut problems = Problems::default();
    let root = tortie_api::Path::ROOT;
    for field in fields {
        if old.pointer(field) != new.pointer(field) {
            let name = field.trim_start_matches('/').replace('/', ".");
            problems.add_missing(&root.field(&name), "field is immutable");
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let name = old["metadata"]["name"].as_str().unwrap_or_default();
    Err(Failure::invalid(of.group, of.kind, name, &problems))
}

/// A client that names a UID or a revision means that very object and state.
fn check_identity(of: &ResourceType, old: &Value, new: &mut Value) -> Result<()> {
    let name = old["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let metadata = metadata_mut(
        new.as_object_mut()
            .ok_or_else(|| Failure::bad_request("the body must be a JSON object"))?,
    )?;
    for field in ["uid", "resourceVersion"] {
        let Some(given) = text(metadata, field) else {
            continue;
        };
        let there = old["metadata"][field].as_str().unwrap_or_default();
        if given != there {
            return Err(if field == "uid" {
                let why = format!(
                    "Precondition failed: UID in precondition: {given}, UID in object meta: {there}"
                );
                Failure::conflict(of, &name, why)
            } else {
                Failure::modified(of, &name)
            });
        }
    }
    let version = old["metadata"]["resourceVersion"].clone();
    metadata.insert("resourceVersion".to_owned(), version);
    Ok(())
}

/// Whether two states differ in nothing but metadata and what was observed.
fn has_same_specification(old: &Value, new: &Value) -> bool {
    let fields = |object: &Value| -> Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status"));
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    fields(old) == fields(new)
}

/// Whether a write would change nothing.
pub(super) fn is_unchanged(old: &Value, new: &Value) -> bool {
    old == new
}

/// Whether an object is marked as deleted and nobody holds it back.
pub(super) fn is_to_be_removed(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata
        .get("deletionTimestamp")
        .is_some_and(|time| !time.is_null())
        && !has_finalizers(object)
}

/// Whether somebody has to agree before an object goes.
pub(super) fn has_finalizers(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// The object, marked as deleted.
pub(super) fn mark_deleted(object: &Value, now: &str) -> Value {
    let mut marked = object.clone();
    let metadata = &mut marked["metadata"];
    if metadata.get("deletionTimestamp").is_none_or(Value::is_null) {
        metadata["deletionTimestamp"] = json!(now);
        metadata["deletionGracePeriodSeconds"] = json!(0);
        let generation = metadata["generation"].as_i64().unwrap_or(1);
        metadata["generation"] = json!(generation.saturating_add(1));
    }
    marked
}

fn metadata_mut(fields: &mut Map<String, Value>) -> Result<&mut Map<String, Value>> {
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    metadata
        .as_object_mut()
        .ok_or_else(|| Failure::bad_request("metadata must be a JSON object"))
}

/// A text that is there and not empty.
fn text<'a>(metadata: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    let text = metadata.get(field).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

fn set_or_remove(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => {
            fields.insert(field.to_owned(), value);
        }
        None => {
            fields.remove(field);
        }
    }
}

#[cfg(test)]
mod tests;
