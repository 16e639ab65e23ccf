//! The replay of what fuzzers found.

mod replay;
