//! BGP: what a node tells its neighbours, and what it takes from them, as BIRD's configuration.
//!
//! ```text
//! resources ─▶ Inputs ─▶ Plan ─▶ render: text for BIRD 2, or confd's files for BIRD 1.6
//! ```

pub mod bird;
