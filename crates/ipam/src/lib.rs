//! Address management as Calico does it: the same objects in the datastore, the same algorithms, so that both can work on
//! one cluster.
//!
//! Pools are cut into blocks. A node claims blocks and gives their addresses to its workloads; a block knows who holds
//! each of its addresses, an affinity who owns the block, and a handle in which blocks its holder has addresses.
//!
//! [`Ipam`] works on any [`Store`](tortie_store::Store): that trait is all it needs of the world, and there is no other
//! abstraction of it here. What it decides by is in pure modules: [`block`], [`handle`], [`pools`], [`reservations`],
//! [`walk`], [`config`], [`report`].
//!
//! # Invariants
//! - An address has one holder at a time: it is given out and taken back only by a compare-and-swap of its block.
//! - Whoever stops between any two writes leaves at most a handle that counts too many addresses, an empty block, or a claim
//!   that is not confirmed. A later operation on the same handle or host repairs that; [`report::check`] finds it.
//! - What [`Ipam`] remembers may be outdated. It is written only on condition that it is not, and before an answer that no
//!   write confirms it is read again. Pools and settings are part of the condition where the datastore can write several
//!   objects at once, and else at most [`MAX_AGE`] old.

pub mod block;
pub mod config;
mod error;
mod go_rand;
pub mod handle;
mod ipam;
mod nets;
pub mod pools;
pub mod report;
mod request;
pub mod reservations;
pub mod walk;

pub use error::{Error, Mismatch, Result};
pub use ipam::{
    AddressOwners, BlockUtilization, Clock, Ipam, MAX_AGE, PoolUtilization, Removed, SplitPool,
    machine_handle, machine_of_handle, split_pool,
};
pub use request::{
    AssignIp, Assigned, Assignment, AutoAssign, ClaimedBlocks, EnsureBlock, Holder, HostReserved,
    LOAD_BALANCER, Owner, OwnerKind, ReleaseIp, Released, Shortfall, Use, attribute,
};
