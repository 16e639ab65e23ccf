//! `tortie render` and `tortie node verify`, on the real kernel in network namespaces of their own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cost;
mod iptables;
mod listing;
mod nftables;
mod support;
mod values;
mod verify;
