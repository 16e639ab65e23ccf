//! Where in the history of its objects a source is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A state of a source, or of one object in it. Only the source that gave it can tell what it means; it can be compared
/// for equality and handed back, nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Revision(pub String);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
