//! Names, labels and annotations, by Kubernetes' rules.

use std::collections::BTreeMap;

use crate::problem::{Path, Problems};

/// Longest name of an object.
pub(crate) const MAX_NAME: usize = 253;
/// Longest DNS label; also the longest name of a tier, because it must fit in a label value.
pub(crate) const MAX_LABEL: usize = 63;
/// All annotation keys and values of an object together.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// Whether the text is one DNS label, of any length.
pub(crate) fn is_label_text(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether the text is DNS labels joined by dots, of any length.
pub(crate) fn is_subdomain_text(text: &str) -> bool {
    text.split('.').all(is_label_text)
}

/// Whether the text can name a container's port.
pub(crate) fn is_port_name(text: &str) -> bool {
    text.len() <= 15
        && is_label_text(text)
        && !text.contains("--")
        && text.bytes().any(|b| b.is_ascii_lowercase())
}

/// Whether the text is `name` or `prefix/name` as label keys are.
pub fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(|p| p.len() <= MAX_NAME && is_subdomain_text(p))
        && (1..=MAX_LABEL).contains(&name.len())
        && has_qualified_characters(name)
}

fn is_label_value(text: &str) -> bool {
    text.is_empty() || (text.len() <= MAX_LABEL && has_qualified_characters(text))
}

fn has_qualified_characters(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let is_edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().copied().all(is_inner) && is_edge(bytes.first()) && is_edge(bytes.last())
}

/// Checks one label.
pub(crate) fn check(at: &Path<'_>, key: &str, value: &str, problems: &mut Problems) {
    if !is_qualified_name(key) {
        problems.add(
            at,
            key,
            "is not a label name: at most 63 letters, digits, `-`, `_` and `.`, optionally after a DNS name and `/`",
        );
    }
    if !is_label_value(value) {
        problems.add(
            &at.field(key),
            value,
            "is not a label value: at most 63 letters, digits, `-`, `_` and `.`, starting and ending with a letter or digit",
        );
    }
}

/// Checks all annotations of an object or rule.
pub(crate) fn annotations(
    at: &Path<'_>,
    annotations: &BTreeMap<String, String>,
    problems: &mut Problems,
) {
    for key in annotations
        .keys()
        .filter(|key| !is_qualified_name(&key.to_ascii_lowercase()))
    {
        problems.add(
            at,
            key,
            "is not an annotation name: at most 63 letters, digits, `-`, `_` and `.`, optionally after a DNS name and `/`",
        );
    }
    let size: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if size > MAX_ANNOTATIONS {
        let rule = format!("must be at most {MAX_ANNOTATIONS} bytes together, are {size}");
        problems.add_missing(at, rule);
    }
}
