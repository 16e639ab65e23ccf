//! The named rules that fields refer to with `x-check`, such as `"x-check" = "selector"`.
//!
//! A rule is skipped on an empty string: whether a field may be left out is said by `required`. On a list, a rule
//! holds for each item, except `unique`, which holds for the list.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use tortie_selector::Selector;

use crate::net;
use crate::problem::{Path, Problems};
use crate::repeated::repeated;
use crate::validate::labels;

/// A rule for one value.
#[derive(Debug, Clone)]
pub(crate) enum Check {
    Text(&'static TextRule),
    OneOf(Vec<String>),
    Above(f64),
    AtLeast(f64),
    Below(f64),
    AtMost(f64),
    Unique,
    Selector,
    Labels,
    InterfaceKeys,
}

/// A rule for text: how it is called, when it holds, and what to say when it does not.
#[derive(Debug)]
pub(crate) struct TextRule {
    name: &'static str,
    holds: fn(&str) -> bool,
    expected: &'static str,
}

const TEXT_RULES: &[TextRule] = &[
    TextRule {
        name: "name",
        holds: labels::is_subdomain_text,
        expected: "must be lower-case letters, digits, `-` and `.`, starting and ending with a letter or digit",
    },
    TextRule {
        name: "containerID",
        holds: is_container_id,
        expected: "must be letters, digits and `-`, starting and ending with a letter or digit",
    },
    TextRule {
        name: "portName",
        holds: labels::is_port_name,
        expected: "must be a port name: at most 15 lower-case letters, digits and single `-`, with at least one letter",
    },
    TextRule {
        name: "interface",
        holds: |text| text == "*" || is_interface(text, b"_.-"),
        expected: "must be an interface name (at most 15 letters, digits, `_`, `.`, `-`) or `*`",
    },
    TextRule {
        name: "bgpFilterInterface",
        holds: |text| is_interface(text, b"_.*-"),
        expected: "must be an interface name of at most 15 characters; `*` stands for any characters",
    },
    TextRule {
        name: "ignoredInterface",
        holds: |text| text != "*" && is_interface(text, b"_.*-"),
        expected: "must be an interface name of at most 15 characters, with `*` as a wildcard, but not `*` alone",
    },
    TextRule {
        name: "ifaceFilter",
        holds: |text| is_interface(text, b":._+-"),
        expected: "must be an interface name of at most 15 characters; a final `+` stands for any characters",
    },
    TextRule {
        name: "prometheusHost",
        holds: |text| text.len() <= 64 && has_only(text, b":._+-"),
        expected: "must be a host name or address of at most 64 characters",
    },
    TextRule {
        name: "mac",
        holds: net::is_mac,
        expected: "must be a MAC address such as 66:2d:93:4a:3d:0b",
    },
    TextRule {
        name: "keyValueList",
        holds: is_key_value_list,
        expected: "must be a comma-separated list of key=value",
    },
    TextRule {
        name: "regexp",
        holds: |text| Regex::new(text).is_ok(),
        expected: "must be a regular expression",
    },
    TextRule {
        name: "wireguardPublicKey",
        holds: is_wireguard_key,
        expected: "must be a WireGuard key: 32 bytes in base64",
    },
    TextRule {
        name: "IP:port",
        holds: |text| net::parse_ip_port(text).is_some(),
        expected: "must be an address, or an address with a port such as 10.0.0.1:179 or [fd00::1]:179",
    },
    TextRule {
        name: "ip",
        holds: |text| net::parse_ip(text).is_some(),
        expected: "must be an IP address",
    },
    TextRule {
        name: "ipv4",
        holds: |text| net::parse_ip(text).is_some_and(|ip| ip.is_ipv4()),
        expected: "must be an IPv4 address",
    },
    TextRule {
        name: "ipv6",
        holds: |text| net::parse_ip(text).is_some_and(|ip| ip.is_ipv6()),
        expected: "must be an IPv6 address",
    },
    TextRule {
        name: "net",
        holds: |text| net::parse_cidr_or_ip(text).is_some_and(super::super::net::Cidr::is_masked),
        expected: "must be an address or a CIDR with no bits set beyond its prefix length",
    },
    TextRule {
        name: "netv4",
        holds: |text| {
            net::parse_cidr_or_ip(text).is_some_and(|cidr| cidr.is_masked() && cidr.is_ipv4())
        },
        expected: "must be an IPv4 address or a CIDR with no bits set beyond its prefix length",
    },
    TextRule {
        name: "netv6",
        holds: |text| {
            net::parse_cidr_or_ip(text).is_some_and(|cidr| cidr.is_masked() && !cidr.is_ipv4())
        },
        expected: "must be an IPv6 address or a CIDR with no bits set beyond its prefix length",
    },
    TextRule {
        name: "cidr",
        holds: |text| net::parse_cidr_or_ip(text).is_some(),
        expected: "must be an address or a CIDR such as 10.0.0.0/8",
    },
    TextRule {
        name: "cidrv4",
        holds: |text| net::parse_cidr_or_ip(text).is_some_and(super::super::net::Cidr::is_ipv4),
        expected: "must be an IPv4 address or CIDR such as 10.0.0.0/8",
    },
    TextRule {
        name: "cidrv6",
        holds: |text| net::parse_cidr_or_ip(text).is_some_and(|cidr| !cidr.is_ipv4()),
        expected: "must be an IPv6 address or CIDR such as fd00::/8",
    },
];

impl Check {
    /// Reads the rules of one `x-check`.
    pub(super) fn parse_all(rules: &str) -> Vec<Self> {
        rules.split(',').map(Self::parse).collect()
    }

