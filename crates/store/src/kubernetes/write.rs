//! Writes: creates, replacements and deletions of custom resources, and updates of nodes.

use k8s_openapi::api::core::v1::Node as KubeNode;
use serde::Deserialize;
use serde_json::{Value, json};
use tortie_api::crd::Group;
use tortie_api::{Kind, Node, Path, Problems, Resource, k8s};
use tortie_sync::kubernetes::{Error as Failure, Selection};

use super::failure::Refusal as _;
use super::source::{Reading, Source, revision_of};
use super::{Found, KubernetesStore, api, stored};
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::store::{Precondition, expected_revision};

/// What of an object an update replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything that Kubernetes does not keep apart.
    All,
    /// The observed state only, where Kubernetes keeps it apart.
    Status,
}

impl KubernetesStore {
    pub(super) async fn create_stored(&self, mut resource: Resource) -> Result<Resource> {
        let key = Key::of(&resource);
        let (source, group) = self.writable("create", &key)?;
        require_namespace(&key)?;
        resource.metadata_mut().resource_version.clear();
        let object = encode(group, &resource, &key)?;
        let create = || api::create(&source.endpoint, &self.client, &key.namespace, &object);
        let mut created = create().await;
        if created.as_ref().is_err_and(Failure::is_already_exists)
            && stored::marks_deletes(key.kind)
            && matches!(self.find(&key).await, Err(Error::NotFound(_)))
        {
            // What was in the way was marked as deleted, and now is gone.
            created = create().await;
        }
        match created {
            Ok(object) => self.add_status(&source, &key, resource, &object).await,
            Err(failure) if failure.is_not_found() => {
                let message = format!(
                    "{key} cannot be created: {failure}; check that the namespace exists and the CRDs of {} are installed",
                    group.name()
                );
                Err(Error::message(message))
            }
            Err(failure) => Err(failure.into_error(&key)),
        }
    }

    pub(super) async fn update_stored(&self, resource: Resource, part: Part) -> Result<Resource> {
        let key = Key::of(&resource);
        if let Resource::Node(node) = &resource {
            return self
                .update_node(&key, node, expected_revision(&resource)?)
                .await;
        }
        let (source, group) = self.writable("update", &key)?;
        expected_revision(&resource)?;
        let at = source
            .locate(&key)
            .ok_or_else(|| Error::NotFound(key.clone()))?;
        let object = encode(group, &resource, &key)?;
        let replace =
            |subresource| api::replace(&source.endpoint, &self.client, &at, subresource, &object);
        let subresource = (part == Part::Status && key.kind.has_status()).then_some("status");
        let mut replaced = replace(subresource).await;
        if subresource.is_some() && replaced.as_ref().is_err_and(Failure::is_not_found) {
            // Old CRDs do not keep the status apart.
            replaced = replace(None).await;
        }
        match replaced {
            Ok(object) => read_back(&source, &object, &key),
            // Either there is another object of this name, or none at all.
            Err(failure) if failure.is_other_object() => {
                self.find(&key).await?;
                Err(Error::Conflict(key))
            }
            Err(failure) => Err(failure.into_error(&key)),
        }
    }

    /// Stores the status of a new object, which Kubernetes leaves out of a create.
    async fn add_status(
        &self,
        source: &Source,
        key: &Key,
        mut resource: Resource,
        created: &Value,
    ) -> Result<Resource> {
        let stored = read_back(source, created, key)?;
        let status = |resource: &Resource| resource.to_value().get("status").cloned();
        if !key.kind.has_status() || status(&resource) == status(&stored) {
            return Ok(stored);
        }
        *resource.metadata_mut() = stored.metadata().clone();
        match self.update_stored(resource, Part::Status).await {
            // Whoever changed it in between knows its state better.
            Err(Error::Conflict(_) | Error::NotFound(_)) => Ok(stored),
            result => result,
        }
    }

    /// Writes a node into the annotations of the core Node. Those can be changed together with its status, which is
    /// all that Calico has the permission for.
    async fn update_node(&self, key: &Key, node: &Node, revision: &str) -> Result<Resource> {
        let Found {
            source,
            at,
            mut object,
            ..
        } = self.find(key).await?;
        let mut kube_node = KubeNode::deserialize(&object).map_err(|error| {
            Error::other(format!("{key} cannot be read from Kubernetes"), error)
        })?;
        k8s::update_node(node, &mut kube_node).map_err(|problems| Error::Invalid {
            key: key.clone(),
            problems,
        })?;
        object["metadata"]["annotations"] = json!(kube_node.metadata.annotations);
        object["metadata"]["resourceVersion"] = revision.into();
        let status = Some("status");
        let replaced = api::replace(&source.endpoint, &self.client, &at, status, &object).await;
        let object = replaced.map_err(|failure| failure.into_error(key))?;
        read_back(&source, &object, key)
    }

