//! Questions about connections, as they are asked.

use std::fmt;

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use tortie_api::names::IpVersion;
use tortie_api::scalar::Protocol;
use tortie_engine::input::Icmp;
use tortie_engine::message::AUTHENTICATION_HEADER;
use tortie_engine::verdict::Flow;

use crate::spelling::{did_you_mean, nearest};

/// A question about a connection, as it was asked.
#[derive(Debug, Default)]
pub struct Question {
    /// Where the connection comes from.
    pub from: String,
    /// Where it goes to.
    pub to: String,
    /// The protocol, if it matters.
    pub protocol: Option<Protocol>,
    /// The port that it goes to.
    pub port: Option<Port>,
    pub(crate) source_port: Option<u16>,
    pub(crate) icmp_type: Option<u8>,
    icmp_code: Option<u8>,
    pub(crate) ip_version: Option<IpVersion>,
}

/// A question as its parts are written.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Where the connection comes from: a pod, a host or an address.
    pub from: &'a str,
    /// Where it goes to: the same, or a service.
    pub to: &'a str,
    /// The protocol, by name or number.
    pub protocol: Option<&'a str>,
    /// The port that it goes to: a number, or the name that the destination gives it.
    pub port: Option<&'a str>,
    /// The port that it comes from.
    pub source_port: Option<u16>,
    /// The type of an ICMP message.
    pub icmp_type: Option<u8>,
    pub icmp_code: Option<u8>,
    /// The version of IP, where both ends have both.
    pub ip_version: Option<IpVersion>,
}

/// A port that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Port {
    /// By number.
    Number(u16),
    /// By the name that the destination gives it.
    Name(String),
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// The fields of a question in a batch.
const FIELDS: [&str; 8] = [
    "from",
    "to",
    "protocol",
    "port",
    "srcPort",
    "icmpType",
    "icmpCode",
    "ipVersion",
];

/// The names of protocols.
const PROTOCOLS: [&str; 6] = ["TCP", "UDP", "SCTP", "ICMP", "ICMPv6", "UDPLite"];

/// What people call the authentication header, which Calico has no name for.
const HEADER: &str = "AH";

/// UDP-Lite has ports, although no rule can match them.
const UDP_LITE: u8 = 136;

// === impl Question ===

impl Question {
    /// The question that options ask.
    pub fn new(asked: &Asked<'_>) -> Result<Self> {
        Ok(Self {
            from: asked.from.to_owned(),
            to: asked.to.to_owned(),
            protocol: asked.protocol.map(protocol).transpose()?,
            port: asked.port.map(port).transpose()?,
            source_port: asked.source_port,
            icmp_type: asked.icmp_type,
            icmp_code: asked.icmp_code,
            ip_version: asked.ip_version,
        })
    }

