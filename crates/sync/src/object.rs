//! Objects on their way from the datastore to the consumer.

use std::fmt;

use tortie_api::{Kind, Resource};
use tortie_engine::Update;
use tortie_engine::input::ObjectName;

/// What is listed and watched as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    Kind(Kind),
    Service,
    EndpointSlice,
}

/// A namespace, empty for what is cluster-wide, and a name, in one allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    text: Box<str>,
    namespace_len: usize,
}

/// What is known of an object.
#[derive(Debug)]
pub(crate) enum State {
    Resource(Resource),
    /// Of an object that has no resource.
    Update(Box<Update>),
    /// It is there and cannot be read, for this reason. What denies in its place, if that can be told.
    Unreadable(String, Option<Box<Resource>>),
    Absent,
}

/// An object that is there.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) name: Name,
    /// What differs from one version of the object to the next.
    pub(crate) version: Box<str>,
    pub(crate) state: State,
}

/// A state that the consumer does not know yet.
#[derive(Debug)]
pub(crate) struct Delta {
    pub(crate) name: Name,
    /// Whether this is the first that is said of the object since it last was absent.
    pub(crate) is_new: bool,
    pub(crate) state: State,
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => kind.fmt(f),
            Self::Service => f.write_str("Service"),
            Self::EndpointSlice => f.write_str("EndpointSlice"),
        }
    }
}

impl Name {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            text: [namespace, name].concat().into(),
            namespace_len: namespace.len(),
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        self.text.split_at(self.namespace_len).0
    }

    pub(crate) fn name(&self) -> &str {
        self.text.split_at(self.namespace_len).1
    }

    pub(crate) fn to_object_name(&self) -> ObjectName {
        ObjectName {
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
        }
    }
}

impl Item {
    /// An object that cannot be read. Lists do not tell the revision of such; the reason is as good.
    pub(crate) fn unreadable(name: Name, reason: String, stand_in: Option<Box<Resource>>) -> Self {
        Self {
            name,
            version: format!("unreadable: {reason}").into(),
            state: State::Unreadable(reason, stand_in),
        }
    }
}
