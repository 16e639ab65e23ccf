//! Texts of a spec as values; what cannot be read is noted.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::net::{Cidr, parse_cidr, parse_cidr_or_ip, parse_ip};
use tortie_api::{Path, Problems};
use tortie_selector::Selector;

/// Reads a selector.
pub(super) fn selector(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<Selector> {
    match Selector::parse(text) {
        Ok(selector) => Some(selector),
        Err(error) => {
            problems.add(at, text, error.to_string());
            None
        }
    }
}

/// Reads a CIDR or a single address, and gives it as written: with bits beyond the prefix, if there are any.
pub(super) fn cidr(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<Cidr> {
    let cidr = parse_cidr_or_ip(text);
    if cidr.is_none() {
        problems.add(at, text, "must be an address or a CIDR");
    }
    cidr
}

/// Reads a CIDR or a single address as a network.
pub(super) fn net(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<IpNet> {
    cidr(at, text, problems).map(Cidr::network)
}

/// Reads a list of networks; none of them if one cannot be read, and all that cannot are noted.
pub(super) fn nets(at: &Path<'_>, texts: &[String], problems: &mut Problems) -> Option<Vec<IpNet>> {
    let read = readable_nets(at, texts, problems);
    (read.len() == texts.len()).then_some(read)
}

/// Reads a list of networks without those that cannot be read.
pub(super) fn readable_nets(
    at: &Path<'_>,
    texts: &[String],
    problems: &mut Problems,
) -> Vec<IpNet> {
    let texts = texts.iter().enumerate();
    texts
        .filter_map(|(index, text)| net(&at.index(index), text, problems))
        .collect()
}

/// Reads the range of a pool or block, which must be a CIDR.
pub(super) fn range(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<IpNet> {
    let cidr = parse_cidr(text);
    if cidr.is_none() {
        problems.add(at, text, "must be a CIDR");
    }
    cidr.map(Cidr::network)
}

/// Reads an address.
pub(super) fn address(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<IpAddr> {
    let ip = parse_ip(text);
    if ip.is_none() {
        problems.add(at, text, "must be an address");
    }
    ip
}

/// Reads a field that may be empty: `Some(None)` if it is, and `None` if it cannot be read.
#[expect(
    clippy::option_option,
    reason = "the outer one is for `?`, the inner one is the value"
)]
pub(super) fn optional<T>(text: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if text.is_empty() {
        Some(None)
    } else {
        read(text).map(Some)
    }
}
