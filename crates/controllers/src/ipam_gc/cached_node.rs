//! A node of the cluster, trimmed to what controllers ask of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer};
use tortie_migrate::flannel;
use tortie_operator::{Object, Owner};

use crate::packed::Packed;

/// A node of the cluster.
#[derive(Clone)]
pub struct CachedNode {
    /// Name and version, then the labels as JSON.
    texts: Packed<2>,
}

impl CachedNode {
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        // It was written from such a map.
        serde_json::from_str(self.texts.tail()).unwrap_or_default()
    }

    /// Whether it is on its way from flannel to here, so that its blocks must stay.
    pub(super) fn is_migrating(&self) -> bool {
        let labels = self.labels();
        let network = labels.get(flannel::NETWORK_LABEL);
        network.is_some_and(|network| network != flannel::CALICO)
    }
}

impl<'de> Deserialize<'de> for CachedNode {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wire {
            metadata: Metadata,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Metadata {
            name: Box<str>,
            resource_version: Box<str>,
            labels: Option<BTreeMap<String, String>>,
        }

        let metadata = Wire::deserialize(decoder)?.metadata;
        let labels = metadata.labels.unwrap_or_default();
        let labels = serde_json::to_string(&labels).unwrap_or_default();
        let head = [&*metadata.name, &metadata.resource_version];
        Ok(Self {
            texts: Packed::new(head, &labels),
        })
    }
}

impl fmt::Debug for CachedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedNode")
            .field("name", &self.name())
            .field("version", &self.version())
            .field("labels", &self.texts.tail())
            .finish()
    }
}

impl Object for CachedNode {
    type Kind = k8s_openapi::api::core::v1::Node;

    fn name(&self) -> &str {
        self.texts.head(0)
    }

    fn namespace(&self) -> Option<&str> {
        None
    }

    fn version(&self) -> &str {
        self.texts.head(1)
    }

    fn generation(&self) -> Option<i64> {
        None
    }

    fn is_deleting(&self) -> bool {
        false
    }

    fn has_labels_of(&self, other: &Self) -> bool {
        self.texts.tail() == other.texts.tail()
    }

    fn has_annotations_of(&self, _: &Self) -> bool {
        true
    }

    fn controller(&self) -> Option<Owner<'_>> {
        None
    }
}
