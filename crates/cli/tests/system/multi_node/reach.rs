//! Pods, and whether they reach each other.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tortie_testkit::net::{Datagrams, Dialogue, Namespace, ping};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_millis(300);

/// Where datagrams that go on are sent to.
pub(crate) const STREAM_PORT: u16 = 7000;

/// A pod.
pub(crate) struct Pod {
    pub(crate) namespace: Namespace,
    pub(crate) container: String,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Pod {
    /// Datagrams to all addresses of another pod, which go on.
    pub(crate) fn datagrams(&self, other: &Self) -> Vec<Datagrams> {
        let ends = self.addresses.iter().zip(&other.addresses);
        let streams = ends.map(|(source, destination)| {
            assert_eq!(source.is_ipv4(), destination.is_ipv4());
            let destination = SocketAddr::new(*destination, STREAM_PORT);
            Datagrams::start(&self.namespace, *source, &other.namespace, destination).unwrap()
        });
        streams.collect()
    }

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
