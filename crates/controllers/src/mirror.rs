//! The shape of controllers that keep a resource for each object of a kind of Kubernetes.
//!
//! ```text
//! Kubernetes' objects ──decode: the resource that is wanted──▶ cache ──┐
//!                                                                     ├─▶ queue of resources ─▶ compare ─▶ write
//! resources ──list, watch: digest of what they say──▶ followed ───────┘
//! ```
//!
//! # Invariants
//! - Only a resource whose name says that it is such a copy is ever touched.
//! - Only what differs is written, and only by compare-and-swap.
//! - Nothing is removed before all objects of Kubernetes are known.

mod kinds;
mod wanted;

pub(crate) use kinds::{Namespaces, Policies, ServiceAccounts};
pub(crate) use wanted::Wanted;

use std::fmt::Debug;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tortie_api::k8s::{Converted, NamespacedName, View};
use tortie_operator::{Action, Cache, Controller, Failure, Manager, ObjectKey, Reconciler};
use tortie_store::{Client, Error, Key, Kind, Precondition, Query, Resource};

use crate::digest::Digest;
use crate::follow::{Change, Followed, Follower, Keys, object_key, store_key};
use crate::identity;
use crate::settings::Mirroring;
use crate::shared::share;

/// How often a lost race is run again at once; after that with growing pauses.
const ATTEMPTS: usize = 5;

/// When a copy is looked at again that others may have changed while it was written.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// One kind of copies.
pub(crate) trait Mirrored: Debug + Clone + Send + Sync + 'static {
    /// The kind of Kubernetes' objects.
    type Kube: kube::Resource<DynamicType = ()> + DeserializeOwned;

    /// What the objects are seen as.
    const VIEW: View;

    /// Calico's name of the controller.
    const CONTROLLER: &'static str;

    /// What an object stands for, under any name.
    fn convert(object: &Self::Kube) -> Converted<Resource>;

    /// The kind of the copies.
    fn kind() -> Kind {
        Self::VIEW.kind()
    }

    /// The key of the copy of an object.
    fn copy_of(object: &ObjectKey) -> ObjectKey {
        let namespace = object.namespace.as_deref().unwrap_or_default();
        let copy = Self::VIEW.resource_name(namespace, &object.name);
        copy.map_or_else(|| object.clone(), from_view)
    }

    /// The key of the object that has this copy; nothing if it is no copy.
    fn owner_of(copy: &ObjectKey) -> Option<ObjectKey> {
        let namespace = copy.namespace.as_deref().unwrap_or_default();
        let object = Self::VIEW.object_name(namespace, &copy.name);
        object.map(from_view)
    }
}

fn from_view(NamespacedName { namespace, name }: NamespacedName) -> ObjectKey {
    ObjectKey {
        namespace: (!namespace.is_empty()).then(|| share(&namespace)),
        name: name.into(),
    }
}

/// Adds the controller of one kind of copies.
pub(crate) fn add<M: Mirrored>(manager: &Manager, datastore: &Client, mirroring: Mirroring) {
    let wanted: Cache<Wanted<M>> = manager.cache();
    let followed = Followed::default();
    let (keys, changed) = Keys::channel();
    let objects = wanted.clone();
    let following = Follower {
        datastore: datastore.clone(),
        query: Query::all(M::kind()),
        project: Box::new(|resource| {
            let key = object_key(&Key::of(resource));
            M::owner_of(&key).map(|_| wanted::digest(resource))
        }),
        tell: Box::new(move |followed: &Followed<Digest>, change| match change {
            Change::Set { key, .. } => {
                // Before that, all are told together.
                if followed.is_synced() {
                    keys.add(key.clone());
                }
            }
            Change::Gone { key, .. } => {
                if M::owner_of(key).is_some() {
                    keys.add(key.clone());
                }
            }
            Change::Compared { is_first } => {
                // At the start all objects come from their cache.
                let wanted = if is_first { Vec::new() } else { objects.keys() };
                let copies = wanted.iter().map(M::copy_of);
                copies.chain(followed.keys()).for_each(|key| keys.add(key));
            }
        }),
        period: mirroring.period,
    };
    following.start(manager, M::CONTROLLER, followed.clone());
    let mirror = Mirror {
        wanted,
        followed,
        client: datastore.clone(),
    };
    let controller = Controller::builder(M::CONTROLLER, manager)
        .watches::<Wanted<M>>(|object| vec![M::copy_of(&ObjectKey::of(object))])
        .source(changed)
        .workers(mirroring.workers)
        .reconciler(mirror);
    manager.add(controller);
}

