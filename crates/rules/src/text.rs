//! What the two languages have in common.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha224};
use tortie_api::scalar::Protocol;

use crate::rule::{PortRange, Rate};

/// What a rule's hash begins with in its comment.
pub const HASH_PREFIX: &str = "cali:";

const HASH_LENGTH: usize = 16;

/// The hashes of the rules of one chain, in order: each covers all rules before it too, so that a change, an addition
/// or a removal shows in every hash that follows.
#[derive(Debug, Clone)]
pub struct RuleHasher {
    previous: [u8; 28],
}

// === impl RuleHasher ===

impl RuleHasher {
    /// For a chain of this name.
    pub fn new(chain: &str) -> Self {
        Self {
            previous: Sha224::digest(chain).into(),
        }
    }

    /// The hash of the next rule, given as text.
    pub fn next(&mut self, rule: &str) -> String {
        let mut hasher = Sha224::new();
        hasher.update(self.previous);
        hasher.update(rule);
        self.previous = hasher.finalize().into();
        let mut text = URL_SAFE_NO_PAD.encode(self.previous);
        text.truncate(HASH_LENGTH);
        text
    }
}

/// A comment without what a shell or one of the languages could take for its own.
pub(crate) fn safe_comment(comment: &str) -> Cow<'_, str> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_ @%+=:,./-".contains(c);
    if comment.chars().all(is_safe) {
        return Cow::Borrowed(comment);
    }
    // One underscore for each byte, as it was for Calico's.
    let mut safe = String::with_capacity(comment.len());
    for c in comment.chars() {
        safe.push(if is_safe(c) { c } else { '_' });
    }
    Cow::Owned(safe)
}

/// At most so many bytes of a text, without cutting a character in two.
pub(crate) fn truncated(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

/// Separates what follows from what is there.
pub(crate) fn space(out: &mut String) {
    if !out.is_empty() {
        out.push(' ');
    }
}

/// Writing to a string does not fail.
pub(crate) fn written(result: fmt::Result) {
    result.expect("a string takes any text");
}

/// How a protocol is spelled.
pub(crate) fn write_protocol(protocol: &Protocol, out: &mut String) -> fmt::Result {
    out.push_str(match protocol {
        Protocol::Number(number) => return write!(out, "{number}"),
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Icmp => "icmp",
        Protocol::Icmpv6 => "icmpv6",
        Protocol::Sctp => "sctp",
        Protocol::UdpLite => "udplite",
        Protocol::Unknown(name) => return write!(out, "{}", name.to_lowercase()),
    });
    Ok(())
}

/// `5/minute`
pub(crate) fn write_rate(rate: Rate, out: &mut String) -> fmt::Result {
    write!(out, "{}/{}", rate.count, rate.unit.name())
}

/// Ports, and ranges with a given sign between their ends, with a separator between them.
pub(crate) fn write_ports(
    ports: &[PortRange],
    range: char,
    separator: &str,
    out: &mut String,
) -> fmt::Result {
    for (index, port) in ports.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        write!(out, "{}", port.first)?;
        if port.last != port.first {
            write!(out, "{range}{}", port.last)?;
        }
    }
    Ok(())
}

/// An address with a port or a range of ports behind it.
pub(crate) fn write_with_port(
    address: IpAddr,
    port: Option<impl fmt::Display>,
    out: &mut String,
) -> fmt::Result {
    match (address, port) {
        (address, None) => write!(out, "{address}"),
        (IpAddr::V4(address), Some(port)) => write!(out, "{address}:{port}"),
        (IpAddr::V6(address), Some(port)) => write!(out, "[{address}]:{port}"),
    }
}
