//! Reads from caches, writes to the API server.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache::CacheOptions;
use crate::caches::Caches;
use crate::key::ObjectKey;
use crate::object::Object;

/// What can be written: any kind that is known when the program is built.
pub trait Writable:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Writable for K where
    K: Resource<DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A client whose reads cost nothing. Copies share the caches.
///
/// What was just written may not be in the cache yet: a reconciler has to bear that, mostly by writing what is right
/// rather than what is missing.
#[derive(Clone)]
pub struct Client {
    client: kube::Client,
    caches: Arc<Caches>,
}

impl Client {
    pub(crate) fn new(client: kube::Client, caches: Arc<Caches>) -> Self {
        Self { client, caches }
    }

    /// The client beneath, for everything else.
    pub fn kube(&self) -> &kube::Client {
        &self.client
    }

    /// An object, from the cache of its type. The first use of a type starts its cache and waits until it is filled.
    pub async fn get<K: Object>(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let cache = self.caches.get::<K>(CacheOptions::default());
        cache.wait_synced().await;
        cache.get(key)
    }

    /// All objects of a type, from its cache.
    pub async fn list<K: Object>(&self) -> Vec<Arc<K>> {
        let cache = self.caches.get::<K>(CacheOptions::default());
        cache.wait_synced().await;
        cache.list()
    }

    /// The objects of a namespace, from the cache of their type.
    pub async fn list_in<K: Object>(&self, namespace: &str) -> Vec<Arc<K>> {
        let cache = self.caches.get::<K>(CacheOptions::default());
        cache.wait_synced().await;
        cache.in_namespace(namespace)
    }

    /// Makes an object.
    pub async fn create<K: Writable>(&self, object: &K) -> kube::Result<K> {
        let api = self.api(object.meta().namespace.as_deref());
        let made = api
            .create(&PostParams::default(), &Written(object.clone()))
            .await?;
        Ok(made.0)
    }

    /// Replaces an object, if it is still the version that was read.
    pub async fn update<K: Writable>(&self, object: &K) -> kube::Result<K> {
        let api = self.api(object.meta().namespace.as_deref());
        let written = Written(object.clone());
        Ok(api
            .replace(&object.name_any(), &PostParams::default(), &written)
            .await?
            .0)
    }

    /// Replaces the status of an object, if it is still the version that was read.
    pub async fn update_status<K: Writable>(&self, object: &K) -> kube::Result<K> {
        let api = self.api(object.meta().namespace.as_deref());
        let written = Written(object.clone());
        Ok(api
            .replace_status(&object.name_any(), &PostParams::default(), &written)
            .await?
            .0)
    }

    /// Changes some fields of an object.
    pub async fn patch<K: Writable, P: Serialize + Debug>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let api = self.api::<K>(key.namespace.as_deref());
        Ok(api
            .patch(&key.name, &PatchParams::default(), patch)
            .await?
            .0)
    }

    /// Changes some fields of an object's status.
    pub async fn patch_status<K: Writable, P: Serialize + Debug>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let api = self.api::<K>(key.namespace.as_deref());
        Ok(api
            .patch_status(&key.name, &PatchParams::default(), patch)
            .await?
            .0)
    }

    /// Makes an object as given, or sets the fields that are given, in the name of a manager of fields. Fields that it
    /// set before and that are not given any more are removed. Fields of others are taken over.
    pub async fn apply<K: Writable>(&self, manager: &str, object: &K) -> kube::Result<K> {
        let api = self.api(object.meta().namespace.as_deref());
        let written = Written(object.clone());
        let params = PatchParams::apply(manager).force();
        Ok(api
            .patch(&object.name_any(), &params, &Patch::Apply(&written))
            .await?
            .0)
    }

    /// Deletes an object. One that is gone already is no failure.
    pub async fn delete<K: Writable>(&self, key: &ObjectKey) -> kube::Result<()> {
        let api = self.api::<K>(key.namespace.as_deref());
        match api.delete(&key.name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            result => result.map(drop),
        }
    }

    fn api<K: Writable>(&self, namespace: Option<&str>) -> Api<Written<K>> {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.caches).finish()
    }
}

/// An object of which only the moment knows whether it has a namespace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Written<K>(K);

impl<K: Resource<DynamicType = ()>> Resource for Written<K> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}
