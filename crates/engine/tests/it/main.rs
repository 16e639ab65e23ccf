//! The engine from outside: states and random worlds.

mod host_parameters;
mod random;
mod states;
