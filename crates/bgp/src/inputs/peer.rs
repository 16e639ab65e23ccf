//! A `BGPPeer` with what its texts say.

use std::net::IpAddr;

use tortie_api::BgpPeer;
use tortie_api::kinds::bgp_peer::BgpPeerSpec;
use tortie_api::net;
use tortie_selector::{Labels, Selector};

/// A `BGPPeer`, with its selectors read.
#[derive(Debug, Clone)]
pub(crate) struct PeerEntry {
    pub(crate) spec: BgpPeerSpec,
    pub(crate) nodes: Nodes,
    pub(crate) remote: Remote,
    /// Whether this node opens the session.
    pub(crate) forward: bool,
    /// Whether this node may be what the session is opened to.
    pub(crate) reverse: bool,
}

/// Which nodes open the session.
#[derive(Debug, Clone)]
pub(crate) enum Nodes {
    All,
    Named(String),
    Selected(Selector),
    /// With the reason.
    Unreadable(String),
}

/// To whom.
#[derive(Debug, Clone)]
pub(crate) enum Remote {
    Address(IpAddr, Option<u16>),
    Selected(Selector),
    Workloads,
    /// With the field, and the reason.
    Unreadable(&'static str, String),
}

impl PeerEntry {
    pub(crate) fn new(peer: BgpPeer) -> Self {
        let spec = peer.spec;
        Self {
            nodes: Nodes::of(&spec),
            remote: Remote::of(&spec),
            spec,
            forward: false,
            reverse: false,
        }
    }

    /// The fields that cannot be read, so that it is not known whom it is about, each with the reason.
    pub(crate) fn unreadable(&self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        if let Nodes::Unreadable(reason) = &self.nodes {
            fields.push(("spec.nodeSelector", reason.clone()));
        }
        if let Remote::Unreadable(field, reason) = &self.remote {
            fields.push((*field, reason.clone()));
        }
        fields
    }

    /// Whether a plan of this node can depend on it. All nodes report one of which it is not known which nodes it is for, and
    /// only those that it is for report the rest.
    pub(crate) fn concerns(&self) -> bool {
        self.forward || self.reverse || matches!(self.nodes, Nodes::Unreadable(_))
    }

    /// Whether it is for all nodes, without saying so by a selector.
    pub(crate) fn is_global(&self) -> bool {
        matches!(self.nodes, Nodes::All)
    }
}

impl Nodes {
    fn of(spec: &BgpPeerSpec) -> Self {
        if !spec.node_selector.is_empty() {
            return match Selector::parse(&spec.node_selector) {
                Ok(selector) => Self::Selected(selector),
                Err(error) => Self::Unreadable(unreadable(&spec.node_selector, &error)),
            };
        }
        if spec.node.is_empty() {
            Self::All
        } else {
            Self::Named(spec.node.clone())
        }
    }

    pub(crate) fn include(&self, name: &str, labels: &impl Labels) -> bool {
        match self {
            Self::All => true,
            Self::Named(node) => node == name,
            Self::Selected(selector) => selector.matches(labels),
            Self::Unreadable(_) => false,
        }
    }
}

impl Remote {
    fn of(spec: &BgpPeerSpec) -> Self {
        if !spec.local_workload_selector.is_empty() {
            return match Selector::parse(&spec.local_workload_selector) {
                Ok(_) => Self::Workloads,
                Err(error) => Self::Unreadable(
                    "spec.localWorkloadSelector",
                    unreadable(&spec.local_workload_selector, &error),
                ),
            };
        }
        if !spec.peer_selector.is_empty() {
            return match Selector::parse(&spec.peer_selector) {
                Ok(selector) => Self::Selected(selector),
                Err(error) => {
                    Self::Unreadable("spec.peerSelector", unreadable(&spec.peer_selector, &error))
                }
            };
        }
        match net::parse_ip_port(&spec.peer_ip) {
            Some((address, port)) if super::is_unicast(address) => Self::Address(address, port),
            _ => Self::Unreadable(
                "spec.peerIP",
                format!(
                    "`{}` is not an address of a peer, which may have a port, such as 192.0.2.1, 192.0.2.1:1179 or \
                     [2001:db8::1]:1179; no session is opened",
                    spec.peer_ip.escape_debug()
                ),
            ),
        }
    }
}

fn unreadable(selector: &str, error: &tortie_selector::ParseError) -> String {
    format!(
        "`{}` is not a selector: {error}; no session is opened",
        selector.escape_debug()
    )
}
