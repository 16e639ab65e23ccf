//! Calico's resource kinds: types with their exact wire form, defaults, validation, CRD schemas and table columns,
//! and the conversions from Kubernetes objects.
//!
//! The way of an object that a person wrote: [`Resource::decode_strict`] (unknown fields, types, enums), then
//! [`Resource::set_defaults`], then [`Resource::validate`]. An object read from a datastore goes through
//! [`Resource::decode_stored`], which ignores what it does not know.
//!
//! # Invariants
//! - Pure: no I/O, no clock, no runtime.
//! - Field-level rules are attributes of the types, so that the CRD, the strict decoder and the validator cannot
//!   disagree; only rules that join several fields are code, in [`mod@validate`].
//! - Nothing here panics on data.

pub mod asks_for_bgp;
pub mod columns;
pub mod crd;
mod defaults;
pub mod k8s;
mod kind;
pub mod kinds;
pub mod meta;
pub mod names;
pub mod net;
mod object;
mod problem;
mod repeated;
mod resource;
pub mod scalar;
mod schema;
mod stored;
pub mod validate;
pub mod yaml;

pub use kind::{Kind, Scope};
pub use kinds::*;
pub use object::{API_VERSION, NoStatus, Object, Spec};
pub use problem::{Path, Problem, Problems};
pub use resource::{DecodeError, Resource};
pub use stored::stand_in;

/// Whether a value is the one that its type starts with; such fields are left out of the wire form.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
