//! Objects with only the fields that are used; the rest is skipped while decoding.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};

use crate::object::Owner;

/// The metadata that [`trimmed!`](crate::trimmed) types keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    pub name: Box<str>,
    /// Its namespace, if its kind has them.
    pub namespace: Option<Box<str>>,
    /// Which one of that name.
    pub uid: Box<str>,
    /// Another one says that the object was changed.
    pub resource_version: Box<str>,
    /// How often its specification was changed.
    pub generation: Option<i64>,
    pub labels: Labels,
    /// Whether it is being deleted.
    #[serde(rename = "deletionTimestamp", deserialize_with = "is_there")]
    pub is_deleting: bool,
    /// The owner that controls it.
    #[serde(rename = "ownerReferences", deserialize_with = "controlling")]
    pub controller: Option<Box<Controlling>>,
}

/// The owner that controls an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Controlling {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    #[serde(default)]
    controller: bool,
}

impl Controlling {
    /// The same, borrowed.
    pub fn as_owner(&self) -> Owner<'_> {
        Owner {
            api_version: &self.api_version,
            kind: &self.kind,
            name: &self.name,
            uid: &self.uid,
        }
    }
}

/// Names and values in order of names, in a third of a map's space.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.binary_search_by(|(own, _)| own.as_ref().cmp(name));
        found.ok().map(|index| self.0[index].1.as_ref())
    }

    /// All of them, in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: serde::Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_unit<E>(self) -> Result<Labels, E> {
                Ok(Labels::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(4).min(64));
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                pairs.sort_unstable_by(|(a, _): &(Box<str>, Box<str>), (b, _)| a.cmp(b));
                Ok(Labels(pairs.into_boxed_slice()))
            }
        }

        decoder.deserialize_any(Pairs)
    }
}

fn is_there<'de, D: serde::Deserializer<'de>>(decoder: D) -> Result<bool, D::Error> {
    Option::<serde::de::IgnoredAny>::deserialize(decoder).map(|value| value.is_some())
}

fn controlling<'de, D>(decoder: D) -> Result<Option<Box<Controlling>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let owners = Option::<Vec<Controlling>>::deserialize(decoder)?;
    let found = owners.into_iter().flatten().find(|owner| owner.controller);
    Ok(found.map(Box::new))
}

/// Defines a type with some of the fields of a kind, for caches that keep no more than is used.
///
/// The type gets a field `metadata` of type [`Meta`](crate::Meta). The other fields are decoded under their names in
/// camel case, and each needs a default for objects that lack it.
///
/// ```
/// use serde::Deserialize;
///
/// tortie_operator::trimmed! {
///     /// Where a pod runs, and its address.
///     pub struct PodAddress: k8s_openapi::api::core::v1::Pod {
///         /// What was asked for.
///         pub spec: PodSpec,
///         /// What became of it.
///         pub status: PodStatus,
///     }
/// }
///
/// #[derive(Clone, Debug, Default, Deserialize)]
/// #[serde(rename_all = "camelCase", default)]
/// pub struct PodSpec {
///     pub node_name: Option<Box<str>>,
/// }
///
/// #[derive(Clone, Debug, Default, Deserialize)]
/// #[serde(rename_all = "camelCase", default)]
/// pub struct PodStatus {
///     #[serde(rename = "podIP")]
///     pub pod_ip: Option<Box<str>>,
/// }
/// ```
#[macro_export]
macro_rules! trimmed {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident: $kind:ty {
            $( $(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, $crate::serde::Deserialize)]
        #[serde(crate = "::tortie_operator::serde", rename_all = "camelCase", default)]
        $visibility struct $name {
            /// What it is called, and the rest of its metadata that is kept.
            pub metadata: $crate::Meta,
            $( $(#[$field_attribute])* $field_visibility $field: $type, )*
        }

        impl $crate::Object for $name {
            type Kind = $kind;

            fn name(&self) -> &str {
                &self.metadata.name
            }

            fn namespace(&self) -> Option<&str> {
                self.metadata.namespace.as_deref()
            }

            fn version(&self) -> &str {
                &self.metadata.resource_version
            }

            fn generation(&self) -> Option<i64> {
                self.metadata.generation
            }

            fn is_deleting(&self) -> bool {
                self.metadata.is_deleting
            }

            fn has_labels_of(&self, other: &Self) -> bool {
                self.metadata.labels == other.metadata.labels
            }

            fn has_annotations_of(&self, _: &Self) -> bool {
                true
            }

            fn controller(&self) -> Option<$crate::Owner<'_>> {
                self.metadata.controller.as_deref().map($crate::Controlling::as_owner)
            }
        }
    };
}
