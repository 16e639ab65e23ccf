//! Names and addresses of interfaces that every node must compute alike.

use std::fmt::Write as _;

use sha1::{Digest, Sha1};

/// What the names of pod interfaces start with, unless the node agent is configured otherwise.
pub const DEFAULT_VETH_PREFIX: &str = "cali";

/// Hex digits of the hash in an interface name: with a prefix of four letters, the kernel's limit of 15 is met.
const VETH_HASH_DIGITS: usize = 11;

/// A version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The host side of a pod's interface: the prefix and the start of a hash of namespace and pod.
pub fn veth_name(namespace: &str, pod: &str, prefix: &str) -> String {
    let digest = Sha1::new()
        .chain_update(namespace)
        .chain_update(".")
        .chain_update(pod)
        .finalize();
    let mut name = prefix.to_owned();
    for byte in digest {
        write!(name, "{byte:02x}").expect("writing to a string does not fail");
    }
    name.truncate(prefix.len() + VETH_HASH_DIGITS);
    name
}

/// The MAC address of a node's VXLAN device where none is configured.
pub fn vtep_mac(node: &str, ip_version: IpVersion) -> String {
    let suffix = match ip_version {
        IpVersion::V4 => "",
        IpVersion::V6 => "-v6",
    };
    let digest = Sha1::new()
        .chain_update(node)
        .chain_update(suffix)
        .finalize();
    // 0x66 marks a locally administered unicast address.
    let mut mac = "66".to_owned();
    for byte in &digest[..5] {
        write!(mac, ":{byte:02x}").expect("writing to a string does not fail");
    }
    mac
}
