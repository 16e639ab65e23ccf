//! Handles: how many addresses a holder has in which blocks.

use ipnet::IpNet;
use tortie_api::IpamHandle;
use tortie_api::net::parse_cidr;

/// A new handle without addresses.
pub fn new_handle(id: &str) -> IpamHandle {
    let mut handle = IpamHandle::default();
    id.clone_into(&mut handle.metadata.name);
    id.clone_into(&mut handle.spec.handle_id);
    handle
}

/// Counts addresses of a block more or fewer; an entry that comes to nothing goes.
pub fn count(handle: &mut IpamHandle, block: IpNet, change: i64) {
    let blocks = &mut handle.spec.block;
    let key = block.to_string();
    let count = blocks
        .get(&key)
        .copied()
        .unwrap_or(0)
        .saturating_add(change);
    if count > 0 {
        blocks.insert(key, count);
    } else {
        blocks.remove(&key);
    }
}

pub fn forget(handle: &mut IpamHandle, block: IpNet) {
    handle.spec.block.remove(&block.to_string());
}

/// Whether it has no addresses.
pub fn is_empty(handle: &IpamHandle) -> bool {
    handle.spec.block.is_empty()
}

/// The blocks in which it has addresses, IPv4 first.
pub fn blocks(handle: &IpamHandle) -> Vec<IpNet> {
    let mut blocks: Vec<IpNet> = handle
        .spec
        .block
        .keys()
        .filter_map(|cidr| parse_cidr(cidr))
        .map(tortie_api::net::Cidr::network)
        .collect();
    blocks.sort_unstable();
    blocks
}

/// How many addresses of an IP version it has.
pub fn count_of_version(handle: &IpamHandle, version: u8) -> u32 {
    let is_ipv6 = version == 6;
    let blocks = handle.spec.block.iter();
    let counts = blocks.filter(|(cidr, _)| cidr.contains(':') == is_ipv6);
    counts.fold(0, |sum, (_, count)| {
        sum.saturating_add(u32::try_from(*count).unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_counts_by_block_and_forgets_what_comes_to_nothing() {
        let [v4, v6]: [IpNet; 2] = ["10.0.0.0/26", "fd00::/122"].map(|net| net.parse().unwrap());
        let mut handle = new_handle("Net.0A");
        assert_eq!(handle.metadata.name, "Net.0A");
        count(&mut handle, v6, 1);
        count(&mut handle, v4, 2);
        count(&mut handle, v4, 1);
        assert_eq!(
            (count_of_version(&handle, 4), count_of_version(&handle, 6)),
            (3, 1)
        );
        assert_eq!(blocks(&handle), [v4, v6]);
        count(&mut handle, v4, -9);
        assert_eq!(blocks(&handle), [v6]);
        forget(&mut handle, v6);
        assert!(is_empty(&handle));
    }
}
