//! Files that processes share: how they are replaced, and what they are called.
//!
//! # Invariants
//! - Whoever reads a file that is [replaced][replace()] sees all of the old content or all of the new, also after a loss
//!   of power.
//! - A file has the permissions that were asked for from the moment on at which it has content.

pub mod places;
mod replace;

pub use replace::{fill, replace};

/// Permissions of a file that everybody may read.
pub const PUBLIC: u32 = 0o644;

/// Permissions of a file that its owner alone may read.
pub const SECRET: u32 = 0o600;
