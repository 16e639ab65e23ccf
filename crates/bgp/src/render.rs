//! Plans as texts for BIRD.
//!
//! The texts for both lines say the same; what differs is how.

mod bird1;
mod filter;
mod text;

pub use bird1::{Bird1Files, bird1};
