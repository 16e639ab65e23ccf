//! Values of parameters: what a text was read as, and the types that it becomes.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;
use regex::Regex;
use serde::Serialize;
use tortie_api::scalar::Protocol;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value: zero, no, empty, nothing.
    Unset,
    /// Yes or no.
    Bool(bool),
    /// A whole number, or bits of a packet mark.
    Int(i64),
    /// A time.
    Duration(Duration),
    Text(String),
    /// A word of a list, spelt as there.
    Choice(&'static str),
    Address(IpAddr),
    /// A regular expression.
    Pattern(Pattern),
    /// Several regular expressions.
    Patterns(Vec<Pattern>),
    Texts(Vec<String>),
    /// Ports that stay open.
    FailsafePorts(Vec<FailsafePort>),
    PortRanges(Vec<PortRange>),
    /// Networks.
    Cidrs(Vec<IpNet>),
    /// Routing tables.
    TableRanges(Vec<TableRange>),
    /// Values by key.
    Pairs(BTreeMap<String, String>),
    /// Durations by key.
    Timeouts(BTreeMap<String, Duration>),
}

/// A regular expression that is equal to another if its text is.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportProtocol {
    Tcp,
    Udp,
}

/// A port that stays open whatever policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailsafePort {
    pub protocol: TransportProtocol,
    /// The peers that it stays open for; everyone without it.
    pub network: Option<IpNet>,
    /// Its number.
    pub port: u16,
}

/// Ports from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PortRange {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

/// Routing tables from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableRange {
    /// Number of the first table.
    pub first: u32,
    /// Number of the last table.
    pub last: u32,
}

/// A type that values of some kinds become.
pub(super) trait FromValue: Sized {
    /// The value as this type; none if the parameter is of a kind that does not fit.
    fn from_value(value: &Value) -> Option<Self>;
}

// === impl Pattern ===

impl Pattern {
    pub(super) fn new(text: &str) -> Option<Self> {
        Regex::new(text).ok().map(Self)
    }

    /// Whether some part of the text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The regular expression.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

// === impl TransportProtocol ===

impl TransportProtocol {
    /// The protocol of this name, in any case.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "tcp" => Some(Self::Tcp),
            "udp" => Some(Self::Udp),
            _ => None,
        }
    }
}

impl From<TransportProtocol> for Protocol {
    fn from(protocol: TransportProtocol) -> Self {
        match protocol {
            TransportProtocol::Tcp => Self::Tcp,
            TransportProtocol::Udp => Self::Udp,
        }
    }
}

// === impl FailsafePort ===

impl fmt::Display for FailsafePort {
    /// As parameters have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.protocol {
            TransportProtocol::Tcp => "tcp:",
            TransportProtocol::Udp => "udp:",
        })?;
        match self.network {
            Some(network @ IpNet::V4(_)) => write!(f, "{network}:")?,
            Some(network @ IpNet::V6(_)) => write!(f, "[{network}]:")?,
            None => {}
        }
        self.port.fmt(f)
    }
}

// === impl FromValue ===

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(false),
            Value::Bool(value) => Some(*value),
            Value::Choice(word) => Some(*word == "Enabled"),
            _ => None,
        }
    }
}

impl FromValue for Option<bool> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(None),
            value => bool::from_value(value).map(Some),
        }
    }
}

/// Numbers that do not fit become the nearest that does; bounds in the table keep them from coming here.
macro_rules! integers {
    ($($type:ty)*) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Unset => Some(0),
                    Value::Int(value) => Some(Self::try_from(*value).unwrap_or(
                        if *value < 0 { Self::MIN } else { Self::MAX },
                    )),
                    _ => None,
                }
            }
        })*
    };
}
integers! { u8 u16 u32 }

impl FromValue for Duration {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(Self::ZERO),
            Value::Duration(value) => Some(*value),
            _ => None,
        }
    }
}

/// An interval, where zero stands for never.
impl FromValue for Option<Duration> {
    fn from_value(value: &Value) -> Option<Self> {
        Duration::from_value(value).map(|interval| Some(interval).filter(|each| !each.is_zero()))
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(Self::new()),
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl FromValue for Option<String> {
    fn from_value(value: &Value) -> Option<Self> {
        String::from_value(value).map(|text| Some(text).filter(|text| !text.is_empty()))
    }
}

impl FromValue for Option<PathBuf> {
    fn from_value(value: &Value) -> Option<Self> {
        Option::<String>::from_value(value).map(|path| path.map(PathBuf::from))
    }
}

/// Types of which a parameter may have one or none.
macro_rules! optional {
    ($($type:ty: $pattern:pat => $value:expr,)*) => {
        $(impl FromValue for Option<$type> {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Unset => Some(None),
                    $pattern => Some(Some($value)),
                    _ => None,
                }
            }
        })*
    };
}
optional! {
    Pattern: Value::Pattern(pattern) => pattern.clone(),
    Ipv4Addr: Value::Address(IpAddr::V4(address)) => *address,
    Ipv6Addr: Value::Address(IpAddr::V6(address)) => *address,
}

/// Types of which a parameter may have any number.
macro_rules! many {
    ($($type:ty: $variant:ident,)*) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Unset => Some(Self::new()),
                    Value::$variant(values) => Some(values.clone()),
                    _ => None,
                }
            }
        })*
    };
}
many! {
    Vec<Pattern>: Patterns,
    Vec<String>: Texts,
    Vec<FailsafePort>: FailsafePorts,
    Vec<PortRange>: PortRanges,
    Vec<TableRange>: TableRanges,
    BTreeMap<String, Duration>: Timeouts,
}
