//! What is wrong with an object, and was left out of the plan.

use std::borrow::Cow;
use std::fmt;

/// A part of an object that the plan does without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The kind of the object, such as `BGPPeer`.
    pub kind: &'static str,
    /// Its name, after its namespace if it has one.
    pub name: String,
    /// The field, such as `spec.peerIP`; `spec` for the object as a whole.
    pub field: Cow<'static, str>,
    /// The value, what would be right, and what follows.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            field,
            reason,
        } = self;
        write!(f, "{kind}({name}): {field}: {reason}")
    }
}
