//! What people and `CalicoNodeStatus` are told of BIRD: peers, routes, and whether it runs.

mod peer;
mod report;
mod sockets;

pub use peer::{HEADINGS, Peer, PeerType, peers};
pub use report::{agent, bgp, routes};
pub use sockets::{Answers, Families, Sockets};
