//! Moves: of a cluster's datastore to the newer group of custom resources, of its nodes from flannel's network, of policies
//! to the names that they have now.
//!
//! # Invariants
//! - A move that was interrupted goes on where it was, in whichever process comes next.
//! - What is moved is locked or taken out of use before; what cannot be moved is named, and left as it was.

pub mod datastore_migration;
pub mod flannel;
pub mod policy_names;

/// A variable whose value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}={value:?} cannot be used: {rule}")]
pub struct Refused {
    pub variable: &'static str,
    pub value: String,
    /// What is allowed.
    pub rule: String,
}
