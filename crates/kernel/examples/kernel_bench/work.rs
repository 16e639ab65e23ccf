//! The rules and elements that all write.

use std::net::Ipv4Addr;

/// A rule: packets of one source to one port.
pub(crate) struct Filter {
    pub(crate) source: Ipv4Addr,
    pub(crate) port: u16,
    pub(crate) comment: String,
}

/// Rules per chain.
pub(crate) const PER_CHAIN: u32 = 10;

/// Addresses or prefixes that are added to a large set, and deleted.
pub(crate) const CHANGE: u32 = 100;

/// A set's size where programs are compared.
pub(crate) const MEMBERS: u32 = 100_000;

/// The chains where programs are compared.
pub(crate) const CHAINS: u32 = 1000;

/// The prefix length of a prefix, and the number of addresses in it.
pub(crate) const PREFIX: u8 = 27;
const PREFIX_ADDRESSES: u32 = 1 << (32 - PREFIX);

pub(crate) fn chain(number: u32) -> String {
    format!("cali-pi-{number:08}")
}

pub(crate) fn filters(chain: u32) -> impl Iterator<Item = Filter> {
    (chain * PER_CHAIN..(chain + 1) * PER_CHAIN).map(|number| Filter {
        source: address(number),
        port: u16::try_from(number % 60_000).unwrap_or(0) + 1,
        comment: format!("cali:{number:016}"),
    })
}

pub(crate) fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + number)
}

/// The first address of a prefix. They touch each other, as blocks of a pool do.
pub(crate) fn prefix(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + number * PREFIX_ADDRESSES)
}
