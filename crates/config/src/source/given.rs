//! What a source gives for a parameter.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tortie_api::felix_configuration::ProtoPort;
use tortie_api::net::parse_cidr_or_ip;
use tortie_api::scalar::{GoDuration, Port};

use crate::parameter::Kind;
use crate::parse::{Refused, number};
use crate::value::{FailsafePort, PortRange, TransportProtocol, Value};

/// What a source gives for a parameter: a text, or what a field of a resource holds.
///
/// Two are equal if their texts are. Text is also what a record has, and what it is read from.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Given {
    Text(String),
    /// Yes or no.
    Bool(bool),
    Number(i64),
    /// A time that the parameter has in seconds.
    Seconds(GoDuration),
    /// A time that the parameter has in milliseconds.
    Millis(GoDuration),
    /// Ports that stay open.
    FailsafePorts(Vec<ProtoPort>),
    /// Ports and ranges of ports.
    Ports(Vec<Port>),
}

// === impl Given ===

impl Given {
    /// As the parameter is written.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Bool(value) => Cow::Owned(value.to_string()),
            Self::Number(value) => Cow::Owned(value.to_string()),
            Self::Seconds(duration) => Cow::Owned(decimal(duration.as_nanos(), 9)),
            Self::Millis(duration) => Cow::Owned(decimal(duration.as_nanos(), 6)),
            // An empty text would mean that the parameter is not set.
            Self::FailsafePorts(ports) if ports.is_empty() => Cow::Borrowed("none"),
            Self::FailsafePorts(ports) => Cow::Owned(list(ports, failsafe_text)),
            Self::Ports(ports) => Cow::Owned(list(ports, ToString::to_string)),
        }
    }

    /// The value that this is to a parameter. That a text may stand for no value is not known here.
    pub(crate) fn value(&self, kind: Kind) -> Result<Value, Refused> {
        let value = match (self, kind) {
            (Self::Bool(value), Kind::Bool) => Some(Value::Bool(*value)),
            (Self::Number(value), Kind::Int { min, max }) => {
                (min..=max).contains(value).then_some(Value::Int(*value))
            }
            (Self::Number(value), Kind::Mask) => {
                let mask = u64::try_from(*value).ok().and_then(number::mask);
                mask.map(|mask| Value::Int(mask.into()))
            }
            (Self::Seconds(time), Kind::Seconds) | (Self::Millis(time), Kind::Millis) => {
                // Times before now count as no time.
                let nanos = u64::try_from(time.as_nanos()).unwrap_or(0);
                Some(Value::Duration(Duration::from_nanos(nanos)))
            }
            (Self::FailsafePorts(ports), Kind::FailsafePorts) => {
                let ports: Option<Vec<FailsafePort>> = ports.iter().map(failsafe_port).collect();
                ports.map(Value::FailsafePorts)
            }
            (Self::Ports(ports), Kind::PortRange | Kind::PortRanges) => {
                let ranges: Option<Vec<PortRange>> = ports.iter().map(number::range_of).collect();
                ranges.map(Value::PortRanges)
            }
            (_, kind) => return kind.parse(&self.text()),
        };
        value.ok_or(Refused)
    }
}

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Given {}

impl From<String> for Given {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Given {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Given> for String {
    fn from(given: Given) -> Self {
        given.text().into_owned()
    }
}

fn failsafe_port(port: &ProtoPort) -> Option<FailsafePort> {
    let network = match port.net.as_str() {
        "" => None,
        net => Some(parse_cidr_or_ip(net)?.network()),
    };
    Some(FailsafePort {
        protocol: TransportProtocol::from_name(&port.protocol)?,
        network,
        port: port.port,
    })
}

fn failsafe_text(each: &ProtoPort) -> String {
    let (protocol, port) = (each.protocol.to_lowercase(), each.port);
    match each.net.as_str() {
        "" => format!("{protocol}:{port}"),
        net if net.contains(':') => format!("{protocol}:[{net}]:{port}"),
        net => format!("{protocol}:{net}:{port}"),
    }
}

pub(super) fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    let texts: Vec<String> = items.iter().map(text).collect();
    texts.join(",")
}

/// A whole number with a decimal point before its last digits, and without zeros at the end.
fn decimal(number: i64, digits: usize) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let padded = format!("{:0>1$}", number.unsigned_abs(), digits + 1);
    let (whole, fraction) = padded.split_at(padded.len() - digits);
    let text = format!("{sign}{whole}.{fraction}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
