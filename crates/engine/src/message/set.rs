//! IP sets and their members.

use std::borrow::Borrow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use serde::{Serialize, Serializer};
use tortie_api::scalar::Protocol;

/// The identifier of a set, a hash of what it stands for: the same on every node and in Calico.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(Arc<str>);

/// What the members of a set are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum SetType {
    /// Address, protocol and port.
    #[serde(rename = "IP_AND_PORT")]
    IpAndPort,
    /// Networks.
    #[serde(rename = "NET")]
    Net,
}

/// A member of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// A network, or a single address as a network of one.
    Net(IpNet),
    /// A port of an address.
    Port(IpAddr, PortProtocol, u16),
}

/// A protocol that has ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortProtocol {
    Tcp,
    Udp,
    Sctp,
}

// === impl SetId ===

impl SetId {
    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for SetId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for SetId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for SetId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

// === impl Member ===

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(net) => net.fmt(f),
            Self::Port(address, protocol, port) => write!(f, "{address},{protocol}:{port}"),
        }
    }
}

impl Serialize for Member {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

// === impl PortProtocol ===

impl PortProtocol {
    /// The protocol that a port of an endpoint has: TCP unless it is UDP or SCTP.
    pub fn of_port(protocol: &Protocol) -> Self {
        match protocol.number() {
            Some(17) => Self::Udp,
            Some(132) => Self::Sctp,
            _ => Self::Tcp,
        }
    }

    /// The number of the protocol.
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }
}

impl fmt::Display for PortProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        })
    }
}
