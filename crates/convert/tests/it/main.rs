//! From resources to messages and verdicts: small clusters with Calico's own answers, and random worlds.

mod vectors;
mod verdict;
