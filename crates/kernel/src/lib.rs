//! What the node asks of the kernel: nftables over netlink, with no helper program and no C library.
//!
//! [`nft`] speaks to the packet filter and [`conntrack`] to its memory, [`link`] and [`route`] to the routing, whose changes
//! [`monitor`] hears of, [`qdisc`] to the queues of interfaces; [`sysctl`] makes settings; [`poll`] waits for several things at once; [`namespace`] runs code in a network namespace
//! of its own.
//!
//! # Invariants
//! - All `unsafe` is in the private module `sys`.
//! - Nothing here panics on what the kernel answers or on what a caller asks for.

pub mod conntrack;
pub mod link;
pub mod monitor;
pub mod namespace;
mod netlink;
pub mod nft;
pub mod poll;
pub mod qdisc;
pub mod route;
mod sys;
pub mod sysctl;

pub use sys::release_unused_memory;
