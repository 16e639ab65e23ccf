//! The bytes of probes.

use std::net::IpAddr;

use super::checksum::{crc32c, internet, with_addresses};
use super::{Packet, Ports, Probe};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;
const ICMP: u8 = 1;
const ICMP_FOR_IPV6: u8 = 58;
const AUTHENTICATED: u8 = 51;

/// An authentication header: what follows, its length in words less two, an association and a number that mean nothing,
/// and the value to be checked.
const AUTHENTICATION: [u8; 24] = [
    TCP, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

const HOP_LIMIT: u8 = 64;

/// What payloads begin with.
const MARK: [u8; 4] = *b"prob";

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// The number by which a packet is known again. Not 0, which SCTP does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(pub(super) u32);

/// The number of a packet's protocol.
pub(super) fn protocol(packet: Packet, is_ipv4: bool) -> u8 {
    match packet {
        Packet::Tcp(_) => TCP,
        Packet::Udp(_) => UDP,
        Packet::UdpLite(_) => UDP_LITE,
        Packet::Sctp(_) => SCTP,
        Packet::Icmp { .. } if is_ipv4 => ICMP,
        Packet::Icmp { .. } => ICMP_FOR_IPV6,
        Packet::Authenticated(_) => AUTHENTICATED,
        Packet::Other(protocol) => protocol,
    }
}

/// The whole packet, beginning with the header of IP.
pub(super) fn build(probe: &Probe, token: Token, fresh_port: u16) -> Vec<u8> {
    let protocol = protocol(probe.packet, probe.destination.is_ipv4());
    let payload = transport(probe, protocol, token, fresh_port);
    let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
    let mut packet = Vec::with_capacity(40 + payload.len());
    match (probe.source, probe.destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet.extend_from_slice(&[0x60, 0, 0, 0]);
            packet.extend_from_slice(&length.to_be_bytes());
            packet.extend_from_slice(&[protocol, HOP_LIMIT]);
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
        }
        (source, destination) => {
            packet.extend_from_slice(&[0x45, 0]);
            packet.extend_from_slice(&(length + 20).to_be_bytes());
            // The kernel fills in identification and checksum.
            packet.extend_from_slice(&[0, 0, 0, 0, HOP_LIMIT, protocol, 0, 0]);
            for address in [source, destination] {
                if let IpAddr::V4(address) = address {
                    packet.extend_from_slice(&address.octets());
                }
            }
        }
    }
    packet.extend_from_slice(&payload);
    packet
}

/// What follows the header of IP.
fn transport(probe: &Probe, protocol: u8, token: Token, fresh_port: u16) -> Vec<u8> {
    let number = token.0.to_be_bytes();
    let ports = |ports: Ports| {
        let source = ports.source.unwrap_or(fresh_port);
        [source.to_be_bytes(), ports.destination.to_be_bytes()].concat()
    };
    let sum = |bytes: &[u8]| {
        with_addresses(probe.source, probe.destination, protocol, bytes).to_be_bytes()
    };
    match probe.packet {
        Packet::Tcp(p) => {
            let rest = [0, 0, 0, 0, 0x50, SYN, 0xfa, 0xf0, 0, 0, 0, 0];
            let mut bytes = [&ports(p)[..], &number, &rest].concat();
            let sum = sum(&bytes);
            bytes[16..18].copy_from_slice(&sum);
            bytes
        }
        Packet::Udp(p) | Packet::UdpLite(p) => {
            // For UDP-Lite this is how much the checksum covers: all of it too.
            let mut bytes = [&ports(p)[..], &[0, 16, 0, 0], &MARK, &number].concat();
            let sum = match sum(&bytes) {
                // Which would say that there is none.
                [0, 0] => [0xff, 0xff],
                sum => sum,
            };
            bytes[6..8].copy_from_slice(&sum);
            bytes
        }
        Packet::Sctp(p) => {
            // INIT: its own tag, room, streams out and in, and the first sequence number.
            let chunk = [
                &[1, 0, 0, 20],
                &number[..],
                &[0, 1, 0, 0, 0, 1, 0, 1],
                &number,
            ]
            .concat();
            let mut bytes = [&ports(p)[..], &[0; 8], &chunk].concat();
            let sum = crc32c(&bytes).to_le_bytes();
            bytes[8..12].copy_from_slice(&sum);
            bytes
        }
        Packet::Icmp { kind, code } => {
            // The identifier of an echo comes first; with each its own, each is a connection of its own.
            let identifier = token.0.rotate_left(16).to_be_bytes();
            let mut bytes = [&[kind, code, 0, 0], &identifier[..], &MARK, &number].concat();
            let sum = if protocol == ICMP {
                internet(&bytes).to_be_bytes()
            } else {
                sum(&bytes)
            };
            bytes[2..4].copy_from_slice(&sum);
            bytes
        }
        Packet::Authenticated(ports) => {
            let inner = Probe {
                packet: Packet::Tcp(ports),
                ..*probe
            };
            let inner = transport(&inner, TCP, token, fresh_port);
            [&AUTHENTICATION[..], &inner].concat()
        }
        Packet::Other(_) => [MARK, number, [0; 4], [0; 4]].concat(),
    }
}

/// The token of a packet that may be a probe, and its ports, from what follows the header of IP.
pub(super) fn read(protocol: u8, payload: &[u8]) -> Option<(Token, Option<(u16, u16)>)> {
    if protocol == AUTHENTICATED {
        return read(TCP, payload.get(AUTHENTICATION.len()..)?);
    }
    let number = |at: usize| -> Option<u32> {
        payload
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_be_bytes)
    };
    let marked = |at: usize| {
        payload
            .get(at..at + 4)
            .filter(|mark| **mark == MARK)
            .and(number(at + 4))
    };
    let token = match protocol {
        TCP => number(4).filter(|_| {
            payload
                .get(13)
                .is_some_and(|flags| flags & (SYN | ACK) == SYN)
        })?,
        UDP | UDP_LITE | ICMP | ICMP_FOR_IPV6 => marked(8)?,
        SCTP => number(16)?,
        _ => marked(0)?,
    };
    let ports = match protocol {
        TCP | UDP | UDP_LITE | SCTP => {
            let ports = number(0)?;
            Some(((ports >> 16) as u16, (ports & 0xffff) as u16))
        }
        _ => None,
    };
    Some((Token(token), ports))
}
