//! Which object: namespace and name, cheap to copy.

use std::fmt;
use std::sync::Arc;

use tortie_sync::Name;

use crate::object::Object;

/// Which object of a kind. The order is by namespace, then by name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Nothing for kinds that belong to the cluster.
    pub namespace: Option<Arc<str>>,
    /// The name within the namespace, or within the cluster.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// An object of a namespace.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// An object of the cluster.
    pub fn cluster(name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: None,
            name: name.into(),
        }
    }

    /// The key of an object.
    pub fn of<K: Object>(object: &K) -> Self {
        Self {
            namespace: object.namespace().map(Arc::from),
            name: Arc::from(object.name()),
        }
    }
}

impl From<&Name> for ObjectKey {
    fn from(name: &Name) -> Self {
        let namespace = name.namespace();
        Self {
            namespace: (!namespace.is_empty()).then(|| namespace.into()),
            name: name.name().into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
