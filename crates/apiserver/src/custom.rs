//! Custom resources: what definitions say of their kinds, for as long as the definitions are there.

mod schema;
mod status;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use serde_json::{Value, json};
use tortie_api::Problems;
use tortie_api::validate::{NameRule, check_kubernetes_metadata};

use self::schema::Schema;
use crate::failure::{Failure, Reason, Result};
use crate::registry::{Content, Registry, ResourceType};

/// Holds back a definition that is deleted until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The definitions that are known, by name.
#[derive(Debug, Default)]
pub struct Definitions {
    known: RwLock<BTreeMap<String, Arc<Definition>>>,
}

/// What is made of one definition.
#[derive(Debug)]
struct Definition {
    /// A type for each version that is served; none until its names are accepted.
    types: Vec<&'static ResourceType>,
    /// The type of the version that is stored, also if that is not served.
    stored: Option<&'static ResourceType>,
    /// Of all versions.
    schemas: BTreeMap<String, Schema>,
    is_closing: bool,
}

impl Definitions {
    /// Serves what a definition describes, if its names were accepted.
    pub(crate) fn put(&self, definition: &Value) {
        let spec = &definition["spec"];
        let schemas = versions(spec).map(|version| {
            let schema = &version["schema"]["openAPIV3Schema"];
            (text(&version["name"]), Schema::new(schema.clone()))
        });
        let is_accepted = status::is_established(definition);
        let types = versions(spec).filter(|version| is_accepted && version["served"] == true);
        let mut stored = versions(spec).filter(|version| version["storage"] == true);
        let definition_of = Definition {
            stored: stored.next().map(|version| resource_type(spec, version)),
            types: types.map(|version| resource_type(spec, version)).collect(),
            schemas: schemas.collect(),
            is_closing: definition["metadata"].get("deletionTimestamp").is_some(),
        };
        let name = text(&definition["metadata"]["name"]);
        self.write().insert(name, Arc::new(definition_of));
    }

    /// Serves it no more.
    pub(crate) fn remove(&self, name: &str) {
        self.write().remove(name);
    }

    /// The types of all of them.
    pub(crate) fn types(&self) -> Vec<&'static ResourceType> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known
            .values()
            .flat_map(|definition| &definition.types)
            .copied()
            .collect()
    }

    /// The type in whose version the objects of a definition are stored.
    pub(crate) fn stored_type(&self, name: &str) -> Option<&'static ResourceType> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name)?.stored
    }

    /// What a definition that is written says of itself: whether its names are free, and since when that is known.
    pub(crate) fn status(&self, definition: &Value, old: &Value, now: &str) -> Value {
        let name = text(&definition["metadata"]["name"]);
        let built_in = Registry::standalone();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let others = known.iter().filter(|(other, _)| **other != name);
        let others = others.flat_map(|(_, definition)| definition.types.iter().copied());
        let types = built_in.types().iter().chain(others);
        status::of(definition, old, types, now)
    }

    /// Fills in the defaults of a custom resource.
    pub(crate) fn complete(&self, of: &ResourceType, object: &mut Value) {
        if let Some(definition) = self.find(of)
            && let Some(schema) = definition.schemas.get(of.version)
        {
            schema.fill_in(object);
        }
    }

    /// A custom resource as it is stored: with defaults and without what its schema does not have. What was given and is
    /// not in it is refused, or dropped.
    pub(crate) fn checked(
        &self,
        of: &ResourceType,
        mut object: Value,
        drops_unknown_fields: bool,
    ) -> Result<Value> {
        let definition = self.find(of).ok_or_else(gone)?;
        let schema = definition.schemas.get(of.version).ok_or_else(gone)?;
        let given = object.clone();
        schema.prune(&mut object);
        schema.fill_in(&mut object);
        if !drops_unknown_fields {
            crate::storage::check_unknown(&given, &object)?;
        }
        let mut problems = Problems::default();
        let meta = serde_json::from_value(object["metadata"].clone())
            .map_err(|error| Failure::bad_request(format!("metadata: {error}")))?;
        check_kubernetes_metadata(&meta, NameRule::Subdomain, &mut problems);
        schema.check(&object, &mut problems);
        if problems.is_empty() {
            return Ok(object);
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(Failure::invalid(of.group, of.kind, name, &problems))
    }

    /// Whether objects may be made: not while their definition is deleted.
    pub(crate) fn check_open(&self, of: &ResourceType) -> Result<()> {
        match self.find(of) {
            None => Err(gone()),
            Some(definition) if definition.is_closing => {
                let why = "create not allowed while custom resource definition is terminating";
                Err(Failure::new(Reason::MethodNotAllowed, why))
            }
            Some(_) => Ok(()),
        }
    }

    fn find(&self, of: &ResourceType) -> Option<Arc<Definition>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&name_of(of)).cloned()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<Definition>>> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the definition of a type.
