//! Datastores: one trait and three drivers.
//!
//! A driver keeps [`Resource`]s under [`Key`]s and gives each write a [`Revision`]. It knows nothing of defaults or
//! validation; those are the business of `tortie_client`.
//!
//! # Invariants
//! - Every write is a compare-and-swap or a create: a lost race is [`Error::Conflict`] or [`Error::AlreadyExists`],
//!   never a lost update.
//! - A watch from revision R delivers every change after R once and in order, or fails with [`Error::Gone`].
//! - An object that cannot be read is reported beside the others, never instead of them.

mod cause;
mod default_profile;
pub mod embedded;
mod error;
pub mod etcd;
mod following;
pub mod ipam_names;
mod json;
mod key;
pub mod kubernetes;
mod numbers;
pub mod shared;
pub mod socket;
mod store;

pub use error::{Error, Result};
pub use following::{StoreSource, watch_resumed};
pub use key::{Key, Query, Revision};
pub use numbers::{ChangeNumbers, Numbering};
pub use store::{
    Change, Compacted, Event, Invalid, List, Precondition, Store, Verified, Watch, Write,
};

pub use tortie_api::{Kind, Resource};
