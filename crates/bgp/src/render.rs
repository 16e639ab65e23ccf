//! Plans as texts for BIRD.
//!
//! The texts for both lines say the same; what differs is how.

mod bird1;
mod bird2;
mod filter;
mod text;

pub use bird1::{Bird1Files, bird1};
pub use bird2::{bird2, bird2_problems};
