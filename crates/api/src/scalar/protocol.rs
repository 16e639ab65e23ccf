//! IP protocols.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::ScalarError;

/// An IP protocol: a number, or one of six names.
///
/// Equality is by spelling, as in stored objects; compare [`Protocol::number`] to ask whether two mean the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// A protocol number; valid from 1.
    Number(u8),
    /// `TCP`
    Tcp,
    /// `UDP`
    Udp,
    /// `ICMP`
    Icmp,
    /// `ICMPv6`
    Icmpv6,
    /// `SCTP`
    Sctp,
    /// `UDPLite`
    UdpLite,
    /// Any other text; never valid, kept so that the refusal can show it.
    Unknown(Box<str>),
}

impl Protocol {
    const EXPECTED: &'static str =
        "a protocol: TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite or a number from 1 to 255";

    const NAMED: [(&'static str, Self, u8); 6] = [
        ("TCP", Self::Tcp, 6),
        ("UDP", Self::Udp, 17),
        ("ICMP", Self::Icmp, 1),
        ("ICMPv6", Self::Icmpv6, 58),
        ("SCTP", Self::Sctp, 132),
        ("UDPLite", Self::UdpLite, 136),
    ];

    fn from_number(number: u64) -> Result<Self, ScalarError> {
        u8::try_from(number)
            .map(Self::Number)
            .map_err(|_| ScalarError::new(number, Self::EXPECTED))
    }

    /// The protocol number, unless the name is unknown.
    pub fn number(&self) -> Option<u8> {
        match self {
            Self::Number(number) => Some(*number),
            named => Self::NAMED
                .iter()
                .find(|(_, p, _)| p == named)
                .map(|(_, _, n)| *n),
        }
    }

    /// Whether the kernel can match ports of this protocol: TCP, UDP and SCTP.
    pub fn supports_ports(&self) -> bool {
        matches!(self.number(), Some(6 | 17 | 132))
    }

    /// Whether this is `ICMP`, by name or number.
    pub fn is_icmp(&self) -> bool {
        self.number() == Some(1)
    }

    /// Whether this is `ICMPv6`, by name or number.
    pub fn is_icmpv6(&self) -> bool {
        self.number() == Some(58)
    }

    /// Whether validation accepts it.
    pub fn is_valid(&self) -> bool {
        !matches!(self, Self::Unknown(_) | Self::Number(0))
    }

    /// What validation accepts, in words.
    pub(crate) fn expected() -> &'static str {
        Self::EXPECTED
    }
}

impl Default for Protocol {
    /// Protocol 0, which is not valid: a missing protocol never passes for a real one.
    fn default() -> Self {
        Self::Number(0)
    }
}

impl FromStr for Protocol {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let named = Self::NAMED.into_iter().find(|(name, ..)| *name == text);
        Ok(named.map_or_else(|| Self::Unknown(text.into()), |(_, protocol, _)| protocol))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number(number) => return number.fmt(f),
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Icmp => "ICMP",
            Self::Icmpv6 => "ICMPv6",
            Self::Sctp => "SCTP",
            Self::UdpLite => "UDPLite",
            Self::Unknown(text) => text,
        })
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u8(*number),
            named => serializer.collect_str(named),
        }
    }
}

super::number_or_text!(Protocol, super::int_or_string());
