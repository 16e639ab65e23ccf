//! The client: a store with Calico's rules for what may be created, changed and deleted.
//!
//! Every write passes through here: defaults, validation, the checks that look at other objects (tiers, pools,
//! filters), and what is to be removed with an object. Reads complete what older versions stored.

mod deletion;
mod initialize;
mod modify;
mod references;

pub use modify::{Modifiable, retry_conflicts};

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::jiff::Timestamp;
use tortie_api::k8s::is_kubernetes_policy;
use tortie_api::meta::{Metadata, Time};
use tortie_api::{Kind, Path, Problems, Resource, validate};

use tortie_store::{Error, Key, List, Query, Result, Revision, Store, Watch};

/// A store with Calico's rules.
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Store>,
    /// Tiers that were there when last looked at, so that many policies do not each ask again.
    seen_tiers: Arc<Mutex<HashMap<String, Instant>>>,
    /// Objects that are taken to be there.
    assumed: Arc<HashSet<Key>>,
    /// Whether it writes what stands for objects of Kubernetes.
    keeps_copies: bool,
}

/// What an apply did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// There was no such object.
    Created,
    /// The object was changed.
    Updated,
    /// The object already was as asked for; nothing was written.
    Unchanged,
}

/// What an apply would do.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The object that is there, if there is one.
    pub old: Option<Resource>,
    /// What would be there afterwards.
    pub new: Resource,
    /// What would be done.
    pub applied: Applied,
}

