//! First packets of connections, and whether they arrive.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use tortie_testkit::net::{Datagrams, Namespace, Packet, Ports, Probe, Prober, Site};

/// How long a change may take until packets show it. Mostly it takes some milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A pod, a machine outside, or the node as seen from one of its interfaces.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) namespace: Namespace,
    pub(crate) site: Site,
    /// One of each version at most.
    pub(crate) addresses: Vec<IpAddr>,
}

/// A connection that somebody may or may not begin, over each version of IP that both have.
#[derive(Clone, Copy)]
pub(crate) struct Flow<'a> {
    pub(crate) from: &'a Machine,
    pub(crate) to: &'a Machine,
    pub(crate) packet: Packet,
}

impl Machine {
    pub(crate) fn ipv4(&self) -> IpAddr {
        *self.addresses.iter().find(|a| a.is_ipv4()).unwrap()
    }

    /// The same, known by one address only, which need not be its own.
    pub(crate) fn with_address(&self, address: IpAddr) -> Self {
        Self {
            addresses: vec![address],
            ..self.clone()
        }
    }

    /// Datagrams to another machine, which go on.
    pub(crate) fn datagrams(&self, to: &Self, port: u16) -> Datagrams {
        let destination = SocketAddr::new(to.ipv4(), port);
        Datagrams::start(&self.namespace, self.ipv4(), &to.namespace, destination).unwrap()
    }

    /// A TCP connection to another machine.
    pub(crate) fn tcp<'a>(&'a self, to: &'a Self, port: u16) -> Flow<'a> {
        Flow {
            from: self,
            to,
            packet: Packet::Tcp(Ports::to(port)),
        }
    }

    /// A UDP datagram to another machine.
    pub(crate) fn udp<'a>(&'a self, to: &'a Self, port: u16) -> Flow<'a> {
        Flow {
            from: self,
            to,
            packet: Packet::Udp(Ports::to(port)),
        }
    }
}

impl Flow<'_> {
    pub(crate) fn is_icmp(&self) -> bool {
        matches!(self.packet, Packet::Icmp { .. })
    }

    /// The packets of this connection, one for each version of IP.
    fn probes(&self) -> Vec<Probe> {
        let mut probes = Vec::new();
        for source in &self.from.addresses {
            let destinations = self.to.addresses.iter();
            for destination in destinations.filter(|to| to.is_ipv4() == source.is_ipv4()) {
                probes.push(Probe {
                    from: self.from.site,
                    to: self.to.site,
                    source: *source,
                    destination: *destination,
                    packet: in_family(self.packet, source.is_ipv4()),
                });
            }
        }
        probes
    }
}

/// Echo requests have another number in IPv6.
fn in_family(packet: Packet, is_ipv4: bool) -> Packet {
    match packet {
        Packet::Icmp { kind: 8, code } if !is_ipv4 => Packet::Icmp { kind: 128, code },
        packet => packet,
    }
}

impl fmt::Display for Flow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, packet } = self;
        write!(f, "{} to {} {packet:?}", from.name, to.name)
    }
}

/// Sends all packets and lists those that arrive or not contrary to what is expected.
pub(crate) fn differences(prober: &mut Prober, expected: &[(Flow<'_>, bool)]) -> Vec<String> {
    let mut packets = Vec::new();
    let mut wanted = Vec::new();
    for (flow, is_allowed) in expected {
        for probe in flow.probes() {
            packets.push(probe);
            wanted.push((flow, *is_allowed));
        }
    }
    assert!(!packets.is_empty(), "nothing would be tried");
    let arrived = prober.probe_all(&packets).unwrap();
    let mut differences = Vec::new();
    for (((flow, is_allowed), probe), arrived) in wanted.into_iter().zip(&packets).zip(arrived) {
        if arrived != is_allowed {
            let what = if arrived {
                "arrives"
            } else {
                "does not arrive"
            };
            differences.push(format!(
                "{flow} ({} to {}) {what}",
                probe.source, probe.destination
            ));
        }
    }
    differences
}

/// Waits until `observe` gives what is expected.
#[track_caller]
pub(crate) fn eventually<T: PartialEq + fmt::Debug>(
    what: &str,
    expected: &T,
    mut observe: impl FnMut() -> T,
) {
    let end = Instant::now() + PATIENCE;
    loop {
        let observed = observe();
        if observed == *expected {
            return;
        }
        assert!(
            Instant::now() < end,
            "{what}: expected {expected:?}, and after {PATIENCE:?} it is {observed:?}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}
