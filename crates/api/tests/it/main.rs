//! The kinds against Calico's own answers.

mod conversion_vectors;
mod crds;