    /// The question of a line of a batch. Fields that are not known are left alone, unless they look like a slip.
    pub fn from_json(fields: &Map<String, Value>) -> Result<Self> {
        for field in fields.keys().filter(|field| !FIELDS.contains(&&***field)) {
            let near = nearest(field, FIELDS.into_iter());
            if !near.is_empty() {
                bail!("there is no field `{field}`{}", did_you_mean(&near));
            }
        }
        let present = |field| fields.get(field).filter(|value| !value.is_null());
        let text = |field| match present(field) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => bail!("`{field}` is {other}, which must be text"),
            None => bail!("`{field}` is missing"),
        };
        let number = |field, first: u64, last: u64| match present(field) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) if (first..=last).contains(&number) => Ok(Some(number)),
                _ => bail!("`{field}` is {value}, which must be a number from {first} to {last}"),
            },
        };
        let number_of_port = |field| -> Result<Option<u16>> {
            let port = number(field, 1, u64::from(u16::MAX))?;
            Ok(port.and_then(|port| u16::try_from(port).ok()))
        };
        let byte = |field| -> Result<Option<u8>> {
            let byte = number(field, 0, u64::from(u8::MAX))?;
            Ok(byte.and_then(|byte| u8::try_from(byte).ok()))
        };
        Ok(Self {
            from: text("from")?,
            to: text("to")?,
            protocol: match present("protocol") {
                None => None,
                Some(Value::String(text)) => Some(protocol(text)?),
                Some(other) => Some(protocol(&other.to_string())?),
            },
            port: match present("port") {
                Some(Value::String(text)) => Some(port(text)?),
                _ => number_of_port("port")?.map(Port::Number),
            },
            source_port: number_of_port("srcPort")?,
            icmp_type: byte("icmpType")?,
            icmp_code: byte("icmpCode")?,
            ip_version: match present("ipVersion") {
                None => None,
                Some(value) if *value == 4 => Some(IpVersion::V4),
                Some(value) if *value == 6 => Some(IpVersion::V6),
                Some(other) => bail!("`ipVersion` is {other}, which must be 4 or 6"),
            },
        })
    }

    /// Refuses ports where the protocol has none, or is not known.
    pub(crate) fn check_ports(&self, protocol: Option<&Protocol>) -> Result<()> {
        let source = self.source_port.map(Port::Number);
        let Some(port) = self.port.clone().or(source) else {
            return Ok(());
        };
        match protocol {
            None => {
                bail!("port {port} needs a protocol; did you mean protocol `TCP`, `UDP` or `SCTP`?")
            }
            Some(protocol) if !protocol.supports_ports() && protocol.number() != Some(UDP_LITE) => {
                bail!(
                    "protocol {protocol} has no ports, and port {port} was asked for; leave out the port, or use TCP, UDP or SCTP"
                )
            }
            Some(_) => Ok(()),
        }
    }

    /// The protocol and the ICMP message; the type of a message implies its protocol.
    pub(crate) fn icmp(&self, is_ipv4: bool) -> Result<(Option<Protocol>, Option<Icmp>)> {
        let Some(kind) = self.icmp_type else {
            if let Some(code) = self.icmp_code {
                bail!("ICMP code {code} needs an ICMP type");
            }
            let protocol = self.protocol.clone();
            return Ok((protocol.map(|protocol| of_version(protocol, is_ipv4)), None));
        };
        let icmp = Icmp {
            r#type: kind,
            code: self.icmp_code,
        };
        let protocol = match &self.protocol {
            None if is_ipv4 => Protocol::Icmp,
            None => Protocol::Icmpv6,
            Some(protocol) if protocol.is_icmp() || protocol.is_icmpv6() => {
                of_version(protocol.clone(), is_ipv4)
            }
            Some(protocol) => {
                bail!(
                    "protocol {protocol} has no ICMP type, and type {kind} was asked for; did you mean protocol `ICMP` or `ICMPv6`?"
                )
            }
        };
        Ok((Some(protocol), Some(icmp)))
    }

    /// The versions of IP that packets may have, those first that are meant unless the question says otherwise.
    pub(crate) fn versions(&self) -> Result<&'static [IpVersion]> {
        let is_icmpv6 = self.protocol.as_ref().is_some_and(Protocol::is_icmpv6);
        match self.ip_version {
            Some(IpVersion::V4) if is_icmpv6 => {
                bail!(
                    "ICMPv6 is a protocol of IPv6, and IP version 4 was asked for; did you mean protocol `ICMP`?"
                )
            }
            Some(IpVersion::V4) => Ok(&[IpVersion::V4]),
            Some(IpVersion::V6) => Ok(&[IpVersion::V6]),
            None if is_icmpv6 => Ok(&[IpVersion::V6]),
            None => Ok(&[IpVersion::V4, IpVersion::V6]),
        }
    }
}

/// ICMP of IPv6 is a protocol of its own.
fn of_version(protocol: Protocol, is_ipv4: bool) -> Protocol {
    if protocol.is_icmp() && !is_ipv4 {
        Protocol::Icmpv6
    } else {
        protocol
    }
}

/// Reads a port: a number, or the name that the destination gives it.
fn port(text: &str) -> Result<Port> {
    let is_name = !text.is_empty()
        && text.len() <= 63
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    match text.parse::<u16>() {
        Ok(number) if number > 0 => Ok(Port::Number(number)),
        Err(_) if is_name => Ok(Port::Name(text.to_owned())),
        _ => bail!("port `{text}` must be a number from 1 to 65535, or the name of a port"),
    }
}

/// Whether a packet has an authentication header in IPv6.
pub fn has_authentication_header(flow: &Flow) -> bool {
    let protocol = flow.protocol.as_ref().and_then(Protocol::number);
    flow.destination.address.is_ipv6() && protocol == Some(AUTHENTICATION_HEADER)
}

/// Reads a protocol; names may be in any case.
fn protocol(text: &str) -> Result<Protocol> {
    if text.eq_ignore_ascii_case(HEADER) {
        return Ok(Protocol::Number(AUTHENTICATION_HEADER));
    }
    let name = PROTOCOLS
        .into_iter()
        .find(|name| name.eq_ignore_ascii_case(text));
    match name.unwrap_or(text).parse::<Protocol>() {
        Ok(protocol) if protocol.is_valid() => Ok(protocol),
        _ => {
            let near = nearest(text, PROTOCOLS.into_iter());
            bail!(
                "`{text}` is not a protocol: it must be {}, {HEADER} or a number from 1 to 255{}",
                PROTOCOLS.join(", "),
                did_you_mean(&near)
            )
        }
    }
}
