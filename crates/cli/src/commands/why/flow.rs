//! Questions about connections, and the flows that they mean.

use std::net::IpAddr;

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use tortie_api::scalar::Protocol;
use tortie_engine::input::Icmp;
use tortie_engine::message::AUTHENTICATION_HEADER;
use tortie_engine::verdict::Flow;

use super::directory::Directory;
use super::near::{did_you_mean, nearest};
use super::party::Party;
use crate::args::{IpVersion, Why};

/// A question about a connection, as it was asked.
#[derive(Debug, Default)]
pub(super) struct Question {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) protocol: Option<Protocol>,
    pub(super) port: Option<u16>,
    source_port: Option<u16>,
    icmp_type: Option<u8>,
    icmp_code: Option<u8>,
    ip_version: Option<IpVersion>,
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
    /// The question of the command line.
    pub(super) fn from_args(args: &Why) -> Result<Self> {
        let (Some(from), Some(to)) = (&args.from, &args.to) else {
            bail!("say FROM and TO, such as `tortie why shop/web shop/db`");
        };
        Ok(Self {
            from: from.clone(),
            to: to.clone(),
            protocol: args.protocol.as_deref().map(protocol).transpose()?,
            port: args.port,
            source_port: args.src_port,
            icmp_type: args.icmp_type,
            icmp_code: args.icmp_code,
            ip_version: args.ip_version,
        })
    }

    /// The question of a line of a batch. Fields that are not known are left alone, unless they look like a slip.
    pub(super) fn from_json(fields: &Map<String, Value>) -> Result<Self> {
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
        let port = |field| -> Result<Option<u16>> {
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
            port: port("port")?,
            source_port: port("srcPort")?,
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

    /// The flow that it asks for.
    pub(super) fn flow(&self, directory: &Directory) -> Result<Flow> {
        self.check_ports()?;
        let (from, to) = (directory.find(&self.from)?, directory.find(&self.to)?);
        let (source, destination) = self.addresses(&from, &to)?;
        let (protocol, icmp) = self.icmp(source.is_ipv4())?;
        Ok(Flow {
            source: from.end(source)?,
            destination: to.end(destination)?,
            protocol,
            source_port: self.source_port,
            destination_port: self.port,
            icmp,
        })
    }

    fn check_ports(&self) -> Result<()> {
        let Some(port) = self.port.or(self.source_port) else {
            return Ok(());
        };
        match &self.protocol {
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
    fn icmp(&self, is_ipv4: bool) -> Result<(Option<Protocol>, Option<Icmp>)> {
        let Some(kind) = self.icmp_type else {
            if let Some(code) = self.icmp_code {
                bail!("ICMP code {code} needs an ICMP type");
            }
            return Ok((self.protocol.clone(), None));
        };
        let icmp = Icmp {
            r#type: kind,
            code: self.icmp_code,
        };
        let protocol = match &self.protocol {
            None if is_ipv4 => Protocol::Icmp,
            None => Protocol::Icmpv6,
            Some(protocol) if protocol.is_icmp() || protocol.is_icmpv6() => protocol.clone(),
            Some(protocol) => {
                bail!(
                    "protocol {protocol} has no ICMP type, and type {kind} was asked for; did you mean protocol `ICMP` or `ICMPv6`?"
                )
            }
        };
        Ok((Some(protocol), Some(icmp)))
    }

    /// The addresses of the packet: IPv4 if both sides have it, unless the question says otherwise.
    fn addresses(&self, from: &Party<'_>, to: &Party<'_>) -> Result<(IpAddr, IpAddr)> {
        let versions: &[bool] = match self.ip_version {
            None => &[true, false],
            Some(IpVersion::V4) => &[true],
            Some(IpVersion::V6) => &[false],
        };
        let both = |is_ipv4: &bool| from.address(*is_ipv4).zip(to.address(*is_ipv4));
        if let Some(found) = versions.iter().find_map(both) {
            return Ok(found);
        }
        for (asked, party) in [(&self.from, from), (&self.to, to)] {
            if versions
                .iter()
                .all(|is_ipv4| party.address(*is_ipv4).is_none())
            {
                let version = match self.ip_version {
                    None => "address",
                    Some(IpVersion::V4) => "IPv4 address",
                    Some(IpVersion::V6) => "IPv6 address",
                };
                bail!("`{asked}` has no {version}");
            }
        }
        let only = |party: &Party<'_>| match party.address(true) {
            Some(_) => "IPv4",
            None => "IPv6",
        };
        bail!(
            "`{}` has only {} and `{}` only {}, so no packet can go from one to the other",
            self.from,
            only(from),
            self.to,
            only(to)
        )
    }
}

/// Whether a packet has an authentication header in IPv6.
pub(super) fn has_authentication_header(flow: &Flow) -> bool {
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
