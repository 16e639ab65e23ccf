//! A resource of any kind.

use std::borrow::Cow;

use serde_json::Value;

use crate::kind::Kind;
use crate::kinds;
use crate::meta::Metadata;
use crate::object::{API_VERSION, Object};
use crate::problem::{Path, Problems};
use crate::schema::{self, Strictness};

/// Why a stored value could not be read as a resource.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name}: {field}: {reason}")]
pub struct DecodeError {
    kind: Kind,
    name: String,
    field: String,
    reason: String,
}

macro_rules! resources {
    ($($kind:ident),* $(,)?) => {
        /// An object whose kind is known only at run time.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Resource {
            $(#[doc = concat!("A ", stringify!($kind), ".")] $kind(Box<kinds::$kind>),)*
        }

        impl Resource {
            /// An empty object of the kind.
            pub fn empty(kind: Kind) -> Self {
                match kind { $(Kind::$kind => Self::$kind(Box::default()),)* }
            }

            /// The kind of the object.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)* }
            }

            /// Name, labels and bookkeeping.
            pub fn metadata(&self) -> &Metadata {
                match self { $(Self::$kind(object) => &object.metadata,)* }
            }

            /// Name, labels and bookkeeping, to change.
            pub fn metadata_mut(&mut self) -> &mut Metadata {
                match self { $(Self::$kind(object) => &mut object.metadata,)* }
            }

            fn decode(kind: Kind, value: &Value) -> Result<Self, serde_path_to_error::Error<serde_json::Error>> {
                let value = &*without_nulls(value);
                Ok(match kind {
                    $(Kind::$kind => Self::$kind(Box::new(serde_path_to_error::deserialize(value)?)),)*
                })
            }
        }

        impl serde::Serialize for Resource {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$kind(object) => object.serialize(serializer),)* }
            }
        }

        $(impl From<kinds::$kind> for Resource {
            fn from(object: kinds::$kind) -> Self {
                Self::$kind(Box::new(object))
            }
        }

        impl TryFrom<Resource> for kinds::$kind {
            type Error = Resource;

            fn try_from(resource: Resource) -> Result<Self, Resource> {
                match resource {
                    Resource::$kind(object) => Ok(*object),
                    other => Err(other),
                }
            }
        })*
    };
}

resources! {
    BgpConfiguration, BgpFilter, BgpPeer, BlockAffinity, CalicoNodeStatus, ClusterInformation, FelixConfiguration,
    GlobalNetworkPolicy, GlobalNetworkSet, HostEndpoint, IpamBlock, IpamConfiguration, IpamHandle, IpPool,
    IpReservation, KubeControllersConfiguration, LiveMigration, NetworkPolicy, NetworkSet, Node, Profile,
    StagedGlobalNetworkPolicy, StagedKubernetesNetworkPolicy, StagedNetworkPolicy, Tier, WorkloadEndpoint,
}

