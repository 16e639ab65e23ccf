//! Single packets, and whether they arrive.
//!
//! A probe is one packet with headers of its own making, so that addresses, ports, protocols and types can be any, and
//! many can be sent at once. It has arrived when the receiver's kernel gives it to a raw socket: after all that the
//! receiving machine's packet filter has to say. Whether connections work is asked with [`super::Dialogue`].

mod checksum;
mod packet;
mod site;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tortie_kernel::poll;

use self::packet::Token;
use self::site::{Receiver, SiteSockets};
use super::error::{Result, cannot};
use super::namespace::Namespace;

/// So many packets are sent before those that arrived are read: fewer than the kernel lets wait for a processor.
const BURST: usize = 128;

/// Missing packets are sent again until none of them arrives, and at most so many times: where packets get lost, some
/// arrive the next time; what is dropped on purpose never does.
const ROUNDS: usize = 6;

/// Fresh source ports are from here on.
const FIRST_PORT: u32 = 20_000;
const FRESH_PORTS: u32 = 40_000;

/// A namespace that takes part, by the prober's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(usize);

/// One packet to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Who sends it.
    pub from: Site,
    /// Where it should arrive.
    pub to: Site,
    /// Its source address, which need not be the sender's.
    pub source: IpAddr,
    /// Its destination address, of the same family. It need not be the receiver's, if somebody translates it.
    pub destination: IpAddr,
    /// What it carries.
    pub packet: Packet,
}

/// What a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packet {
    /// The first packet of a TCP connection.
    Tcp(Ports),
    /// A UDP datagram.
    Udp(Ports),
    /// A UDP-Lite datagram.
    UdpLite(Ports),
    /// The first packet of an SCTP association.
    Sctp(Ports),
    /// ICMP, or ICMP for IPv6, after the addresses.
    Icmp {
        /// Its type, in the numbers of the addresses' family.
        kind: u8,
        code: u8,
    },
    /// The first packet of a TCP connection behind an authentication header that nobody can check.
    Authenticated(Ports),
    /// Any other protocol of IP, by number, without a header of its own.
    Other(u8),
}

/// The ports of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The sender's; none for one that was not used lately, so that the packet begins a connection.
    pub source: Option<u16>,
    /// The receiver's.
    pub destination: u16,
}

/// What the receiver saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arrival {
    /// Where the packet came from.
    pub source: IpAddr,
    /// Its source and destination ports, where it has such.
    pub ports: Option<(u16, u16)>,
}

/// Sends packets between namespaces.
#[derive(Debug)]
pub struct Prober {
    sites: Vec<SiteSockets>,
    next_token: u32,
    /// When none of the packets arrived for so long, those that have not are taken for lost.
    pub patience: Duration,
}

impl Ports {
    /// To this port, from a fresh one.
    pub fn to(destination: u16) -> Self {
        Self {
            source: None,
            destination,
        }
    }
}

impl Default for Prober {
    fn default() -> Self {
        Self::new()
    }
}

impl Prober {
    /// A prober that knows no namespace yet.
    pub fn new() -> Self {
        Self {
            sites: Vec::new(),
            next_token: 1,
            patience: Duration::from_millis(100),
        }
    }

    /// Adds a namespace to send from and to.
    pub fn add_site(&mut self, namespace: &Namespace) -> Site {
        self.sites.push(SiteSockets::new(namespace.clone()));
        Site(self.sites.len() - 1)
    }

    /// Sends all packets at once and tells for each whether it arrived.
    pub fn probe_all(&mut self, probes: &[Probe]) -> Result<Vec<bool>> {
        let arrivals = self.observe_all(probes)?;
        Ok(arrivals.iter().map(Option::is_some).collect())
    }

    /// Sends all packets at once and tells for each what the receiver saw, if it arrived.
    pub fn observe_all(&mut self, probes: &[Probe]) -> Result<Vec<Option<Arrival>>> {
        let mut batch = self.prepare(probes)?;
        for round in 0..ROUNDS {
            let missing = batch.missing();
            for burst in missing.chunks(BURST) {
                for number in burst {
                    self.send(&batch, *number)?;
                }
                let receivers = batch.receivers(burst);
                self.read(&receivers, &mut batch)?;
            }
            self.read_until_quiet(&mut batch)?;
            let left = batch.missing().len();
            if left == 0 || (round > 0 && left == missing.len()) {
                break;
            }
        }
        Ok(batch.arrivals)
    }

