//! Names and rules against Calico's own.

mod name_vectors;
mod rendering;
