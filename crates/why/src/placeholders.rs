//! What plain manifests leave out because a cluster fills it in: nodes and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where made-up IPv4 addresses come from: the range that is reserved and in use nowhere.
const IPV4: Ipv4Addr = Ipv4Addr::new(240, 0, 0, 0);

/// Where made-up IPv6 addresses come from: a local range that is unlikely to be in use.
const IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x7071, 0x7469, 0x6500, 0, 0, 0, 0);

/// What the names of made-up nodes start with.
const NODE: &str = "no-node.";

/// Hands out addresses that nobody has.
#[derive(Debug, Default)]
pub struct Placeholders {
    count: u32,
}

impl Placeholders {
    /// The next two addresses, one of each version.
    pub(crate) fn addresses(&mut self) -> [IpAddr; 2] {
        self.count += 1;
        let v4 = u32::from(IPV4) + self.count;
        let v6 = u128::from(IPV6) + u128::from(self.count);
        [Ipv4Addr::from(v4).into(), Ipv6Addr::from(v6).into()]
    }

    /// How many asked for addresses.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Whether an address is made up.
    pub fn is_address(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => v4.octets()[0] >= 240 && v4 != Ipv4Addr::BROADCAST,
            IpAddr::V6(v6) => v6.segments()[..4] == IPV6.segments()[..4],
        }
    }

    /// A node for one pod alone.
    pub(crate) fn node(namespace: &str, pod: &str) -> String {
        format!("{NODE}{namespace}.{pod}")
    }

    /// Whether a node is made up.
    pub(crate) fn is_node(node: &str) -> bool {
        node.starts_with(NODE)
    }
}
