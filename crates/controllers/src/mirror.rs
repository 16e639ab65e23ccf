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
use tortie_client::{Client, identify};
use tortie_operator::{Action, Cache, Controller, Failure, Manager, ObjectKey, Reconciler};
use tortie_store::{Error, Key, Kind, Precondition, Query, Resource};

use crate::digest::Digest;
use crate::follow::{Change, Followed, Follower, Keys, object_key, store_key};
use crate::refusal;
use crate::settings::Mirroring;
use crate::shared::share;

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
        client: datastore.keeping_copies(),
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
        is_there: bool,
    ) -> Result<Action, Failure> {
        let spec: Value = serde_json::from_str(spec).map_err(Failure::never)?;
        let wanted = wanted::resource(M::kind(), key, &spec)?;
        tracing::info!(kind = %M::kind(), %key, "Writing what Kubernetes has to the datastore");
        let before = self.followed.moment();
        let written = self.write(wanted, digest, is_there).await;
        written.map_err(refusal::failure)?;
        if self.followed.note(key, digest, before) {
            return Ok(Action::Done);
        }
        // By now it may be another's again.
        Ok(Action::After(LOOK_AGAIN))
    }

    /// Creates the copy, or replaces what it says; its labels and annotations stay.
    async fn write(&self, wanted: Resource, digest: Digest, is_there: bool) -> Result<(), Error> {
        if !is_there {
            match self.client.create(wanted.clone()).await {
                Err(Error::AlreadyExists(_)) => {}
                created => return created.map(drop),
            }
        }
        let written = self
            .client
            .modify_or_create(wanted.clone(), |copy: &mut Resource| {
                if wanted::digest(copy) != digest {
                    let found = std::mem::replace(copy, wanted.clone());
                    *copy.metadata_mut() = found.metadata().clone();
                }
                Ok::<_, Error>(())
            });
        match written.await {
            Err(Error::Unreadable {
                key,
                reason,
                revision,
            }) => {
                tracing::warn!(%key, reason, "Replacing a copy that somebody made unreadable");
                let mut wanted = wanted;
                let metadata = wanted.metadata_mut();
                metadata.resource_version = revision.0;
                identify(metadata);
                self.client.update(wanted).await.map(drop)
            }
            written => written.map(drop),
        }
    }

    async fn remove(&self, key: &ObjectKey) -> Result<(), Failure> {
        tracing::info!(kind = %M::kind(), %key, "Deleting what Kubernetes has no longer");
        let at = store_key(M::kind(), key);
        match self.client.delete(&at, &Precondition::default()).await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
