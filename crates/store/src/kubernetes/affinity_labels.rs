//! Labels of block affinities, by which other components list those of one host.

use sha3::{Digest, Sha3_256};
use tortie_api::BlockAffinity;
use tortie_api::net;

const HOSTNAME_HASH: &str = "projectcalico.org/hostname-hash";
const AFFINITY_TYPE: &str = "projectcalico.org/affinity-type";
const IP_VERSION: &str = "projectcalico.org/ip-version";

/// The alphabet of RFC 4648.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Sets the labels that follow from the spec. Host names can be longer than a label's value, hence the hash.
pub(super) fn set(affinity: &mut BlockAffinity) {
    let spec = &affinity.spec;
    let affinity_type = if spec.r#type.is_empty() {
        "host"
    } else {
        &spec.r#type
    };
    let is_ipv4 = net::parse_cidr(&spec.cidr).is_none_or(net::Cidr::is_ipv4);
    let labels = [
        (HOSTNAME_HASH, base32(&Sha3_256::digest(&spec.node))),
        (AFFINITY_TYPE, affinity_type.to_owned()),
        (IP_VERSION, if is_ipv4 { "4" } else { "6" }.to_owned()),
    ];
    affinity
        .metadata
        .labels
        .extend(labels.map(|(key, value)| (key.to_owned(), value)));
}

/// Selects the affinities of owners with this name.
pub(super) fn selector(owner: &str) -> String {
    format!("{HOSTNAME_HASH}={}", base32(&Sha3_256::digest(owner)))
}

/// Base32 without padding.
fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut pending, mut bits) = (0_u32, 0);
    for byte in bytes {
        pending = (pending << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(digit(pending >> bits));
        }
        pending &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(digit(pending << (5 - bits)));
    }
    text
}

fn digit(value: u32) -> char {
    char::from(BASE32[(value & 31) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_follows_rfc_4648_without_padding() {
        let cases = [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foob", "MZXW6YQ"),
            ("foobar", "MZXW6YTBOI"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(base32(bytes.as_bytes()), expected);
        }
    }

    #[test]
    fn the_labels_follow_from_the_spec() {
        let mut affinity = BlockAffinity::default();
        affinity.spec.node = "node-1".into();
        affinity.spec.cidr = "fd00::/122".into();
        set(&mut affinity);
        let labels = affinity.metadata.labels;
        assert_eq!(labels[AFFINITY_TYPE], "host");
        assert_eq!(labels[IP_VERSION], "6");
        assert_eq!(labels[HOSTNAME_HASH].len(), 52);
    }
}