    /// Opens sockets and makes packets.
    fn prepare<'a>(&mut self, probes: &'a [Probe]) -> Result<Batch<'a>> {
        let mut packets = Vec::with_capacity(probes.len());
        let first = self.next_token;
        for probe in probes {
            if probe.source.is_ipv4() != probe.destination.is_ipv4() {
                return Err(cannot(format!("send {probe:?}"))(
                    "its addresses are of two families",
                ));
            }
            self.sites[probe.from.0].open_sender(probe.source.is_ipv4())?;
            self.sites[probe.to.0].open_receiver(probe.receiver().1)?;
            let token = Token(self.next_token);
            let wrapped = u16::try_from(FIRST_PORT + self.next_token % FRESH_PORTS);
            packets.push(packet::build(probe, token, wrapped.unwrap_or(u16::MAX)));
            self.next_token = self.next_token.wrapping_add(1).max(1);
        }
        Ok(Batch {
            probes,
            packets,
            first,
            arrivals: vec![None; probes.len()],
        })
    }

    fn send(&self, batch: &Batch<'_>, number: usize) -> Result<()> {
        let probe = &batch.probes[number];
        self.sites[probe.from.0]
            .send(&batch.packets[number], probe.destination)
            .map_err(cannot(format!("send {probe:?}")))
    }

    /// Reads what has arrived at some receivers.
    fn read(&self, receivers: &BTreeSet<(Site, Receiver)>, batch: &mut Batch<'_>) -> Result<()> {
        for (site, receiver) in receivers {
            self.sites[site.0]
                .receive(*receiver, |source, payload| {
                    batch.arrived(*site, *receiver, source, payload);
                })
                .map_err(cannot("receive packets"))?;
        }
        Ok(())
    }

    /// Reads until all have arrived, or none for some time. Other packets may come all the time.
    fn read_until_quiet(&self, batch: &mut Batch<'_>) -> Result<()> {
        let mut left = batch.missing();
        let mut end = Instant::now() + self.patience;
        loop {
            let receivers: Vec<_> = batch.receivers(&left).into_iter().collect();
            let descriptors: Vec<BorrowedFd<'_>> = receivers
                .iter()
                .filter_map(|(site, receiver)| self.sites[site.0].descriptor(*receiver))
                .collect();
            let time = end.saturating_duration_since(Instant::now());
            if receivers.is_empty() || time.is_zero() {
                return Ok(());
            }
            let ready = poll::wait(&descriptors, Some(time)).map_err(cannot("wait for packets"))?;
            let ready = receivers
                .into_iter()
                .zip(ready)
                .filter(|(_, is_ready)| *is_ready);
            self.read(&ready.map(|(receiver, _)| receiver).collect(), batch)?;
            let still_left = batch.missing();
            if still_left.len() < left.len() {
                end = Instant::now() + self.patience;
                left = still_left;
            }
        }
    }
}

/// Packets on their way.
struct Batch<'a> {
    probes: &'a [Probe],
    packets: Vec<Vec<u8>>,
    /// The token of the first packet; the others follow.
    first: u32,
    arrivals: Vec<Option<Arrival>>,
}

impl Batch<'_> {
    fn missing(&self) -> Vec<usize> {
        (0..self.arrivals.len())
            .filter(|number| self.arrivals[*number].is_none())
            .collect()
    }

    fn receivers(&self, numbers: &[usize]) -> BTreeSet<(Site, Receiver)> {
        numbers
            .iter()
            .map(|number| self.probes[*number].receiver())
            .collect()
    }

    /// Takes note of a packet, if it is one of these at the right place.
    fn arrived(&mut self, site: Site, receiver: Receiver, source: IpAddr, payload: &[u8]) {
        let Some((Token(token), ports)) = packet::read(receiver.protocol, payload) else {
            return;
        };
        let number = usize::try_from(token.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        let Some(probe) = self.probes.get(number) else {
            return;
        };
        let is_other_type = matches!(probe.packet, Packet::Icmp { kind, code } if !payload.starts_with(&[kind, code]));
        if probe.receiver() == (site, receiver) && !is_other_type {
            self.arrivals[number] = Some(Arrival { source, ports });
        }
    }
}

impl Probe {
    fn receiver(&self) -> (Site, Receiver) {
        let is_ipv4 = self.destination.is_ipv4();
        let protocol = packet::protocol(self.packet, is_ipv4);
        (self.to, Receiver { is_ipv4, protocol })
    }
}
