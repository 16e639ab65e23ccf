//! How programs use a datastore: [`connect`] finds and opens the one that is meant, and a [`Client`] reads and writes with
//! Calico's rules, which are the same for every program and on every datastore: defaults, validation, what is refused, what
//! goes with a deletion, and changes by compare-and-swap.
//!
//! # Invariants
//! - What a write is answered depends on the object and the datastore's state alone, not on the program that asks.
//! - Nothing is changed that belongs to an object before it is known that the object can be deleted.

mod client;
pub mod connect;

pub use client::{
    Applied, Client, Modifiable, Planned, check_is_no_copy, identify, retry_conflicts,
};
