//! Calico's resources in any of the datastores, with Calico's rules for writes.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use serde_json::Value;
use tortie_api::{Kind, Resource};
use tortie_client::Client;
use tortie_store::embedded::{Most, Snapshot, Stored};
use tortie_store::{Key, Numbering, Precondition, Query, Revision, watch_resumed};

use super::{Change, Changes, Mode, Storage, What, before_writing, store_failure};
use crate::failure::{Failure, Reason, Result};
use crate::registry::{Content, ResourceType};

/// Calico's resources.
#[derive(Clone)]
pub struct CalicoStorage {
    client: Client,
    numbering: Arc<Numbering>,
}

impl CalicoStorage {
    /// What a client reads and writes.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            numbering: Arc::default(),
        }
    }
}

#[async_trait]
impl Storage for CalicoStorage {
    fn complete(&self, _: &ResourceType, object: &mut Value) {
        if let Ok(mut resource) = Resource::decode_strict(object) {
            resource.set_defaults();
            *object = resource.to_value();
        }
    }

    fn unknown_fields(&self, _: &ResourceType, given: &Value, _: &Value) -> Vec<String> {
        let Err(problems) = Resource::decode_strict(given) else {
            return Vec::new();
        };
        let unknown = problems.iter().filter(|problem| problem.is_unknown_field());
        unknown.map(|problem| problem.field.clone()).collect()
    }

    async fn check_health(&self) -> Result<()> {
        let checked = self.client.store().check_health().await;
        checked.map_err(|error| Failure::new(Reason::Unavailable, error.to_string()))
    }

    async fn get(&self, of: &ResourceType, namespace: &str, name: &str) -> Result<Value> {
        let found = self.client.get(&key(of, namespace, name)?).await;
        Ok(found
            .map_err(|error| store_failure(of, name, error))?
            .to_value())
    }

    async fn list_each(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        take: &mut (dyn FnMut(Value) + Send),
    ) -> Result<u64> {
        let kind = kind_of(of)?;
        let query = Query {
            namespace: namespace.map(ToOwned::to_owned),
            ..Query::all(kind)
        };
        let mut parts = self.client.store().list_in_parts(&query);
        let mut revision = Revision::default();
        while let Some(part) = parts.next().await {
            let part = part.map_err(|error| store_failure(of, "", error))?;
            for invalid in &part.invalid {
                tracing::warn!(object = %invalid.key, reason = invalid.reason, "An object cannot be read");
            }
            for mut resource in part.items {
                resource.set_read_defaults();
                take(resource.to_value());
            }
            revision = part.revision;
        }
        let number = self.numbering.number(kind, &revision);
        number.map_err(|error| store_failure(of, "", error))
    }

    fn snapshot(&self) -> Result<Option<Snapshot>> {
        let snapshot = self.client.store().snapshot();
        snapshot.map_err(|error| Failure::new(Reason::Unavailable, error.to_string()))
    }

    fn look(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        most: Most,
    ) -> Result<Vec<Stored>> {
        let query = Query {
            namespace: namespace.map(ToOwned::to_owned),
            ..Query::all(kind_of(of)?)
        };
        let found = snapshot.objects(&query, after, most);
        found.map_err(|error| store_failure(of, "", error))
    }

    fn read(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        let key = key(of, namespace, name)?;
        let found = snapshot.get(&key);
        match found.map_err(|error| store_failure(of, name, error))? {
            Ok(mut resource) => {
                resource.set_read_defaults();
                Ok(Some(resource.to_value()))
            }
            Err(reason) => {
                tracing::warn!(object = %key, reason, "An object cannot be read");
                Ok(None)
            }
        }
    }

