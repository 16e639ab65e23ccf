//! Writes: create, replace, patch, apply and delete.

use async_trait::async_trait;
use serde_json::{Value, json};
use tortie_client::retry_conflicts;

use super::lifecycle::{self, Identity};
use super::{Guard, Service, limits, manager};
use crate::apply::{self, Apply, Operation};
use crate::failure::{Failure, Reason, Result};
use crate::hub::Object;
use crate::options::{ListOptions, UnknownFields, WriteOptions};
use crate::patch::Patch;
use crate::registry::{Content, Native, ResourceType};
use crate::storage::Mode;
use crate::structure::Structure;

/// Where a write goes to, and how it is meant.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    pub of: &'a ResourceType,
    /// The namespace, if the type has them.
    pub namespace: Option<&'a str>,
    /// Whether only the observed state is meant.
    pub is_status: bool,
    /// How it is meant.
    pub options: &'a WriteOptions,
    /// Who writes, if the options do not say.
    pub agent: &'a str,
    /// What says whether the object may be touched.
    pub guard: &'a dyn Guard,
}

/// What an object is to become.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Just this.
    Whole(Value),
    /// What it is, patched.
    Patch(Patch),
    /// With these fields, by server-side apply.
    Apply(Value),
}

/// What must be true of an object that is deleted, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// It is this very object.
    pub uid: Option<String>,
    /// It is at this revision.
    pub revision: Option<String>,
    /// Everything is checked, nothing is deleted.
    pub is_dry_run: bool,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The object as it is stored.
    pub object: Value,
    /// Whether there was none before.
    pub is_new: bool,
    /// What was given and its type does not have, if that is to be told.
    pub unknown_fields: Vec<String>,
}

impl Written {
    fn changed(object: Value) -> Self {
        Self {
            object,
            is_new: false,
            unknown_fields: Vec::new(),
        }
    }
}

/// What became of an object that was to be deleted.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// It is gone; this is what it was.
    Gone(Value),
    /// It goes as soon as those agree who hold it back.
    Marked(Value),
}

/// What became of objects that were to be deleted.
#[derive(Debug)]
pub struct DeletedAll {
    /// What they were, or are.
    pub objects: Vec<Object>,
    /// Whether none of them is held back.
    pub are_gone: bool,
}

impl Write<'_> {
    fn mode(&self) -> Mode {
        Mode {
            is_dry_run: self.options.is_dry_run,
            drops_unknown_fields: self.options.unknown_fields != UnknownFields::Refuse,
            is_status: self.is_status,
        }
    }

    /// What is compared with what is stored, where what is dropped is told.
    fn compared(&self, object: &Value) -> Option<Value> {
        let is_told = self.options.unknown_fields == UnknownFields::Warn;
        is_told.then(|| object.clone())
    }

    fn manager(&self, operation: Operation) -> apply::Manager {
        let name = match self.options.field_manager.as_str() {
            "" => self.agent,
            name => name,
        };
        manager(self.of, name, operation, self.is_status)
    }

    fn structure(&self) -> Structure {
        Structure::of(self.of.group, self.of.kind)
    }
}

impl Service {
    /// Stores a new object.
    pub async fn create(&self, write: Write<'_>, mut object: Value) -> Result<Written> {
        let Write { of, namespace, .. } = write;
        lifecycle::check_envelope(of, namespace, None, &mut object)?;
        write.guard.check(&object).await?;
        self.check_namespace(of, namespace).await?;
        let identity = new_identity();
        lifecycle::prepare_new(of, &mut object, &identity)?;
        complete_native(of, &mut object);
        let manager = write.manager(Operation::Update);
        apply::track(
            &json!({}),
            &mut object,
            &manager,
            &identity.now,
            write.structure(),
        );
        self.store_new(write, object).await
    }

