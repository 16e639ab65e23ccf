//! Objects as they come from the API server.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::{Deserialize, Deserializer};

use crate::key::ObjectKey;
use crate::object::Object;

/// An object of a list or a watch. If `CAREFUL`, one that cannot be decoded is no error, which costs twice the time.
#[derive(Clone, Debug)]
pub(super) struct Wire<K, const CAREFUL: bool> {
    /// Only the resource version, which the watch needs.
    meta: ObjectMeta,
    pub(super) decoded: Decoded<K>,
}

#[derive(Clone, Debug)]
pub(super) enum Decoded<K> {
    Object(K),
    Broken { key: ObjectKey, error: String },
}

impl<'de, K: Object, const CAREFUL: bool> Deserialize<'de> for Wire<K, CAREFUL> {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        if !CAREFUL {
            return K::deserialize(decoder).map(Self::from);
        }
        let value = serde_json::Value::deserialize(decoder)?;
        let error = match K::deserialize(&value) {
            Ok(object) => return Ok(Self::from(object)),
            Err(error) => error.to_string(),
        };
        let text = |field: &str| value.pointer(field).and_then(|text| text.as_str());
        let key = ObjectKey {
            namespace: text("/metadata/namespace").map(Into::into),
            name: text("/metadata/name").unwrap_or_default().into(),
        };
        Ok(Self {
            meta: with_version(text("/metadata/resourceVersion").unwrap_or_default()),
            decoded: Decoded::Broken { key, error },
        })
    }
}

impl<K: Object, const CAREFUL: bool> From<K> for Wire<K, CAREFUL> {
    fn from(object: K) -> Self {
        Self {
            meta: with_version(object.version()),
            decoded: Decoded::Object(object),
        }
    }
}

fn with_version(version: &str) -> ObjectMeta {
    ObjectMeta {
        resource_version: Some(version.to_owned()),
        ..ObjectMeta::default()
    }
}

impl<K: Object, const CAREFUL: bool> Resource for Wire<K, CAREFUL> {
    type DynamicType = ();
    /// So that it can be asked for in all namespaces or in one; kinds of the cluster are asked for in all.
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::Kind::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::Kind::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::Kind::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::Kind::plural(&())
    }

    fn metadata_api() -> bool {
        K::Kind::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
