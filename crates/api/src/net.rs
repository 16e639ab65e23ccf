//! Addresses and CIDRs as Go's `net` package reads them, which decides what Calico accepts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// An address with a prefix length; the address may have bits beyond the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    ip: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// The network, with the bits beyond the prefix cleared.
    pub fn network(self) -> IpNet {
        IpNet::new(self.ip, self.prefix)
            .expect("the prefix was checked when parsing")
            .trunc()
    }

    /// The address as written.
    pub fn ip(self) -> IpAddr {
        self.ip
    }

    /// The prefix length.
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether no bits are set beyond the prefix.
    pub fn is_masked(self) -> bool {
        self.network().addr() == self.ip
    }

    /// Whether it is IPv4.
    pub fn is_ipv4(self) -> bool {
        self.ip.is_ipv4()
    }

    /// Whether it covers exactly one address.
    pub fn is_single(self) -> bool {
        self.prefix == if self.is_ipv4() { 32 } else { 128 }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

/// Parses an address. IPv4-mapped IPv6 counts as IPv4; zones and leading zeros are refused.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let ip: Ipv6Addr = text.parse().ok()?;
        return Some(ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4));
    }
    text.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

/// Parses `address/prefix`.
pub fn parse_cidr(text: &str) -> Option<Cidr> {
    let (address, prefix) = text.split_once('/')?;
    if prefix.is_empty() || prefix.len() > 3 || !prefix.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let prefix: u8 = prefix.parse().ok()?;
    // A mapped address with a CIDR keeps the family it is written in.
    let ip: IpAddr = address.parse().ok()?;
    (prefix <= if ip.is_ipv4() { 32 } else { 128 }).then_some(Cidr { ip, prefix })
}

/// Parses a CIDR, or an address as a CIDR that covers only it.
pub fn parse_cidr_or_ip(text: &str) -> Option<Cidr> {
    parse_cidr(text).or_else(|| {
        let ip = parse_ip(text)?;
        Some(Cidr {
            ip,
            prefix: if ip.is_ipv4() { 32 } else { 128 },
        })
    })
}

/// Parses an address with an optional port: `10.0.0.1`, `10.0.0.1:179`, `fd00::1` or `[fd00::1]:179`.
pub fn parse_ip_port(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Some(ip) = parse_ip(text) {
        return Some((ip, None));
    }
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner
            .strip_suffix(']')
            .filter(|inner| inner.contains(':'))?,
        None if host.contains(':') => return None,
        None => host,
    };
    if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    Some((parse_ip(host)?, Some(port)))
}

/// Whether the text is a MAC address of 6, 8 or 20 bytes, in any of the three usual notations.
pub fn is_mac(text: &str) -> bool {
    let is_hex = |s: &str| s.bytes().all(|b| b.is_ascii_hexdigit());
    let groups = |separator: char, digits: usize| {
        let groups: Vec<&str> = text.split(separator).collect();
        let bytes = groups.len() * digits / 2;
        [6, 8, 20].contains(&bytes) && groups.iter().all(|g| g.len() == digits && is_hex(g))
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}
