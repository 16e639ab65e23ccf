//! Checksums that the kernel verifies.

use std::net::IpAddr;

/// The checksum of TCP, UDP and ICMP for IPv6: over the addresses too.
pub(super) fn with_addresses(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    payload: &[u8],
) -> u16 {
    let mut covered = Vec::with_capacity(40 + payload.len());
    for address in [source, destination] {
        match address {
            IpAddr::V4(address) => covered.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => covered.extend_from_slice(&address.octets()),
        }
    }
    covered.extend_from_slice(&[0, protocol]);
    covered.extend_from_slice(
        &u16::try_from(payload.len())
            .unwrap_or(u16::MAX)
            .to_be_bytes(),
    );
    covered.extend_from_slice(payload);
    internet(&covered)
}

/// The checksum of the Internet protocols.
pub(super) fn internet(bytes: &[u8]) -> u16 {
    let pairs = bytes.chunks(2).map(|pair| {
        u64::from(u16::from_be_bytes([
            pair[0],
            pair.get(1).copied().unwrap_or(0),
        ]))
    });
    let mut sum: u64 = pairs.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

/// The checksum of SCTP: CRC-32C.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ POLYNOMIAL
            } else {
                crc >> 1
            }
        })
    });
    !crc
}

#[cfg(test)]
mod tests {
    use super::{crc32c, internet};

    #[test]
    fn known_values() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // The example of RFC 1071.
        assert_eq!(
            internet(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
        assert_eq!(internet(&[0x01]), !0x0100);
    }
}
