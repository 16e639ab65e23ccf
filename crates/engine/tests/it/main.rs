//! The engine from outside: states and random worlds.

mod random;
mod states;