impl Resource {
    /// Reads what a person wrote. Unknown fields, wrong types and values outside of an enum are problems, and all of
    /// them are reported, not only the first.
    pub fn decode_strict(value: &Value) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let mut value = without_nulls(value).into_owned();
        let kind = match envelope_kind(&value, &mut problems) {
            Some(kind) if problems.is_empty() => kind,
            _ => return Err(problems),
        };
        let schema = schema::of(kind);
        schema.normalise(&mut value);
        schema.check(&value, Strictness::Input, &mut problems);
        if !problems.is_empty() {
            schema.check(&value, Strictness::Refused, &mut problems);
            return Err(problems);
        }
        Self::decode(kind, &value).map_err(|error| {
            let mut problems = Problems::default();
            problems.push(&Path::ROOT, None, without_position(error.inner()), None);
            problems.with_field(error.path().to_string())
        })
    }

    /// Reads what a datastore holds. Fields that are not known are left out; below a rule that is remembered.
    pub fn decode_stored(kind: Kind, value: &Value) -> Result<Self, DecodeError> {
        let decoded = match Self::decode(kind, value) {
            // The error may be about such a field.
            Err(error) => {
                let mut known = value.clone();
                match crate::stored::take_unknown(kind, &mut known) {
                    Some(unknown) => Self::decode(kind, &known).map(|mut resource| {
                        unknown.mark(&mut resource);
                        resource
                    }),
                    None => Err(error),
                }
            }
            decoded => decoded,
        };
        decoded.map_err(|error| DecodeError {
            kind,
            name: value
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or("?")
                .to_owned(),
            field: error.path().to_string(),
            reason: without_position(error.inner()),
        })
    }

    /// The object as JSON, with keys in alphabetical order.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("resources have string keys and finite numbers only")
    }

    /// Applies the defaults that storing the object applies.
    pub fn set_defaults(&mut self) {
        crate::defaults::apply(self);
        let mut value = self.to_value();
        if schema::of(self.kind()).apply_defaults(&mut value)
            && let Ok(with_defaults) = Self::decode(self.kind(), &value)
        {
            *self = with_defaults;
        }
    }

    /// Completes what an older version may have stored, so that readers need not know about it.
    pub fn set_read_defaults(&mut self) {
        crate::defaults::apply_on_read(self);
    }

    /// Checks everything that can be checked without looking at other objects.
    pub fn validate(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        schema::of(self.kind()).check(&self.to_value(), Strictness::Stored, &mut problems);
        crate::validate::resource(self, &mut problems);
        problems.into_result()
    }

    /// The tier of a tiered policy, empty for the default one; `None` for other kinds.
    pub fn tier(&self) -> Option<&str> {
        match self {
            Self::NetworkPolicy(policy) => Some(&policy.spec.tier),
            Self::GlobalNetworkPolicy(policy) => Some(&policy.spec.tier),
            Self::StagedNetworkPolicy(staged) => Some(&staged.spec.policy.tier),
            Self::StagedGlobalNetworkPolicy(staged) => Some(&staged.spec.policy.tier),
            _ => None,
        }
    }

    /// `Kind(name)` or `Kind(namespace/name)`, as messages name objects.
    pub fn id(&self) -> String {
        let Metadata {
            name, namespace, ..
        } = self.metadata();
        let separator = if namespace.is_empty() { "" } else { "/" };
        format!("{}({namespace}{separator}{name})", self.kind())
    }
}

/// Reads `apiVersion` and `kind`.
fn envelope_kind(value: &Value, problems: &mut Problems) -> Option<Kind> {
    let root = Path::ROOT;
    let Value::Object(fields) = value else {
        problems.add(
            &root,
            value,
            "must be an object with `apiVersion`, `kind`, `metadata` and `spec`",
        );
        return None;
    };
    match fields.get("apiVersion") {
        Some(Value::String(version)) if version == API_VERSION => {}
        Some(other) => problems.add(
            &root.field("apiVersion"),
            other,
            format!("must be `{API_VERSION}`"),
        ),
        None => problems.add_missing(
            &root.field("apiVersion"),
            format!("must be given: `{API_VERSION}`"),
        ),
    }
    let at = root.field("kind");
    match fields.get("kind") {
        Some(Value::String(name)) => {
            let kind = Kind::from_name(name);
            if kind.is_none() {
                let near = Kind::nearest(name).map(|kind| format!("; did you mean `{kind}`?"));
                let near = near.unwrap_or_default();
                problems.add(&at, name, format!("is not a kind of {API_VERSION}{near}"));
            }
            kind
        }
        Some(other) => {
            problems.add(&at, other, "must be a string, the name of a kind");
            None
        }
        None => {
            problems.add_missing(&at, "must be given, such as `NetworkPolicy`");
            None
        }
    }
}

/// The value without fields that are null, which mean the same as fields left out.
fn without_nulls(value: &Value) -> Cow<'_, Value> {
    fn has_null(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields
                .values()
                .any(|field| field.is_null() || has_null(field)),
            Value::Array(items) => items.iter().any(has_null),
            _ => false,
        }
    }
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|_, field| !field.is_null());
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    if !has_null(value) {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    strip(&mut value);
    Cow::Owned(value)
}

/// The message of a JSON error without its `at line 1 column 2`, which says nothing about a value already parsed.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl<S: crate::Spec> Object<S> {
    /// The object as JSON, with keys in alphabetical order.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("resources have string keys and finite numbers only")
    }
}
