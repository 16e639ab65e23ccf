//! nftables on the real kernel, in network namespaces of the tests' own, beside the program `nft`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod expressions;
mod monitor;
mod packets;
mod sets;
mod support;
mod transactions;
