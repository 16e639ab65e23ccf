//! What needs root: netlink with a real kernel.

mod links;
mod nft;
