//! The engine from outside: states, random worlds, verdicts, and Calico's own answers.

mod random;
mod states;
mod vectors;
mod verdict;
