//! Texts of parameters to values. What is accepted is what Calico's agent accepts; where that would be a value that
//! cannot work, the bounds in the table are narrower.

mod list;
pub(super) mod number;

use std::net::IpAddr;

use tortie_api::net::parse_ip;
use tortie_api::scalar::{Dscp, felix_bool};

use super::parameter::Kind;
use super::value::{Pattern, Value};

/// Longest name of a network interface in Linux.
const MAX_INTERFACE: usize = 15;

/// Longest address to listen on.
const MAX_HOST_ADDRESS: usize = 64;

/// Longest region: namespaces are named after it, and `openstack-region-` precedes it there.
const MAX_REGION: usize = 63 - "openstack-region-".len();

/// The text is not a value of the kind; [`Kind::expected`] says what would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a value of this kind")]
pub struct Refused;

// === impl Kind ===

impl Kind {
    /// Reads the text of a value. The special values, which are the empty text and `none`, are not known here.
    pub fn parse(self, text: &str) -> Result<Value, Refused> {
        self.value(text).ok_or(Refused)
    }

    fn value(self, text: &str) -> Option<Value> {
        let plain = |accepted: bool| accepted.then(|| Value::Text(text.to_owned()));
        match self {
            Self::Bool => felix_bool(text).map(Value::Bool),
            Self::Int { min, max } => number::integer(text)
                .filter(|value| (min..=max).contains(value))
                .map(Value::Int),
            Self::Seconds => number::duration(text, 1.0).map(Value::Duration),
            Self::Millis => number::duration(text, 1e-3).map(Value::Duration),
            Self::Mask => {
                let mask = number::unsigned(text).and_then(number::mask);
                mask.map(|mask| Value::Int(mask.into()))
            }
            Self::OneOf(options) => options
                .iter()
                .find(|option| option.eq_ignore_ascii_case(text))
                .map(|option| Value::Choice(option)),
            Self::Text => plain(!text.contains('\n')),
            Self::InterfacePrefixes => list::interface_prefixes(text),
            Self::InterfacePatterns => list::interface_patterns(text),
            Self::InterfaceName => plain(is_interface_filter(text)),
            Self::InterfaceFilters => list::interface_filters(text),
            Self::HostName => plain(is_word(text, usize::MAX, b"_.-")),
            Self::HostAddress => plain(is_word(text, MAX_HOST_ADDRESS, b":._+-")),
            Self::Authority => plain(is_authority(text)),
            Self::LogRate => plain(is_log_rate(text)),
            Self::Region => plain(is_region(text)),
            Self::Regex => Pattern::new(text).map(Value::Pattern),
            Self::Path => plain(true),
            Self::Ipv4 => parse_ip(text).filter(IpAddr::is_ipv4).map(Value::Address),
            Self::Ipv6 => parse_ip(text).filter(IpAddr::is_ipv6).map(Value::Address),
            Self::Endpoints => list::endpoints(text),
            Self::FailsafePorts => list::failsafe_ports(text),
            Self::PortRange => number::port_range(text).map(|range| Value::PortRanges(vec![range])),
            Self::PortRanges => list::port_ranges(text),
            Self::Cidrs => list::cidrs(text),
            Self::RouteTableRange => list::route_table_range(text),
            Self::RouteTableRanges => list::route_table_ranges(text),
            Self::Pairs => list::pairs(text).map(Value::Pairs),
            Self::Timeouts => list::timeouts(text),
            Self::Dscp => {
                let dscp: Dscp = text.parse().ok()?;
                dscp.value().map(|value| Value::Int(value.into()))
            }
        }
    }
}

/// Whether the text has one to `longest` characters, all letters, digits or one of the others.
fn is_word(text: &str, longest: usize, others: &[u8]) -> bool {
    (1..=longest).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}

fn is_interface_filter(text: &str) -> bool {
    is_word(text, MAX_INTERFACE, b":._+-")
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_authority(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && !host.contains('/') && is_digits(port))
}

fn is_log_rate(text: &str) -> bool {
    text.is_empty()
        || text.split_once('/').is_some_and(|(count, unit)| {
            is_digits(count)
                && count.len() <= 4
                && !count.starts_with('0')
                && ["second", "minute", "hour", "day"].contains(&unit)
        })
}

fn is_region(text: &str) -> bool {
    (1..=MAX_REGION).contains(&text.len())
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}
