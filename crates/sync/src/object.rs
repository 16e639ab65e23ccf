//! Objects on their way from the datastore to who is told.

/// A namespace, empty for what is cluster-wide, and a name, in one allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    text: Box<str>,
    namespace_len: usize,
}

/// What is known of an object.
#[derive(Debug)]
pub enum State<V> {
    /// It is there.
    Present(V),
    /// It is there and cannot be read, for this reason. What denies in its place, if that can be told.
    Unreadable(String, Option<Box<V>>),
    /// It is not there.
    Absent,
}

/// An object that is there.
#[derive(Debug)]
pub struct Item<V> {
    pub name: Name,
    /// What differs from one version of the object to the next.
    pub version: Box<str>,
    /// What it is.
    pub state: State<V>,
}

/// A state that the consumer does not know yet.
#[derive(Debug)]
pub(crate) struct Delta<V> {
    pub(crate) name: Name,
    /// Whether this is the first that is said of the object since it last was absent.
    pub(crate) is_new: bool,
    pub(crate) state: State<V>,
}

impl Name {
    /// A name in a namespace, or in none.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            text: [namespace, name].concat().into(),
            namespace_len: namespace.len(),
        }
    }

    /// The namespace; empty if there is none.
    pub fn namespace(&self) -> &str {
        self.text.split_at(self.namespace_len).0
    }

    /// The name without the namespace.
    pub fn name(&self) -> &str {
        self.text.split_at(self.namespace_len).1
    }
}

impl<V> Item<V> {
    /// An object that cannot be read. Lists do not tell the revision of such; the reason is as good.
    pub fn unreadable(name: Name, reason: String, stand_in: Option<Box<V>>) -> Self {
        Self {
            name,
            version: format!("unreadable: {reason}").into(),
            state: State::Unreadable(reason, stand_in),
        }
    }
}
