//! Nodes, pods and strangers as network namespaces, and packets between them.
//!
//! ```no_run
//! # fn main() -> Result<(), tortie_testkit::net::Error> {
//! use tortie_testkit::net::{Node, Packet, Ports, Probe, Prober};
//!
//! let mut node = Node::new()?;
//! let a = node.add_pod("cali1", &["10.65.0.1".parse().unwrap()])?;
//! let b = node.add_pod("cali2", &["10.65.0.2".parse().unwrap()])?;
//! node.route_to(&a)?;
//! node.route_to(&b)?;
//!
//! let mut prober = Prober::new();
//! let (from, to) = (prober.add_site(&a.namespace), prober.add_site(&b.namespace));
//! let web = Probe {
//!     from,
//!     to,
//!     source: a.addresses[0],
//!     destination: b.addresses[0],
//!     packet: Packet::Tcp(Ports::to(80)),
//! };
//! assert_eq!(prober.probe_all(&[web])?, [true]);
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - Namespaces have no names and no files: they end with the values, and with the process.
//! - Nothing outside them changes. Making them needs `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`.

mod datagrams;
mod dialogue;
mod error;
mod fabric;
mod namespace;
mod passage;
mod probe;
mod topology;

pub use datagrams::Datagrams;
pub use dialogue::{Dialogue, ping};
pub use error::{Error, Result};
pub use fabric::Fabric;
pub use namespace::Namespace;
pub use passage::open_passage;
pub use probe::{Arrival, Packet, Ports, Probe, Prober, Site};
pub use topology::{External, Node, Pod};
