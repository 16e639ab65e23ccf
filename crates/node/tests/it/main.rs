//! A node's start.

mod startup;