    fn parse(rule: &str) -> Self {
        let (name, argument) = rule.split_once('=').unwrap_or((rule, ""));
        let number = || {
            argument
                .parse()
                .expect("numeric rules of our own types carry a number")
        };
        match name {
            "selector" => Self::Selector,
            "labels" => Self::Labels,
            "interfaceKeys" => Self::InterfaceKeys,
            "unique" => Self::Unique,
            "oneof" => Self::OneOf(argument.split(' ').map(str::to_owned).collect()),
            "gt" => Self::Above(number()),
            "gte" => Self::AtLeast(number()),
            "lt" => Self::Below(number()),
            "lte" => Self::AtMost(number()),
            _ => Self::Text(
                TEXT_RULES
                    .iter()
                    .find(|known| known.name == name)
                    .expect("rules of our own types exist"),
            ),
        }
    }

    /// Whether the rule, standing on a list, speaks of each item.
    pub(super) fn is_per_item(&self) -> bool {
        !matches!(self, Self::Unique)
    }

    /// Notes a problem if the rule does not hold.
    pub(super) fn apply(&self, at: &Path<'_>, value: &Value, problems: &mut Problems) {
        match (self, value) {
            (Self::Text(rule), Value::String(text)) if !text.is_empty() && !(rule.holds)(text) => {
                problems.add(at, value, rule.expected);
            }
            (Self::Selector, Value::String(text)) => selector(at, text, problems),
            (Self::OneOf(allowed), Value::String(text))
                if !text.is_empty() && !allowed.contains(text) =>
            {
                problems.add(at, value, format!("must be one of {}", allowed.join(", ")));
            }
            (Self::Labels, Value::Object(entries)) => {
                for (key, value) in entries {
                    labels::check(at, key, value.as_str().unwrap_or_default(), problems);
                }
            }
            (Self::InterfaceKeys, Value::Object(entries)) => {
                for key in entries.keys().filter(|key| !is_interface(key, b"_.-")) {
                    problems.add(
                        at,
                        key,
                        "must be an interface name of at most 15 characters",
                    );
                }
            }
            (Self::Unique, Value::Array(list)) => {
                for (index, item) in repeated(list) {
                    problems.add(&at.index(index), item, "must not be given twice");
                }
            }
            (_, Value::Number(number)) => self.apply_to_number(at, number, problems),
            _ => {}
        }
    }

    fn apply_to_number(&self, at: &Path<'_>, number: &serde_json::Number, problems: &mut Problems) {
        let Some(value) = number.as_f64() else { return };
        let (holds, rule) = match self {
            Self::Above(bound) => (value > *bound, format!("must be above {bound}")),
            Self::AtLeast(bound) => (value >= *bound, format!("must be at least {bound}")),
            Self::Below(bound) => (value < *bound, format!("must be below {bound}")),
            Self::AtMost(bound) => (value <= *bound, format!("must be at most {bound}")),
            _ => return,
        };
        if !holds {
            problems.add(at, number, rule);
        }
    }
}

/// Notes a selector that does not parse, with a caret under the place.
fn selector(at: &Path<'_>, text: &str, problems: &mut Problems) {
    if let Err(error) = Selector::parse(text) {
        let rule = format!("is not a selector: {error}");
        problems.push(at, Some(&Value::from(text)), rule, Some(error.caret(text)));
    }
}

fn has_only(text: &str, extra: &[u8]) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || extra.contains(&b))
}

fn is_interface(text: &str, extra: &[u8]) -> bool {
    (1..=15).contains(&text.len()) && has_only(text, extra)
}

fn is_container_id(text: &str) -> bool {
    has_only(text, b"-") && !text.starts_with('-') && !text.ends_with('-')
}

fn is_key_value_list(text: &str) -> bool {
    static ITEM: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s*[0-9A-Za-z_]+=.*$").expect("a constant pattern compiles")
    });
    text.trim().is_empty()
        || text
            .split(',')
            .all(|item| item.is_empty() || ITEM.is_match(item))
}

fn is_wireguard_key(text: &str) -> bool {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .is_ok_and(|key| key.len() == 32)
}
