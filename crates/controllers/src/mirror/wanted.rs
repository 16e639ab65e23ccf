//! What an object of Kubernetes stands for, decoded to no more than is written.

use std::fmt;
use std::marker::PhantomData;

use kube::Resource as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tortie_operator::{Object, ObjectKey, Owner};
use tortie_store::{Error, Kind, Resource};

use super::Mirrored;
use crate::digest::Digest;
use crate::packed::Packed;

/// The resource that an object of Kubernetes stands for, in a fraction of the object's space.
#[derive(Clone)]
pub(crate) struct Wanted<M> {
    /// Namespace, name and version; then what the resource is to say, as JSON.
    texts: Packed<3>,
    /// Of what the resource is to say; nothing if there is to be none.
    digest: Option<Digest>,
    mirrored: PhantomData<M>,
}

impl<M> Wanted<M> {
    /// What the resource is to say, as JSON; nothing if there is to be none.
    pub(super) fn content(&self) -> Option<(Digest, &str)> {
        Some((self.digest?, self.texts.tail()))
    }
}

impl<M> fmt::Debug for Wanted<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted")
            .field("namespace", &self.texts.head(0))
            .field("name", &self.texts.head(1))
            .field("version", &self.texts.head(2))
            .finish_non_exhaustive()
    }
}

impl<'de, M: Mirrored> Deserialize<'de> for Wanted<M> {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        let object = M::Kube::deserialize(decoder)?;
        let converted = M::convert(&object);
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        for problem in &converted.problems {
            tracing::warn!(controller = M::CONTROLLER, name, %problem, "Part of an object could not be converted");
        }
        let spec = converted.resource.map(|mut resource| {
            resource.set_defaults();
            spec_of(&resource).to_string()
        });
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let version = meta.resource_version.as_deref().unwrap_or_default();
        Ok(Self {
            digest: spec.as_ref().map(|spec| Digest::of_bytes(spec.as_bytes())),
            texts: Packed::new([namespace, name, version], &spec.unwrap_or_default()),
            mirrored: PhantomData,
        })
    }
}

impl<M: Mirrored> Object for Wanted<M> {
    type Kind = M::Kube;

    fn name(&self) -> &str {
        self.texts.head(1)
    }

    fn namespace(&self) -> Option<&str> {
        Some(self.texts.head(0)).filter(|namespace| !namespace.is_empty())
    }

    fn version(&self) -> &str {
        self.texts.head(2)
    }

    fn generation(&self) -> Option<i64> {
        None
    }

    fn is_deleting(&self) -> bool {
        false
    }

    fn has_labels_of(&self, _: &Self) -> bool {
        true
    }

    fn has_annotations_of(&self, _: &Self) -> bool {
        true
    }

    fn controller(&self) -> Option<Owner<'_>> {
        None
    }
}

/// Stands for what a stored resource says.
pub(super) fn digest(resource: &Resource) -> Digest {
    let mut resource = resource.clone();
    resource.set_defaults();
    Digest::of_bytes(spec_of(&resource).to_string().as_bytes())
}

/// A resource of this name that says this.
pub(super) fn resource(kind: Kind, key: &ObjectKey, spec: &Value) -> Result<Resource, Error> {
    let mut metadata = json!({"name": &*key.name});
    if let Some(namespace) = &key.namespace {
        metadata["namespace"] = (**namespace).into();
    }
    let value = json!({"metadata": metadata, "spec": spec});
    Resource::decode_stored(kind, &value)
        .map_err(|error| Error::other("a resource cannot be made of what was converted", error))
}

fn spec_of(resource: &Resource) -> Value {
    let mut value = resource.to_value();
    value.get_mut("spec").map(Value::take).unwrap_or_default()
}
