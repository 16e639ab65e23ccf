//! Pods, and whether they reach each other.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tortie_testkit::net::{Dialogue, Namespace, ping};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_millis(300);

/// A pod.
pub(crate) struct Pod {
    pub(crate) namespace: Namespace,
    pub(crate) container: String,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Pod {
    /// Whether all addresses of another pod answer.
    pub(crate) fn pings(&self, other: &Self) -> bool {
        let mut addresses = other.addresses.iter();
        addresses.all(|address| ping(&self.namespace, *address, TIMEOUT).unwrap())
    }

    /// Whether connections to a port of another pod come about, at all its addresses.
    pub(crate) fn reaches(&self, other: &Self, port: u16) -> bool {
        let mut addresses = other.addresses.iter();
        addresses.all(|address| {
            let destination = SocketAddr::new(*address, port);
            let dialogue = Dialogue {
                timeout: TIMEOUT,
                ..Dialogue::new(&self.namespace, &other.namespace, destination)
            };
            dialogue.tcp().unwrap()
        })
    }
}
