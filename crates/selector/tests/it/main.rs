//! The selector language from outside.

mod properties;
mod vectors;
