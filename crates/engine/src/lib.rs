//! The policy engine: what the datastore holds, turned into what this node must enforce.

mod bytes;
mod compile;
mod config;
mod engine;
mod id_set;
pub mod input;
mod items;
mod labels;
mod locals;
pub mod message;
mod names;
mod network;
mod policies;
mod postings;
mod profiles;
mod program;
pub mod record;
mod roles;
pub mod rule_id;
mod selectors;
mod sets;
mod slab;
pub mod verdict;

pub use config::{Config, Overlaps, RoutesSent, Scope};
pub use engine::Engine;
pub use input::Update;
pub use message::Message;

/// Whether a value is the one that its type starts with; such fields are left out of the serialised form.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An index of a slab in the 32 bits in which it is kept. Four thousand million objects do not fit into memory.
fn index(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 objects")
}
