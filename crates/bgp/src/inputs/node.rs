//! What of a Node BGP has a use for.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use tortie_api::net::{self, Cidr};
use tortie_selector::Labels;

use crate::{Family, PerFamily};

/// Nodes with this label, and the value `true`, attract no traffic for services.
const EXCLUDE_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A node, reduced to what a plan can be made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NodeFacts {
    pub(crate) session: SessionFacts,
    pub(crate) labels: PackedLabels,
}

/// What of a node sessions and routes are made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SessionFacts {
    pub(crate) addresses: PerFamily<Option<NodeAddress>>,
    pub(crate) as_number: Option<u32>,
    /// What makes it a route reflector.
    pub(crate) cluster_id: Option<Ipv4Addr>,
    /// Whether it has an address of `WireGuard`.
    pub(crate) has_wireguard: PerFamily<bool>,
    /// Fields that could not be read, with what they say.
    pub(crate) unreadable: Vec<(&'static str, String)>,
}

/// The address that a node's sessions start from, and its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeAddress {
    pub(crate) address: IpAddr,
    pub(crate) network: IpNet,
}

impl NodeFacts {
    pub(crate) fn new(node: &tortie_api::Node) -> Self {
        let mut session = SessionFacts::default();
        if let Some(bgp) = &node.spec.bgp {
            for (family, field, text) in [
                (Family::V4, "spec.bgp.ipv4Address", &bgp.ipv4_address),
                (Family::V6, "spec.bgp.ipv6Address", &bgp.ipv6_address),
            ] {
                if text.is_empty() {
                    continue;
                }
                match net::parse_cidr_or_ip(text).filter(|cidr| is_usable(*cidr, family)) {
                    Some(cidr) => {
                        *session.addresses.get_mut(family) = Some(NodeAddress {
                            address: cidr.ip(),
                            network: cidr.network(),
                        });
                    }
                    None => session.unreadable.push((field, text.clone())),
                }
            }
            session.as_number = bgp.as_number.map(|number| number.0);
            let id = &bgp.route_reflector_cluster_id;
            session.cluster_id = id.parse().ok();
            if session.cluster_id.is_none() && !id.is_empty() {
                let field = "spec.bgp.routeReflectorClusterID";
                session.unreadable.push((field, id.clone()));
            }
        }
        if let Some(wireguard) = &node.spec.wireguard {
            session.has_wireguard = PerFamily {
                v4: !wireguard.interface_ipv4_address.is_empty(),
                v6: !wireguard.interface_ipv6_address.is_empty(),
            };
        }
        Self {
            session,
            labels: PackedLabels::new(&node.metadata.labels),
        }
    }

    pub(crate) fn address(&self, family: Family) -> Option<IpAddr> {
        self.session.addresses.get(family).map(|a| a.address)
    }

    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        self.address(Family::of(address)) == Some(address)
    }

    /// Whether it asks not to attract traffic for services.
    pub(crate) fn is_excluded(&self) -> bool {
        self.labels.get(EXCLUDE_LABEL) == Some("true")
    }
}

fn is_usable(cidr: Cidr, family: Family) -> bool {
    Family::of(cidr.ip()) == family && is_unicast(cidr.ip())
}

/// Whether a neighbour can have the address without it being known on which interface.
pub(crate) fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast(),
        IpAddr::V6(ip) => {
            let is_special = ip.is_unspecified() || ip.is_multicast();
            !is_special && !ip.is_unicast_link_local() && ip.to_ipv4_mapped().is_none()
        }
    }
}

/// Labels in one allocation: each name and each value with an end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PackedLabels(Box<str>);

/// Ends names and values. Labels that have it themselves are left out; Kubernetes has none.
const END: char = '\0';

impl PackedLabels {
    fn new(labels: &std::collections::BTreeMap<String, String>) -> Self {
        let mut packed = String::new();
        for (name, value) in labels {
            if !name.contains(END) && !value.contains(END) {
                packed.extend([name, "\0", value, "\0"]);
            }
        }
        Self(packed.into())
    }
}

impl Labels for PackedLabels {
    fn get(&self, name: &str) -> Option<&str> {
        let mut parts = self.0.split(END);
        loop {
            let found = parts.next()?;
            let value = parts.next()?;
            if found == name {
                return Some(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn packed_labels_are_found_by_name_alone() {
        let labels = [("a", "b"), ("b", ""), ("c", "a")];
        let labels: BTreeMap<String, String> = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let packed = PackedLabels::new(&labels);
        for name in ["a", "b", "c", "d", ""] {
            assert_eq!(
                packed.get(name),
                labels.get(name).map(String::as_str),
                "{name}"
            );
        }
    }
}
