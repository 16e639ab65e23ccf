//! What else must hold for a connection to be led to a container, in the words of iptables or of nft.
//!
//! Of these languages those words are known that say where a packet comes from and goes to. Anything else is refused: a
//! condition that is left out would open what was to be closed.

use std::iter::Peekable;

use ipnet::IpNet;
use tortie_api::net::parse_cidr_or_ip;
use tortie_kernel::nft::{Base, Comparison, Expr, MetaKey, Register, Value};

use crate::error::{Code, Error, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    what: What,
    is_inverted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Source(IpNet),
    Destination(IpNet),
    /// The interface that it arrives by; with `+` or `*` at its end, all whose names begin so.
    Interface(String),
}

/// Reads conditions, however they are cut into texts.
pub(super) fn read(key: &str, texts: &[String], is_ipv4: bool) -> Result<Vec<Condition>> {
    let all = texts.join(" ");
    let mut words = all.split_whitespace().peekable();
    let mut found = Vec::new();
    while words.peek().is_some() {
        let condition = read_one(&mut words, is_ipv4).ok_or_else(|| {
            let message = format!(
                "network configuration: `{key}` is `{all}`: known are [!] -s CIDR, [!] -d CIDR and [!] -i NAME of iptables, and `ip saddr`, `ip daddr` (for IPv6 `ip6`) and `iifname` of nft, with or without !="
            );
            Error::new(Code::UnsupportedField, message)
        })?;
        found.push(condition);
    }
    Ok(found)
}

fn read_one<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    is_ipv4: bool,
) -> Option<Condition> {
    let mut is_inverted = words.next_if_eq(&"!").is_some();
    let kind = match words.next()? {
        "ip" if is_ipv4 => words.next()?,
        "ip6" if !is_ipv4 => words.next()?,
        "saddr" | "daddr" => return None,
        other => other,
    };
    // Either language says it in its own place.
    is_inverted |= words.next_if(|word| ["!", "!="].contains(word)).is_some();
    words.next_if_eq(&"==");
    let value = words.next()?.trim_matches('"');
    let network = || {
        let cidr = parse_cidr_or_ip(value).filter(|cidr| cidr.is_ipv4() == is_ipv4)?;
        Some(cidr.network())
    };
    let what = match kind {
        "-s" | "--source" | "--src" | "saddr" => What::Source(network()?),
        "-d" | "--destination" | "--dst" | "daddr" => What::Destination(network()?),
        "-i" | "--in-interface" | "iifname" => What::Interface(value.to_owned()),
        _ => return None,
    };
    Some(Condition { what, is_inverted })
}

impl Condition {
    /// The steps of a rule that go on where it holds.
    pub(super) fn write(&self, out: &mut Vec<Expr>) {
        let how = if self.is_inverted {
            Comparison::NotEqual
        } else {
            Comparison::Equal
        };
        match &self.what {
            What::Source(network) => write_network(*network, false, how, out),
            What::Destination(network) => write_network(*network, true, how, out),
            What::Interface(name) => {
                out.push(Expr::Meta {
                    key: MetaKey::InputInterfaceName,
                    to: Register::FIRST,
                });
                let value = match name.strip_suffix(['+', '*']) {
                    Some(prefix) => Value::interface_prefix(prefix),
                    None => Value::interface(name),
                };
                out.push(compare(how, value));
            }
        }
    }
}

/// Goes on where source or destination is in a network, or is not.
pub(super) fn write_network(
    network: IpNet,
    is_destination: bool,
    how: Comparison,
    out: &mut Vec<Expr>,
) {
    let (source, length) = if network.addr().is_ipv4() {
        (12, 4)
    } else {
        (8, 16)
    };
    out.push(Expr::Payload {
        base: Base::Network,
        offset: if is_destination {
            source + length
        } else {
            source
        },
        length,
        to: Register::FIRST,
    });
    if network.prefix_len() < network.max_prefix_len() {
        out.push(Expr::Bitwise {
            from: Register::FIRST,
            to: Register::FIRST,
            mask: Value::address(network.netmask()),
            xor: Value::from_bytes(&vec![0; if length == 4 { 4 } else { 16 }]),
        });
    }
    out.push(compare(how, Value::address(network.network())));
}

pub(super) fn compare(how: Comparison, value: Value) -> Expr {
    Expr::Compare {
        from: Register::FIRST,
        how,
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], is_ipv4: bool, expected: &[(What, bool)]) {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let found = read("conditionsV4", &texts, is_ipv4).expect("conditions");
        let found: Vec<(What, bool)> = found.into_iter().map(|c| (c.what, c.is_inverted)).collect();
        assert_eq!(found, expected, "{texts:?}");
    }

    fn network(text: &str) -> IpNet {
        text.parse().expect("a network")
    }

    #[test]
    fn both_languages_are_understood() {
        let v4 = || What::Destination(network("192.0.2.0/24"));
        check(&["!", "-d", "192.0.2.0/24"], true, &[(v4(), true)]);
        check(&["-d ! 192.0.2.0/24"], true, &[(v4(), true)]);
        check(
            &["ip", "daddr", "!=", "192.0.2.0/24"],
            true,
            &[(v4(), true)],
        );
        check(
            &["ip daddr 192.0.2.0/24", "iifname \"eth*\""],
            true,
            &[(v4(), false), (What::Interface("eth*".to_owned()), false)],
        );
        check(
            &["-s", "192.0.2.1", "-i", "eth0"],
            true,
            &[
                (What::Source(network("192.0.2.1/32")), false),
                (What::Interface("eth0".to_owned()), false),
            ],
        );
        check(
            &["ip6 saddr fc00::/7"],
            false,
            &[(What::Source(network("fc00::/7")), false)],
        );
        check(&[], true, &[]);
        check(&[""], true, &[]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "-m addrtype",
            "-d",
            "-d 2001:db8::/32",
            "ip6 daddr ::1",
            "saddr 10.0.0.0/8",
            "!",
            "ct state new",
            "ip daddr { 10.0.0.0/8, 10.1.0.0/16 }",
        ] {
            let error = read("conditionsV4", &[text.to_owned()], true).expect_err("a refusal");
            assert_eq!(error.code(), Code::UnsupportedField, "{text}");
        }
    }
}
