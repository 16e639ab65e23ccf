//! What identifies objects and sets of objects.

use std::fmt;

use serde::{Deserialize, Serialize};
use tortie_api::{Kind, Resource};

pub use tortie_sync::Revision;

/// Identifies one object. The namespace is empty for cluster-wide kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The kind of the object.
    #[serde(with = "kind_name")]
    pub kind: Kind,
    /// Its namespace, or nothing.
    pub namespace: String,
    pub name: String,
}

/// Selects objects of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The kind of the objects.
    #[serde(with = "kind_name")]
    pub kind: Kind,
    /// Only objects of this namespace; `None` for all namespaces and for cluster-wide kinds.
    pub namespace: Option<String>,
    /// Only the object of this name.
    pub name: Option<String>,
}

impl Key {
    /// The key of a cluster-wide object.
    pub fn global(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            kind,
            namespace: String::new(),
            name: name.into(),
        }
    }

    /// The key of a namespaced object.
    pub fn namespaced(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of a resource.
    pub fn of(resource: &Resource) -> Self {
        let metadata = resource.metadata();
        let namespace = if resource.kind().is_namespaced() {
            metadata.namespace.clone()
        } else {
            String::new()
        };
        Self {
            kind: resource.kind(),
            namespace,
            name: metadata.name.clone(),
        }
    }
}

impl Query {
    /// All objects of a kind, in all namespaces.
    pub fn all(kind: Kind) -> Self {
        Self {
            kind,
            namespace: None,
            name: None,
        }
    }

    /// All objects of a kind in one namespace.
    pub fn in_namespace(kind: Kind, namespace: impl Into<String>) -> Self {
        Self {
            kind,
            namespace: Some(namespace.into()),
            name: None,
        }
    }

    /// Whether the query selects the object of this key.
    pub fn selects(&self, key: &Key) -> bool {
        self.kind == key.kind
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == key.namespace)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
    }
}

impl From<&Key> for Query {
    fn from(key: &Key) -> Self {
        let namespace = key.kind.is_namespaced().then(|| key.namespace.clone());
        Self {
            kind: key.kind,
            namespace,
            name: Some(key.name.clone()),
        }
    }
}

/// `Kind(name)` or `Kind(namespace/name)`, as Calico's messages name objects.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        write!(
            f,
            "{}({}{separator}{})",
            self.kind, self.namespace, self.name
        )
    }
}

/// Kinds by their names.
pub(crate) mod kind_name {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};
    use tortie_api::Kind;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    pub(crate) fn serialize<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Kind, D::Error> {
        let name = String::deserialize(deserializer)?;
        Kind::from_name(&name)
            .ok_or_else(|| D::Error::custom(format_args!("{name:?} is not the name of a kind")))
    }
}