struct Mirror<M: Mirrored> {
    wanted: Cache<Wanted<M>>,
    followed: Followed<Digest>,
    client: Client,
}

impl<M: Mirrored> Reconciler for Mirror<M> {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        self.followed.wait_synced().await;
        let owner = M::owner_of(key);
        let wanted = owner.and_then(|owner| self.wanted.get(&owner));
        let wanted = wanted.as_deref().and_then(Wanted::content);
        match (wanted, self.followed.get(key)) {
            (Some((digest, _)), Some(actual)) if digest == actual => {}
            (Some((digest, spec)), actual) => {
                return self.put(key, digest, spec, actual.is_some()).await;
            }
            (None, Some(_)) => self.remove(key).await?,
            (None, None) => {}
        }
        Ok(Action::Done)
    }
}

impl<M: Mirrored> Mirror<M> {
    /// Makes the copy say this.
    async fn put(
        &self,
        key: &ObjectKey,
        digest: Digest,
        spec: &str,
        mut is_there: bool,
    ) -> Result<Action, Failure> {
        let spec: Value = serde_json::from_str(spec).map_err(Failure::never)?;
        tracing::info!(key = %key, "Create/Update {} in Calico datastore", M::kind());
        let mut attempts = 0;
        loop {
            attempts += 1;
            let before = self.followed.moment();
            let outcome = if is_there {
                self.update(key, digest, &spec).await
            } else {
                self.create(key, &spec).await
            };
            match outcome {
                Ok(()) if self.followed.note(key, digest, before) => return Ok(Action::Done),
                // By now it may be another's again.
                Ok(()) => return Ok(Action::After(LOOK_AGAIN)),
                Err(Error::AlreadyExists(_)) if attempts < ATTEMPTS => is_there = true,
                Err(Error::NotFound(_)) if attempts < ATTEMPTS => is_there = false,
                Err(Error::Conflict(_)) if attempts < ATTEMPTS => {}
                Err(error @ Error::Invalid { .. }) => return Err(Failure::never(error)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn create(&self, key: &ObjectKey, spec: &Value) -> Result<(), Error> {
        let resource = wanted::resource(M::kind(), key, spec)?;
        self.client.create(resource).await?;
        tracing::debug!(key = %key, "Successfully created {}", M::kind());
        Ok(())
    }

    /// Replaces what the copy says; its labels and annotations stay.
    async fn update(&self, key: &ObjectKey, digest: Digest, spec: &Value) -> Result<(), Error> {
        let at = store_key(M::kind(), key);
        let current = match self.client.get(&at).await {
            Ok(current) => current,
            Err(Error::Other { message, .. }) => {
                // Somebody made it unreadable. It is ours, so it can go.
                tracing::warn!(key = %key, reason = message, "Replacing a {} that cannot be read", M::kind());
                let _ = self
                    .client
                    .store()
                    .delete(&at, &Precondition::default())
                    .await;
                return self.create(key, spec).await;
            }
            Err(error) => return Err(error),
        };
        if wanted::digest(&current) == digest {
            return Ok(());
        }
        let mut resource = wanted::resource(M::kind(), key, spec)?;
        *resource.metadata_mut() = current.metadata().clone();
        identity::complete(resource.metadata_mut());
        self.client.update(resource).await.map(drop)
    }

    async fn remove(&self, key: &ObjectKey) -> Result<(), Failure> {
        tracing::info!(key = %key, "Deleting {} from Calico datastore", M::kind());
        let at = store_key(M::kind(), key);
        match self.client.delete(&at, &Precondition::default()).await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
