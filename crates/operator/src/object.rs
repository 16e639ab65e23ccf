//! What a cache can hold: objects of Kubernetes' own types, or smaller ones with only the fields that are used.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use serde::de::DeserializeOwned;

/// An object of a cluster as a cache holds it.
///
/// Every [`kube::Resource`] with a fixed kind is one. A type that keeps less is written with [`trimmed!`](crate::trimmed).
pub trait Object: Clone + Debug + DeserializeOwned + Send + Sync + 'static {
    /// The kind that is asked for at the API server.
    type Kind: Resource<DynamicType = (), Scope: 'static>;

    fn name(&self) -> &str;

    /// Its namespace, if its kind has them.
    fn namespace(&self) -> Option<&str>;

    /// Its resource version: another one says that it was changed.
    fn version(&self) -> &str;

    /// How often its specification was changed, for kinds that count it.
    fn generation(&self) -> Option<i64>;

    /// Whether it is being deleted.
    fn is_deleting(&self) -> bool;

    /// Whether both have the same labels.
    fn has_labels_of(&self, other: &Self) -> bool;

    /// Whether both have the same annotations. Types that keep none say yes.
    fn has_annotations_of(&self, other: &Self) -> bool;

    /// The owner that controls it.
    fn controller(&self) -> Option<Owner<'_>>;

    /// Removes what no controller needs. Called once for each object that a watch gives.
    fn trim(&mut self) {}
}

/// The owner of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Group and version, as in `apps/v1`.
    pub api_version: &'a str,
    pub kind: &'a str,
    /// Its name; it is in the object's namespace, or in none.
    pub name: &'a str,
    /// Which one of that name.
    pub uid: &'a str,
}

impl Owner<'_> {
    /// Whether the owner is of this kind, in any version.
    pub fn is_a<K: Object>(&self) -> bool {
        let group = self
            .api_version
            .rsplit_once('/')
            .map_or("", |(group, _)| group);
        self.kind == K::Kind::kind(&()) && group == K::Kind::group(&())
    }
}

impl<'a> From<&'a OwnerReference> for Owner<'a> {
    fn from(owner: &'a OwnerReference) -> Self {
        Self {
            api_version: &owner.api_version,
            kind: &owner.kind,
            name: &owner.name,
            uid: &owner.uid,
        }
    }
}

impl<K> Object for K
where
    K: Resource<DynamicType = (), Scope: 'static>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    type Kind = K;

    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> Option<&str> {
        self.meta().namespace.as_deref()
    }

    fn version(&self) -> &str {
        self.meta().resource_version.as_deref().unwrap_or_default()
    }

    fn generation(&self) -> Option<i64> {
        self.meta().generation
    }

    fn is_deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    fn has_labels_of(&self, other: &Self) -> bool {
        self.meta().labels == other.meta().labels
    }

    fn has_annotations_of(&self, other: &Self) -> bool {
        self.meta().annotations == other.meta().annotations
    }

    fn controller(&self) -> Option<Owner<'_>> {
        let owners = self.meta().owner_references.as_deref().unwrap_or_default();
        owners
            .iter()
            .find(|owner| owner.controller == Some(true))
            .map(Owner::from)
    }

    /// Who set which field is of no use to a controller, and often the larger part of an object.
    fn trim(&mut self) {
        self.meta_mut().managed_fields = None;
    }
}