pub(crate) fn name_of(of: &ResourceType) -> String {
    format!("{}.{}", of.plural, of.group)
}

/// What is said of a definition that is taken, although not all of it has an effect here.
pub(crate) fn warnings(definition: &Value) -> Vec<String> {
    let rules = versions(&definition["spec"]).any(|version| has_rules(&version["schema"]));
    let scale =
        versions(&definition["spec"]).any(|version| version["subresources"].get("scale").is_some());
    let told = [
        (
            rules,
            "x-kubernetes-validations are stored and not evaluated by tortie up",
        ),
        (scale, "the subresource scale is not served by tortie up"),
    ];
    let told = told.into_iter().filter(|(is_so, _)| *is_so);
    told.map(|(_, text)| text.to_owned()).collect()
}

fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            name == "x-kubernetes-validations" && value.is_array() || has_rules(value)
        }),
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

fn versions(spec: &Value) -> impl Iterator<Item = &Value> {
    spec["versions"].as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn gone() -> Failure {
    Failure::new(
        Reason::NotFound,
        "the server could not find the requested resource",
    )
}

fn resource_type(spec: &Value, version: &Value) -> &'static ResourceType {
    let names = &spec["names"];
    let words = |list: &Value| {
        let words = list.as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(interned).collect()
    };
    let short_names: Vec<&'static str> = words(&names["shortNames"]);
    let found = ResourceType {
        group: interned(&text(&spec["group"])),
        version: interned(&text(&version["name"])),
        kind: interned(&text(&names["kind"])),
        plural: interned(&text(&names["plural"])),
        singular: text(&names["singular"]),
        short_names: KEPT_LISTS.keep(short_names),
        is_namespaced: spec["scope"] == "Namespaced",
        has_status: version["subresources"].get("status").is_some(),
        content: Content::Custom,
    };
    KEPT_TYPES.keep_one(found)
}

/// What is kept for the life of the process, each once. Types of a definition that is gone may still be in use, and a few
/// hundred bytes for each that there ever was are less than what counting their users would cost.
struct Interner<T: 'static>(Mutex<Vec<&'static T>>);

static KEPT_TYPES: Interner<ResourceType> = Interner(Mutex::new(Vec::new()));
static KEPT_LISTS: Interner<Vec<&'static str>> = Interner(Mutex::new(Vec::new()));
static KEPT_WORDS: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);

impl<T: PartialEq> Interner<T> {
    fn keep_one(&self, value: T) -> &'static T {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.iter().find(|found| ***found == value) {
            return found;
        }
        let value: &'static T = Box::leak(Box::new(value));
        kept.push(value);
        value
    }
}

impl Interner<Vec<&'static str>> {
    fn keep(&self, list: Vec<&'static str>) -> &'static [&'static str] {
        self.keep_one(list)
    }
}

fn interned(word: &str) -> &'static str {
    let mut kept = KEPT_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.get(word) {
        return found;
    }
    let word: &'static str = Box::leak(word.to_owned().into_boxed_str());
    kept.insert(word);
    word
}

/// The definition, marked so that it stays until its objects are gone.
pub(crate) fn closed(mut definition: Value, now: &str) -> Value {
    let finalizers = &mut definition["metadata"]["finalizers"];
    let is_there = finalizers
        .as_array()
        .is_some_and(|list| list.contains(&json!(CLEANUP)));
    match finalizers.as_array_mut() {
        Some(list) if !is_there => list.push(json!(CLEANUP)),
        Some(_) => {}
        None => *finalizers = json!([CLEANUP]),
    }
    status::terminate(&mut definition, now);
    definition
}