    pub(super) async fn delete_stored(
        &self,
        key: &Key,
        precondition: &Precondition,
    ) -> Result<Resource> {
        let (_, group) = self.writable("delete", key)?;
        let Found {
            source,
            at,
            object,
            content,
        } = self.find(key).await?;
        let is_readable = content.is_ok();
        // What cannot be read can still be removed.
        let resource = content.unwrap_or_else(|_| unreadable(key, &object));
        check_precondition(precondition, &resource, key)?;
        if is_readable && stored::marks_deletes(key.kind) {
            let mut marked = resource.clone();
            stored::mark(&mut marked);
            let marked = encode(group, &marked, key)?;
            let replaced = api::replace(&source.endpoint, &self.client, &at, None, &marked).await;
            let marked = replaced.map_err(|failure| failure.into_error(key))?;
            let completed = self.complete_delete(&source, &marked).await;
            completed.map_err(|failure| failure.into_error(key))?;
            return Ok(resource);
        }
        let revision = precondition.revision.as_ref().map(|_| revision_of(&object));
        let deleted = api::delete(
            &source.endpoint,
            &self.client,
            &at,
            uid_of(&object),
            revision,
        )
        .await;
        deleted.map_err(|failure| failure.into_error(key))?;
        Ok(resource)
    }

    /// Removes an object that is marked as deleted, unless somebody else did so or it only counts as absent.
    pub(super) async fn complete_delete(
        &self,
        source: &Source,
        object: &Value,
    ) -> Result<(), Failure> {
        if source.crd_group().is_none() {
            return Ok(());
        }
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let at = Selection {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            ..Selection::default()
        };
        match api::delete(&source.endpoint, &self.client, &at, uid_of(object), None).await {
            Err(failure) if failure.is_not_found() => Ok(()),
            other => other,
        }
    }

    /// The source to write to, if the object can be written.
    pub(super) fn writable(&self, operation: &'static str, key: &Key) -> Result<(Source, Group)> {
        default_profile::check_writable(operation, key)?;
        let unsupported = |reason: &str| Error::Unsupported {
            operation,
            key: key.clone(),
            reason: reason.to_owned(),
        };
        if tortie_api::k8s::is_kubernetes_policy(key.kind, &key.name) {
            return Err(unsupported(
                "it is managed through the Kubernetes API; use kubectl",
            ));
        }
        let source = Source::of(key.kind, &self.settings)
            .into_iter()
            .find_map(|source| {
                let group = source.crd_group()?;
                Some((source, group))
            });
        source.ok_or_else(|| {
            unsupported(match key.kind {
                Kind::Node => {
                    "nodes come and go with those of Kubernetes; only updates are possible"
                }
                Kind::WorkloadEndpoint => "endpoints are those of pods; change the pod",
                Kind::Profile => {
                    "profiles are those of namespaces and service accounts; change those"
                }
                Kind::LiveMigration => "migrations are those of KubeVirt; change those",
                _ => "it is managed through the Kubernetes API; use kubectl",
            })
        })
    }
}

fn check_precondition(precondition: &Precondition, resource: &Resource, key: &Key) -> Result<()> {
    let metadata = resource.metadata();
    let Precondition { revision, uid } = precondition;
    let holds = revision
        .as_ref()
        .is_none_or(|revision| revision.0 == metadata.resource_version)
        && uid.as_ref().is_none_or(|uid| *uid == metadata.uid);
    if holds {
        Ok(())
    } else {
        Err(Error::Conflict(key.clone()))
    }
}

fn require_namespace(key: &Key) -> Result<()> {
    if key.kind.is_namespaced() && key.namespace.is_empty() {
        let mut problems = Problems::default();
        problems.add_missing(
            &Path::ROOT.field("metadata").field("namespace"),
            "must be given",
        );
        return Err(Error::Invalid {
            key: key.clone(),
            problems,
        });
    }
    Ok(())
}

fn encode(group: Group, resource: &Resource, key: &Key) -> Result<Value> {
    stored::encode(group, resource).map_err(|problems| Error::Invalid {
        key: key.clone(),
        problems,
    })
}

/// The resource in the API server's answer to a write.
fn read_back(source: &Source, object: &Value, key: &Key) -> Result<Resource> {
    match source.read(object) {
        Reading::Present(resource) => Ok(resource),
        Reading::Invalid(invalid) => Err(Error::message(format!(
            "{key} was stored but cannot be read back: {}",
            invalid.reason
        ))),
        Reading::Absent(_) | Reading::Unrelated => Err(Error::NotFound(key.clone())),
    }
}

/// What is known of an object that cannot be read.
fn unreadable(key: &Key, object: &Value) -> Resource {
    let mut resource = Resource::empty(key.kind);
    let metadata = resource.metadata_mut();
    metadata.name.clone_from(&key.name);
    metadata.namespace.clone_from(&key.namespace);
    revision_of(object).clone_into(&mut metadata.resource_version);
    resource
}

fn uid_of(object: &Value) -> &str {
    object
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
