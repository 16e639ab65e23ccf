//! The envelope that all resources share: `apiVersion`, `kind`, `metadata`, `spec` and, for some, `status`.

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::is_default;
use crate::kind::Kind;
use crate::meta::Metadata;

/// The API group and version of every resource.
pub const API_VERSION: &str = "projectcalico.org/v3";

/// The desired state of one kind.
pub trait Spec:
    Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + Sync
{
    /// The kind whose spec this is.
    const KIND: Kind;

    /// Observed state; [`NoStatus`] where the kind has none.
    type Status: Debug
        + Clone
        + Default
        + PartialEq
        + Serialize
        + DeserializeOwned
        + JsonSchema
        + Send
        + Sync;

    /// Whether an empty status is written out. Calico does so for one kind.
    const WRITES_EMPTY_STATUS: bool = false;
}

/// One resource of the kind whose spec is `S`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, bound = "")]
pub struct Object<S: Spec> {
    /// Name, labels and bookkeeping.
    pub metadata: Metadata,
    /// What the user asked for.
    pub spec: S,
    /// What was observed.
    pub status: S::Status,
}

/// The status of kinds that have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoStatus {}

impl<S: Spec> Object<S> {
    /// An object with this name and spec; `namespace` is empty for cluster-wide kinds.
    pub fn new(namespace: &str, name: &str, spec: S) -> Self {
        let metadata = Metadata {
            name: name.into(),
            namespace: namespace.into(),
            ..Metadata::default()
        };
        Self {
            metadata,
            spec,
            status: S::Status::default(),
        }
    }
}

impl<S: Spec> Serialize for Object<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let with_status = S::WRITES_EMPTY_STATUS || !is_default(&self.status);
        let mut object = serializer.serialize_struct("Object", 4 + usize::from(with_status))?;
        object.serialize_field("apiVersion", API_VERSION)?;
        object.serialize_field("kind", S::KIND.as_str())?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        if with_status {
            object.serialize_field("status", &self.status)?;
        }
        object.end()
    }
}
