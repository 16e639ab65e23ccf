//! Addresses as numbers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// How many addresses the network has; saturates.
pub(crate) fn size(net: IpNet) -> u128 {
    1_u128
        .checked_shl(u32::from(net.max_prefix_len() - net.prefix_len()))
        .unwrap_or(u128::MAX)
}

/// The address at a place in the network; the place must be in it.
pub(crate) fn nth(net: IpNet, ordinal: u128) -> IpAddr {
    match net.network() {
        IpAddr::V4(base) => {
            let number = u128::from(u32::from(base)).wrapping_add(ordinal);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the place is in the network"
            )]
            IpAddr::V4(Ipv4Addr::from(number as u32))
        }
        IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from(u128::from(base).wrapping_add(ordinal))),
    }
}

/// The place of an address in the network; none if it is outside.
pub(crate) fn ordinal(net: IpNet, address: IpAddr) -> Option<u128> {
    net.contains(&address)
        .then(|| number(address).wrapping_sub(number(net.network())))
}

pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The block of this prefix length that the address is in.
pub(crate) fn block_of(address: IpAddr, prefix: u8) -> Option<IpNet> {
    IpNet::new(address, prefix).ok().map(|net| net.trunc())
}

/// The address with the prefix length of its block.
pub(crate) fn in_block(address: IpAddr, block: IpNet) -> IpNet {
    IpNet::new(address, block.prefix_len()).unwrap_or_else(|_| address.into())
}

/// 4 or 6.
pub(crate) fn version(net: IpNet) -> u8 {
    if net.addr().is_ipv4() { 4 } else { 6 }
}