impl Client {
    /// A client of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            seen_tiers: Arc::default(),
            assumed: Arc::default(),
            keeps_copies: false,
        }
    }

    /// The store below, for callers that keep Calico's rules themselves.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Reads one object.
    pub async fn get(&self, key: &Key) -> Result<Resource> {
        let mut resource = self.store.get(key).await?;
        resource.set_read_defaults();
        Ok(resource)
    }

    /// Reads all objects that a query selects.
    pub async fn list(&self, query: &Query) -> Result<List> {
        let mut list = self.store.list(query).await?;
        list.items.iter_mut().for_each(Resource::set_read_defaults);
        Ok(list)
    }

    /// Reads the same in parts, for those who need not have everything in memory at once; see [`Store::list_in_parts`].
    pub fn list_in_parts(&self, query: &Query) -> BoxStream<'_, Result<List>> {
        let parts = self.store.list_in_parts(query).map_ok(|mut list| {
            list.items.iter_mut().for_each(Resource::set_read_defaults);
            list
        });
        parts.boxed()
    }

    /// Follows changes after a revision. The objects come as stored.
    pub async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        self.store.watch(query, from).await
    }

    /// Stores a new object, with its defaults.
    pub async fn create(&self, resource: Resource) -> Result<Resource> {
        let resource = self.check_create(resource).await?;
        self.store.create(resource).await
    }

    /// Stores a new object as it is: for one that overrides others field by field, where a default would override, too.
    pub async fn create_without_defaults(&self, resource: Resource) -> Result<Resource> {
        let resource = self.checked_new(resource).await?;
        self.store.create(resource).await
    }

    /// What [`Client::create`] would store, if nothing is wrong with it. Whether there is such an object already is for
    /// the store to say.
    pub async fn check_create(&self, mut resource: Resource) -> Result<Resource> {
        resource.set_defaults();
        self.checked_new(resource).await
    }

    async fn checked_new(&self, mut resource: Resource) -> Result<Resource> {
        self.check_owner("create", &resource)?;
        let mut problems = Problems::default();
        let version = &resource.metadata().resource_version;
        if !version.is_empty() {
            let root = Path::ROOT;
            let metadata = root.field("metadata");
            problems.add(
                &metadata.field("resourceVersion"),
                version,
                "must not be given for a create",
            );
        }
        Self::check(&resource, problems)?;
        self.check_references_of_new(&resource).await?;
        identify(resource.metadata_mut());
        Ok(resource)
    }

    /// Replaces an object. The given object must carry the revision, UID and creation time of the one that it replaces,
    /// as a read gave them.
    pub async fn update(&self, resource: Resource) -> Result<Resource> {
        let resource = self.check_update(resource).await?;
        self.store.update(resource).await
    }

    /// What [`Client::update`] would store, if nothing is wrong with it. Whether the revision is current is for the store
    /// to say.
    pub async fn check_update(&self, mut resource: Resource) -> Result<Resource> {
        self.check_owner("update", &resource)?;
        let mut problems = Problems::default();
        let root = Path::ROOT;
        let at = root.field("metadata");
        let metadata = resource.metadata();
        for (name, is_missing) in [
            ("resourceVersion", metadata.resource_version.is_empty()),
            ("uid", metadata.uid.is_empty()),
            ("creationTimestamp", metadata.creation_timestamp.is_none()),
        ] {
            // Kinds without metadata in the datastore have no identity to check.
            if is_missing && (name == "resourceVersion" || has_metadata(resource.kind())) {
                problems.add_missing(
                    &at.field(name),
                    "must be given for an update, as a read gave it",
                );
            }
        }
        resource.set_defaults();
        if let Resource::IpPool(pool) = &resource {
            match self.get(&Key::of(&resource)).await {
                Ok(Resource::IpPool(old)) => {
                    validate::check_pool_change(&old, pool, &mut problems);
                }
                // Whether it is there is for the store to say, and what cannot be read may be put right.
                Ok(_) | Err(Error::NotFound(_) | Error::Unreadable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Self::check(&resource, problems)?;
        self.check_tier_of_changed(&resource).await?;
        self.check_references(&resource).await?;
        Ok(resource)
    }

    /// Replaces the observed state of an object.
    pub async fn update_status(&self, mut resource: Resource) -> Result<Resource> {
        identify(resource.metadata_mut());
        self.store.update_status(resource).await
    }

    /// Creates the object, or changes the existing one to be like it. A revision in the given object must be the
    /// current one; labels and annotations are merged over the existing ones, all else is replaced.
    pub async fn apply(&self, resource: Resource) -> Result<(Resource, Applied)> {
        self.create_or_replace(resource, true).await
    }

    /// Changes an existing object to be like the given one; [`Error::NotFound`] if there is none.
    pub async fn replace(&self, resource: Resource) -> Result<(Resource, Applied)> {
        self.create_or_replace(resource, false).await
    }

    /// What [`Client::apply`] would do, if nothing is wrong with the object. Nothing is written.
    pub async fn plan_apply(&self, resource: &Resource) -> Result<Planned> {
        self.plan(resource, true).await
    }

    /// What [`Client::replace`] would do, if nothing is wrong with the object. Nothing is written.
    pub async fn plan_replace(&self, resource: &Resource) -> Result<Planned> {
        self.plan(resource, false).await
    }

    async fn create_or_replace(
        &self,
        resource: Resource,
        may_create: bool,
    ) -> Result<(Resource, Applied)> {
        // Reading again does not help a caller who insists on a revision.
        let may_retry = resource.metadata().resource_version.is_empty();
        let is_conflict = |error: &Error| may_retry && error.is_conflict();
        retry_conflicts(is_conflict, || async {
            let planned = self.plan(&resource, may_create).await?;
            self.carry_out(planned).await
        })
        .await
    }

    async fn plan(&self, resource: &Resource, may_create: bool) -> Result<Planned> {
        self.check_owner("apply", resource)?;
        match self.get(&Key::of(&named(resource))).await {
            Err(Error::NotFound(_))
                if may_create && resource.metadata().resource_version.is_empty() =>
            {
                Ok(Planned {
                    old: None,
                    new: self.check_create(resource.clone()).await?,
                    applied: Applied::Created,
                })
            }
            Err(error) => Err(error),
            Ok(old) => self.plan_change(resource, old).await,
        }
    }

    /// What makes `old` like `wanted`, unless it is already.
    async fn plan_change(&self, wanted: &Resource, old: Resource) -> Result<Planned> {
        let mut new = wanted.clone();
        let given = wanted.metadata();
        let kept = old.metadata();
        if !given.resource_version.is_empty() && given.resource_version != kept.resource_version {
            return Err(Error::Conflict(Key::of(&old)));
        }
        let mut metadata = kept.clone();
        metadata.labels.extend(given.labels.clone());
        metadata.annotations.extend(given.annotations.clone());
        *new.metadata_mut() = metadata;
        keep_status(&mut new, &old);
        new.set_defaults();
        let (new, applied) = if new == old {
            (new, Applied::Unchanged)
        } else {
            (self.check_update(new).await?, Applied::Updated)
        };
        Ok(Planned {
            old: Some(old),
            new,
            applied,
        })
    }

    async fn carry_out(&self, planned: Planned) -> Result<(Resource, Applied)> {
        let Planned { new, applied, .. } = planned;
        let stored = match applied {
            Applied::Created => self.store.create(new).await?,
            Applied::Updated => self.store.update(new).await?,
            Applied::Unchanged => new,
        };
        Ok((stored, applied))
    }

    /// The same client, which takes these objects to be there: for plans in which they come before what refers to them.
    #[must_use]
    pub fn assuming(&self, keys: impl IntoIterator<Item = Key>) -> Self {
        Self {
            assumed: Arc::new(keys.into_iter().collect()),
            ..self.clone()
        }
    }

    /// The same client, for who keeps resources like the objects of Kubernetes that they stand for: nobody else may write
    /// those.
    #[must_use]
    pub fn keeping_copies(&self) -> Self {
        Self {
            keeps_copies: true,
            ..self.clone()
        }
    }

    fn check_owner(&self, operation: &'static str, resource: &Resource) -> Result<()> {
        if self.keeps_copies {
            return Ok(());
        }
        check_is_no_copy(operation, resource)
    }

    /// What can be said of a resource that is to be written, without a datastore.
    pub fn check_alone(mut resource: Resource) -> Result<()> {
        check_is_no_copy("write", &resource)?;
        resource.set_defaults();
        Self::check(&resource, Problems::default())
    }

    fn check(resource: &Resource, mut problems: Problems) -> Result<()> {
        if let Err(more) = resource.validate() {
            problems.extend(more);
        }
        problems.into_result().map_err(|problems| Error::Invalid {
            key: Key::of(resource),
            problems,
        })
    }
}

/// Refuses to write what is made of policies of Kubernetes.
pub fn check_is_no_copy(operation: &'static str, resource: &Resource) -> Result<()> {
    let key = Key::of(resource);
    if !is_kubernetes_policy(key.kind, &key.name) {
        return Ok(());
    }
    let reason = "kubernetes network policies must be managed through the kubernetes API";
    Err(Error::Unsupported {
        operation,
        key,
        reason: reason.to_owned(),
    })
}

/// Gives an object what tells it from others of the same name, at other times, where it has nothing.
pub fn identify(metadata: &mut Metadata) {
    if metadata.uid.is_empty() {
        metadata.uid = uuid::Uuid::new_v4().to_string();
    }
    metadata.creation_timestamp.get_or_insert_with(now);
}

/// The resource with the name that follows from its spec, where it has none of its own.
fn named(resource: &Resource) -> Resource {
    let mut resource = resource.clone();
    if resource.metadata().name.is_empty() {
        resource.set_defaults();
    }
    resource
}

/// Whether the datastore keeps metadata of objects of this kind.
fn has_metadata(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::BlockAffinity | Kind::IpamBlock | Kind::IpamHandle
    )
}

/// A user who writes the desired state leaves the observed state alone.
fn keep_status(new: &mut Resource, old: &Resource) {
    match (new, old) {
        (Resource::Tier(new), Resource::Tier(old)) => new.status = old.status.clone(),
        (Resource::IpPool(new), Resource::IpPool(old)) => new.status = old.status.clone(),
        (Resource::CalicoNodeStatus(new), Resource::CalicoNodeStatus(old)) => {
            new.status = old.status.clone();
        }
        (
            Resource::KubeControllersConfiguration(new),
            Resource::KubeControllersConfiguration(old),
        ) => {
            new.status = old.status.clone();
        }
        _ => {}
    }
}

/// The present, in the whole seconds that timestamps of objects have.
fn now() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
