//! The Kubernetes API as a datastore.
//!
//! Most kinds are custom resources, in one of two API groups. Others are views of Kubernetes' own objects: nodes, pods
//! as endpoints, namespaces and service accounts as profiles, and Kubernetes' policies, which appear among Calico's
//! under names with a prefix and can be changed only through Kubernetes.
//!
//! # Invariants
//! - Every request is bounded in time.
//! - An object that cannot be read or converted never hides others.
//! - A kind that the API server does not know is not taken for one without objects, unless clusters may do without it and
//!   there were none.
//! - A resource marked as deleted does not exist: whoever reads it completes its deletion.

mod affinity_labels;
mod api;
mod config;
mod failure;
mod group;
mod list;
mod presence;
mod revision;
mod source;
mod stored;
mod v1_metadata;
mod watch;
mod write;

pub use config::KubernetesConfig;

use std::fmt;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::Value;
use tortie_api::crd::Group;
use tortie_api::{Kind, Resource};
use tortie_sync::kubernetes::{PAGE_SIZE, Selection};

use self::failure::Refusal as _;
use self::presence::Presence;
use self::source::{Reading, Settings, Source};
use self::watch::Tail;
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::{Key, Query, Revision};
use crate::store::{Invalid, List, Precondition, Store, Watch};

/// A cluster's API server as a datastore.
#[derive(Clone)]
pub struct KubernetesStore {
    client: kube::Client,
    settings: Settings,
    presence: Presence,
}

/// An object of the API server.
struct Found {
    source: Source,
    /// Where it is.
    at: Selection,
    object: Value,
    /// What it stands for, if it can be read.
    content: Result<Resource, Invalid>,
}

impl fmt::Debug for KubernetesStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesStore")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl KubernetesStore {
    /// Prepares to use a cluster. Unless the configuration names the API group, the API server is asked which of them
    /// it serves.
    pub async fn connect(config: &KubernetesConfig) -> Result<Self> {
        let (client, address) = config.client_and_address().await?;
        let group = match config.api_group {
            Some(group) => group,
            None => group::discover(&client, &address).await?,
        };
        let settings = Settings {
            group,
            use_pod_cidr: config.use_pod_cidr,
            veth_prefix: config.veth_prefix.clone(),
        };
        Ok(Self {
            client,
            settings,
            presence: Presence::default(),
        })
    }

    /// The API group of the custom resources.
    pub fn group(&self) -> Group {
        self.settings.group
    }

    /// The same cluster with its custom resources of another group.
    #[must_use]
    pub fn in_group(&self, group: Group) -> Self {
        let mut other = self.clone();
        other.settings.group = group;
        other
    }

    /// A client for requests that have nothing to do with the datastore.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The object behind a key. One that is marked as deleted is removed and counts as absent.
    async fn find(&self, key: &Key) -> Result<Found> {
        for source in Source::of(key.kind, &self.settings) {
            let Some(at) = source.locate(key) else {
                continue;
            };
            let object = match api::get(&source.endpoint, &self.client, &at).await {
                Ok(object) => object,
                Err(failure) if failure.is_not_found() => continue,
                Err(failure) => return Err(failure.into_error(key)),
            };
            let content = match source.read(&object) {
                Reading::Present(resource) if Key::of(&resource) == *key => Ok(resource),
                Reading::Invalid(invalid) => Err(invalid),
                Reading::Absent(_) => {
                    let completed = self.complete_delete(&source, &object).await;
                    completed.map_err(|failure| failure.into_error(key))?;
                    continue;
                }
                Reading::Present(_) | Reading::Unrelated => continue,
            };
            return Ok(Found {
                source,
                at,
                object,
                content,
            });
        }
        Err(Error::NotFound(key.clone()))
    }
}

#[async_trait]
impl Store for KubernetesStore {
    async fn get(&self, key: &Key) -> Result<Resource> {
        if default_profile::is(key) {
            return Ok(default_profile::resource());
        }
        let Found {
            object, content, ..
        } = self.find(key).await?;
        content.map_err(|Invalid { reason, .. }| Error::Unreadable {
            key: key.clone(),
            reason,
            revision: Revision(source::revision_of(&object).to_owned()),
        })
    }

    async fn list(&self, query: &Query) -> Result<List> {
        self.list_labelled(query, "").await
    }

    fn list_in_parts(&self, query: &Query) -> BoxStream<'_, Result<List>> {
        self.parts(query, "", Some(PAGE_SIZE))
    }

    async fn list_affinities(&self, owner: &str) -> Result<List> {
        let query = Query::all(Kind::BlockAffinity);
        let is_owned = |item: &Resource| match item {
            Resource::BlockAffinity(affinity) => affinity.spec.node == owner,
            _ => false,
        };
        let selector = affinity_labels::selector(owner);
        let mut list = self.list_labelled(&query, &selector).await?;
        if list.items.is_empty() {
            // Old versions wrote no labels.
            list = self.list(&query).await?;
        }
        list.items.retain(is_owned);
        Ok(list)
    }

    async fn create(&self, resource: Resource) -> Result<Resource> {
        self.create_stored(resource).await
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        self.update_stored(resource, write::Part::All).await
    }

    async fn update_status(&self, resource: Resource) -> Result<Resource> {
        self.update_stored(resource, write::Part::Status).await
    }

    fn check_deletable(&self, key: &Key) -> Result<()> {
        self.writable("delete", key).map(drop)
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.delete_stored(key, precondition).await
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        let sources = Source::of(query.kind, &self.settings);
        let parts = revision::split(from, sources.len())?;
        let mut tails = Vec::new();
        for (index, source) in sources.into_iter().enumerate() {
            if let Some(at) = source.select(query) {
                let part = parts[index].clone();
                let tail = Tail::start(self, source, query.clone(), at, part).await?;
                tails.push((index, tail));
            }
        }
        Ok(watch::merge(tails, parts))
    }
}

/// A key for messages about all objects of a query.
fn key_of_query(query: &Query) -> Key {
    Key {
        kind: query.kind,
        namespace: query.namespace.clone().unwrap_or_default(),
        name: query.name.clone().unwrap_or_else(|| "*".to_owned()),
    }
}