    fn size(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<usize> {
        let size = snapshot.size(&key(of, namespace, name)?);
        size.map_err(|error| store_failure(of, name, error))
    }

    async fn create(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value> {
        let resource = decode(of, &object, mode)?;
        let name = resource.metadata().name.clone();
        let failed = |error| store_failure(of, &name, error);
        let checked = self.client.check_create(resource).await.map_err(failed)?;
        if mode.is_dry_run {
            return Ok(checked.to_value());
        }
        before_writing().await;
        let created = self.client.store().create(checked).await;
        Ok(created.map_err(failed)?.to_value())
    }

    async fn update(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value> {
        let resource = decode(of, &object, mode)?;
        let name = resource.metadata().name.clone();
        let failed = |error| store_failure(of, &name, error);
        if mode.is_status && !mode.is_dry_run {
            before_writing().await;
            let updated = self.client.update_status(resource).await;
            return Ok(updated.map_err(failed)?.to_value());
        }
        let checked = self.client.check_update(resource).await.map_err(failed)?;
        if mode.is_dry_run {
            return Ok(checked.to_value());
        }
        before_writing().await;
        let updated = self.client.store().update(checked).await;
        Ok(updated.map_err(failed)?.to_value())
    }

    async fn delete(&self, of: &ResourceType, object: &Value, mode: Mode) -> Result<()> {
        let resource = Resource::decode_stored(kind_of(of)?, object);
        let resource =
            resource.map_err(|error| Failure::new(Reason::Internal, error.to_string()))?;
        let key = Key::of(&resource);
        let precondition = Precondition {
            revision: Some(Revision(resource.metadata().resource_version.clone())),
            uid: None,
        };
        let deleted = if mode.is_dry_run {
            self.client.check_delete(&key).await
        } else {
            let deleted = self.client.delete(&key, &precondition).await;
            deleted.map(drop)
        };
        deleted.map_err(|error| store_failure(of, &key.name, error))
    }

    async fn watch(&self, of: &ResourceType, from: u64) -> Result<Changes> {
        let kind = kind_of(of)?;
        let of = of.clone();
        let (from, mut numbers) = self.numbering.start(kind, from);
        let watch = watch_resumed(self.client.store(), &Query::all(kind), &from).await;
        let watch = watch.map_err(|error| store_failure(&of, "", error))?;
        let changes = watch.map(move |event| {
            let event = event.map_err(|error| store_failure(&of, "", error))?;
            let what = match event.change {
                tortie_store::Change::Put(mut resource) => {
                    resource.set_read_defaults();
                    What::Put(resource.to_value())
                }
                tortie_store::Change::Delete(key) => deleted(key),
                tortie_store::Change::Invalid(invalid) => {
                    tracing::warn!(object = %invalid.key, reason = invalid.reason, "An object cannot be read");
                    deleted(invalid.key)
                }
                tortie_store::Change::Bookmark => What::Bookmark,
            };
            let revision = numbers.next(&event.revision, what != What::Bookmark);
            let revision = revision.map_err(|error| store_failure(&of, "", error))?;
            Ok(Change { revision, what })
        });
        Ok(changes.boxed())
    }
}

fn deleted(key: Key) -> What {
    What::Delete {
        namespace: key.namespace,
        name: key.name,
    }
}

fn key(of: &ResourceType, namespace: &str, name: &str) -> Result<Key> {
    Ok(Key {
        kind: kind_of(of)?,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

fn kind_of(of: &ResourceType) -> Result<Kind> {
    match of.content {
        Content::Calico(kind) => Ok(kind),
        Content::Native(_) | Content::Review(_) | Content::Custom => Err(Failure::new(
            Reason::NotFound,
            "the server could not find the requested resource",
        )),
    }
}

fn decode(of: &ResourceType, object: &Value, mode: Mode) -> Result<Resource> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    if mode.drops_unknown_fields {
        return Resource::decode_stored(kind_of(of)?, object)
            .map_err(|error| Failure::bad_request(error.to_string()));
    }
    Resource::decode_strict(object).map_err(|problems| {
        Failure::invalid(of.group, of.kind, name.unwrap_or_default(), &problems)
    })
}