    async fn store_new(&self, write: Write<'_>, mut object: Value) -> Result<Written> {
        limits::check(write.of, &object)?;
        self.complete_native_defaults(write.of, &mut object);
        write.guard.check_content(None, &object).await?;
        if write.options.is_dry_run {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let namespace = write.namespace.unwrap_or_default();
            match self.storage.get(write.of, namespace, name).await {
                Ok(_) => return Err(Failure::already_exists(write.of, name)),
                Err(failure) if failure.reason == Reason::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        let given = write.compared(&object);
        let created = self.storage.create(write.of, object, write.mode()).await?;
        if write.of.content == Content::Native(Native::Namespace) && !write.options.is_dry_run {
            self.add_account(&created).await?;
        }
        Ok(Written {
            unknown_fields: self.unknown_fields(write.of, given.as_ref(), &created),
            object: created,
            is_new: true,
        })
    }

    /// What was given of an object and is not of its type, if that is asked for.
    fn unknown_fields(
        &self,
        of: &ResourceType,
        given: Option<&Value>,
        stored: &Value,
    ) -> Vec<String> {
        let given = given.map(|given| self.storage.unknown_fields(of, given, stored));
        given.unwrap_or_default()
    }

    /// Changes an object. Only server-side apply creates it.
    pub async fn change(&self, write: Write<'_>, name: &str, body: &Body) -> Result<Written> {
        let is_pinned = body.pins_revision();
        let is_race = |failure: &Failure| {
            let is_late = failure.reason == Reason::AlreadyExists;
            is_late || failure.details.is_race && !is_pinned
        };
        retry_conflicts(is_race, || self.change_once(write, name, body)).await
    }

    async fn change_once(&self, write: Write<'_>, name: &str, body: &Body) -> Result<Written> {
        let namespace = write.namespace.unwrap_or_default();
        match (self.storage.get(write.of, namespace, name).await, body) {
            // What nobody has made has no state to observe.
            (Err(failure), Body::Apply(wanted))
                if failure.reason == Reason::NotFound && !write.is_status =>
            {
                self.create_by_apply(write, name, wanted).await
            }
            (old, _) => {
                let old = old?;
                write.guard.check(&old).await?;
                self.change_from(write, name, &old, body).await
            }
        }
    }

    async fn create_by_apply(
        &self,
        write: Write<'_>,
        name: &str,
        wanted: &Value,
    ) -> Result<Written> {
        let Write { of, namespace, .. } = write;
        let mut wanted = wanted.clone();
        lifecycle::check_envelope(of, namespace, Some(name), &mut wanted)?;
        write.guard.check(&wanted).await?;
        write.guard.check_creation(&wanted).await?;
        self.check_namespace(of, namespace).await?;
        let identity = new_identity();
        self.complete_native_defaults(of, &mut wanted);
        lifecycle::prepare_new(of, &mut wanted, &identity)?;
        let manager = write.manager(Operation::Apply);
        let wish = Apply {
            manager: &manager,
            object: &wanted,
            force: write.options.force,
            now: &identity.now,
        };
        let mut object = apply::apply(&json!({"metadata": {}}), wish, write.structure())?;
        complete_native(of, &mut object);
        self.store_new(write, object).await
    }

    /// Items of Kubernetes' own lists have keys that may be left out. Other defaults belong to nobody.
    fn complete_native_defaults(&self, of: &ResourceType, wanted: &mut Value) {
        if matches!(of.content, Content::Native(_)) {
            self.storage.complete(of, wanted);
        }
    }

    async fn change_from(
        &self,
        write: Write<'_>,
        name: &str,
        old: &Value,
        body: &Body,
    ) -> Result<Written> {
        let Write { of, namespace, .. } = write;
        let now = now();
        let structure = write.structure();
        let mut new = match body {
            Body::Whole(object) => object.clone(),
            Body::Patch(patch) => patch.apply(old, structure)?,
            Body::Apply(wanted) => {
                let mut wanted = wanted.clone();
                lifecycle::check_envelope(of, namespace, Some(name), &mut wanted)?;
                self.complete_native_defaults(of, &mut wanted);
                let manager = write.manager(Operation::Apply);
                let wish = Apply {
                    manager: &manager,
                    object: &wanted,
                    force: write.options.force,
                    now: &now,
                };
                apply::apply(old, wish, structure)?
            }
        };
        lifecycle::check_envelope(of, namespace, Some(name), &mut new)?;
        write.guard.check(&new).await?;
        if !write.is_status {
            self.storage.complete(of, &mut new);
        }
        let mode = write.mode();
        lifecycle::prepare_change(of, old, &mut new, mode)?;
        if !matches!(body, Body::Apply(_)) {
            let manager = write.manager(Operation::Update);
            apply::track(old, &mut new, &manager, &now, structure);
        }
        if lifecycle::is_unchanged(old, &new) {
            return Ok(Written::changed(new));
        }
        if lifecycle::is_to_be_removed(&new) {
            self.storage.delete(of, old, mode).await?;
            if let (Some(namespace), false) = (namespace, mode.is_dry_run) {
                Box::pin(self.finish_namespace(namespace)).await;
            }
            if of.content == Content::Custom && !mode.is_dry_run {
                Box::pin(self.finish_definition(of)).await;
            }
            return Ok(Written::changed(new));
        }
        limits::check(of, &new)?;
        write.guard.check_content(Some(old), &new).await?;
        let given = write.compared(&new);
        let changed = self.storage.update(of, new, mode).await?;
        Ok(Written {
            unknown_fields: self.unknown_fields(of, given.as_ref(), &changed),
            ..Written::changed(changed)
        })
    }

    /// Deletes an object, or marks it if somebody holds it back.
    pub async fn delete(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
        guard: &dyn Guard,
    ) -> Result<Deleted> {
        let is_race = |failure: &Failure| failure.details.is_race && options.revision.is_none();
        retry_conflicts(is_race, || async {
            let namespace = namespace.unwrap_or_default();
            let object = self.storage.get(of, namespace, name).await?;
            guard.check(&object).await?;
            options.check(of, name, &object)?;
            self.delete_found(of, &object, options).await
        })
        .await
    }

    async fn delete_found(
        &self,
        of: &ResourceType,
        object: &Value,
        options: &DeleteOptions,
    ) -> Result<Deleted> {
        let mode = Mode {
            is_dry_run: options.is_dry_run,
            drops_unknown_fields: true,
            is_status: false,
        };
        if of.content == Content::Native(Native::Namespace) {
            return self.delete_namespace(of, object, mode).await;
        }
        if of.content == Content::Native(Native::CustomResourceDefinition) {
            return Box::pin(self.delete_definition(of, object, mode)).await;
        }
        if lifecycle::has_finalizers(object) {
            let marked = lifecycle::mark_deleted(object, &now());
            if lifecycle::is_unchanged(object, &marked) {
                return Ok(Deleted::Marked(marked));
            }
            let marked = self.storage.update(of, marked, mode).await?;
            return Ok(Deleted::Marked(marked));
        }
        self.storage.delete(of, object, mode).await?;
        Ok(Deleted::Gone(object.clone()))
    }

    /// Deletes all objects that the options select and that may be touched.
    pub async fn delete_all(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        selected: &ListOptions,
        options: &DeleteOptions,
        guard: &dyn Guard,
    ) -> Result<DeletedAll> {
        let mut deleted = DeletedAll {
            objects: Vec::new(),
            are_gone: true,
        };
        let all = ListOptions {
            limit: 0,
            continuation: String::new(),
            ..selected.clone()
        };
        let mut listing = self.list(of, namespace, &all, "").await?;
        while listing.look()?.is_some() {
            while let Some(object) = listing.next_object()? {
                let metadata = &object.head()["metadata"];
                let name = metadata["name"].as_str().unwrap_or_default();
                if of.is_view(name) {
                    continue;
                }
                let namespace = metadata["namespace"].as_str();
                let one = Moved { guard, selected };
                match Box::pin(self.delete(of, namespace, name, options, &one)).await {
                    Ok(Deleted::Gone(object)) => deleted.objects.push(Object::new(object)),
                    Ok(Deleted::Marked(object)) => {
                        deleted.objects.push(Object::new(object));
                        deleted.are_gone = false;
                    }
                    // Somebody else was faster.
                    Err(failure) if failure.reason == Reason::NotFound => {}
                    Err(failure) => return Err(failure),
                }
            }
        }
        Ok(deleted)
    }
}

/// Objects that were selected: one that has become another since then is none of them any more.
struct Moved<'a> {
    guard: &'a dyn Guard,
    selected: &'a ListOptions,
}

#[async_trait]
impl Guard for Moved<'_> {
    async fn check(&self, object: &Value) -> Result<()> {
        if !self.selected.selects(object) {
            let message = "the object is not selected any more";
            return Err(Failure::new(Reason::NotFound, message));
        }
        self.guard.check(object).await
    }

