//! Names and rules against Calico's own.

mod name_vectors;
mod parameters;
mod rendering;