    async fn check_creation(&self, object: &Value) -> Result<()> {
        self.guard.check_creation(object).await
    }

    async fn check_content(&self, before: Option<&Value>, after: &Value) -> Result<()> {
        self.guard.check_content(before, after).await
    }
}

impl Body {
    /// Whether the client insists on the state that it read, so that trying again would not help.
    fn pins_revision(&self) -> bool {
        let object = match self {
            Self::Whole(object)
            | Self::Apply(object)
            | Self::Patch(Patch::Merge(object) | Patch::Strategic(object)) => object,
            Self::Patch(Patch::Json(_)) => return false,
        };
        let version = object.pointer("/metadata/resourceVersion");
        version
            .and_then(Value::as_str)
            .is_some_and(|version| !version.is_empty())
    }
}

impl DeleteOptions {
    fn check(&self, of: &ResourceType, name: &str, object: &Value) -> Result<()> {
        for (field, expected) in [("uid", &self.uid), ("resourceVersion", &self.revision)] {
            let there = object["metadata"][field].as_str().unwrap_or_default();
            if let Some(expected) = expected
                && expected != there
            {
                let why = format!(
                    "Precondition failed: {field} in precondition: {expected}, in object: {there}"
                );
                return Err(Failure::conflict(of, name, why));
            }
        }
        Ok(())
    }
}

/// What Kubernetes itself adds to a new object.
fn complete_native(of: &ResourceType, object: &mut Value) {
    match of.content {
        Content::Native(Native::Namespace) => {
            object["status"] = json!({"phase": "Active"});
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        Content::Native(Native::Pod) => object["status"] = json!({"phase": "Pending"}),
        _ => {}
    }
}

/// Letters and digits that make no words, as Kubernetes takes them.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

fn new_identity() -> Identity {
    let uid = uuid::Uuid::new_v4();
    let letters = uid.as_bytes().iter().take(5);
    let suffix = letters.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
    Identity {
        suffix: suffix.collect(),
        uid: uid.to_string(),
        now: now(),
    }
}

/// The present, in the whole seconds that timestamps of objects have.
pub(super) fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}
