//! Core nodes as Calico nodes, and back: what Calico knows about a node is kept in annotations of the core Node.
//!
//! # Invariants
//! - [`update_node`] touches annotations only, never labels or other fields of the core Node.
//! - Labels that a Calico node inherited from the core Node are not stored a second time: the annotation
//!   [`KUBE_LABELS`] of the Calico node, which is never stored, remembers which ones they are.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Node as KubeNode;
use serde::de::DeserializeOwned;

use super::{Converted, note_annotation};
use crate::kinds::Node;
use crate::kinds::node::{
    NodeAddress, NodeBgpSpec, NodeInterface, NodeSpec, NodeStatus, NodeWireguardSpec, OrchRef,
};
use crate::meta::Metadata;
use crate::net;
use crate::problem::{Path, Problems};

const IPV4_ADDRESS: &str = "projectcalico.org/IPv4Address";
const IPV6_ADDRESS: &str = "projectcalico.org/IPv6Address";
const AS_NUMBER: &str = "projectcalico.org/ASNumber";
const ROUTE_REFLECTOR: &str = "projectcalico.org/RouteReflectorClusterID";
const IPV4_IPIP: &str = "projectcalico.org/IPv4IPIPTunnelAddr";
const IPV4_VXLAN: &str = "projectcalico.org/IPv4VXLANTunnelAddr";
const IPV6_VXLAN: &str = "projectcalico.org/IPv6VXLANTunnelAddr";
const VXLAN_MAC: &str = "projectcalico.org/VXLANTunnelMACAddr";
const VXLAN_MAC_V6: &str = "projectcalico.org/VXLANTunnelMACAddrV6";
const IPV4_WIREGUARD: &str = "projectcalico.org/IPv4WireguardInterfaceAddr";
const IPV6_WIREGUARD: &str = "projectcalico.org/IPv6WireguardInterfaceAddr";
const WIREGUARD_KEY: &str = "projectcalico.org/WireguardPublicKey";
const WIREGUARD_KEY_V6: &str = "projectcalico.org/WireguardPublicKeyV6";
const INTERFACES: &str = "projectcalico.org/Interfaces";
const LABELS: &str = "projectcalico.org/labels";
const ANNOTATIONS: &str = "projectcalico.org/annotations";
const KUBE_LABELS: &str = "projectcalico.org/kube-labels";

/// Converts a core Node. With `use_pod_cidr`, tunnel addresses are the first address of the node's pod CIDR, as with
/// host-local address management. Annotations that cannot be read are ignored and noted.
pub fn node(node: &KubeNode, use_pod_cidr: bool) -> Converted<Node> {
    Converted::from_fn(|problems| {
        let meta = &node.metadata;
        let name = meta.name.clone().unwrap_or_default();
        let empty = BTreeMap::new();
        let mut notes = Annotations {
            all: meta.annotations.as_ref().unwrap_or(&empty),
            problems,
        };

        let mut labels: BTreeMap<String, String> = notes.json(LABELS).unwrap_or_default();
        labels.extend(meta.labels.clone().unwrap_or_default());
        let mut annotations: BTreeMap<String, String> = notes.json(ANNOTATIONS).unwrap_or_default();
        annotations.insert(KUBE_LABELS.into(), to_json(&meta.labels));

        let mut bgp = NodeBgpSpec {
            as_number: notes.parsed(AS_NUMBER, |text| text.parse().ok()),
            ipv4_address: notes.text(IPV4_ADDRESS, |text| is_address(text, 4)),
            ipv6_address: notes.text(IPV6_ADDRESS, |text| is_address(text, 6)),
            ipv4_ipip_tunnel_addr: String::new(),
            route_reflector_cluster_id: notes.text(ROUTE_REFLECTOR, |text| is_network(text, 4)),
        };
        let mut wireguard = NodeWireguardSpec::default();
        let status = NodeStatus {
            wireguard_public_key: notes.text(WIREGUARD_KEY, |_| true),
            wireguard_public_key_v6: notes.text(WIREGUARD_KEY_V6, |_| true),
            pod_cidrs: node
                .spec
                .as_ref()
                .and_then(|spec| spec.pod_cidrs.clone())
                .unwrap_or_default(),
        };
        let pod_cidr = node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref());
        if let Some(cidr) = pod_cidr.filter(|cidr| use_pod_cidr && !cidr.is_empty()) {
            let address = static_tunnel_address(cidr, notes.problems)?;
            if !status.wireguard_public_key.is_empty() {
                wireguard.interface_ipv4_address.clone_from(&address);
            }
            bgp.ipv4_ipip_tunnel_addr = address;
        } else {
            bgp.ipv4_ipip_tunnel_addr = notes.text(IPV4_IPIP, |text| is_network(text, 4));
            wireguard.interface_ipv4_address =
                notes.text(IPV4_WIREGUARD, |text| is_network(text, 4));
            wireguard.interface_ipv6_address =
                notes.text(IPV6_WIREGUARD, |text| is_network(text, 6));
        }
        let spec = NodeSpec {
            ipv4_vxlan_tunnel_addr: notes.text(IPV4_VXLAN, |text| is_network(text, 4)),
            vxlan_tunnel_mac_addr: notes.text(VXLAN_MAC, net::is_mac),
            ipv6_vxlan_tunnel_addr: notes.text(IPV6_VXLAN, |text| is_network(text, 6)),
            vxlan_tunnel_mac_addr_v6: notes.text(VXLAN_MAC_V6, net::is_mac),
            orch_refs: vec![OrchRef {
                node_name: name.clone(),
                orchestrator: "k8s".into(),
            }],
            addresses: all_addresses(&bgp, node),
            interfaces: notes.interfaces(),
            bgp: (bgp != NodeBgpSpec::default()).then_some(bgp),
            wireguard: (wireguard != NodeWireguardSpec::default()).then_some(wireguard),
        };
        let metadata = Metadata {
            name,
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            creation_timestamp: meta.creation_timestamp.clone(),
            labels,
            annotations,
            ..Metadata::default()
        };
        Some(Node {
            metadata,
            spec,
            status,
        })
    })
}

/// Writes what Calico knows about a node into the annotations of its core Node, which keeps everything else.
pub fn update_node(node: &Node, kube_node: &mut KubeNode) -> Result<(), Problems> {
    let Node {
        metadata,
        spec,
        status,
    } = node;
    let mut labels = metadata.labels.clone();
    let mut annotations = metadata.annotations.clone();
    if let Some(text) = annotations
        .remove(KUBE_LABELS)
        .filter(|text| !text.is_empty())
    {
        for key in inherited_labels(&text)?.keys() {
            labels.remove(key);
        }
    }

    let no_bgp = NodeBgpSpec::default();
    let bgp = spec.bgp.as_ref().unwrap_or(&no_bgp);
    let no_wireguard = NodeWireguardSpec::default();
    let wireguard = spec.wireguard.as_ref().unwrap_or(&no_wireguard);
    let as_number = bgp
        .as_number
        .map(|number| number.to_string())
        .unwrap_or_default();
    let json_unless = |is_empty: bool, text: String| if is_empty { String::new() } else { text };
    let values: [(&str, &str); 16] = [
        (LABELS, &json_unless(labels.is_empty(), to_json(&labels))),
        (
            ANNOTATIONS,
            &json_unless(annotations.is_empty(), to_json(&annotations)),
        ),
        (IPV4_ADDRESS, &bgp.ipv4_address),
        (IPV6_ADDRESS, &bgp.ipv6_address),
        (AS_NUMBER, &as_number),
        (ROUTE_REFLECTOR, &bgp.route_reflector_cluster_id),
        (IPV4_IPIP, &bgp.ipv4_ipip_tunnel_addr),
        (IPV4_VXLAN, &spec.ipv4_vxlan_tunnel_addr),
        (IPV6_VXLAN, &spec.ipv6_vxlan_tunnel_addr),
        (VXLAN_MAC, &spec.vxlan_tunnel_mac_addr),
        (VXLAN_MAC_V6, &spec.vxlan_tunnel_mac_addr_v6),
        (IPV4_WIREGUARD, &wireguard.interface_ipv4_address),
        (IPV6_WIREGUARD, &wireguard.interface_ipv6_address),
        (WIREGUARD_KEY, &status.wireguard_public_key),
        (WIREGUARD_KEY_V6, &status.wireguard_public_key_v6),
        (
            INTERFACES,
            &json_unless(spec.interfaces.is_empty(), to_json(&spec.interfaces)),
        ),
    ];
    let stored = kube_node.metadata.annotations.get_or_insert_default();
    for (key, value) in values {
        if value.is_empty() {
            stored.remove(key);
        } else {
            stored.insert(key.to_owned(), value.to_owned());
        }
    }
    Ok(())
}

fn inherited_labels(text: &str) -> Result<BTreeMap<String, String>, Problems> {
    serde_json::from_str::<Option<_>>(text)
        .map(Option::unwrap_or_default)
        .map_err(|_| {
            let mut problems = Problems::default();
            note_annotation(
                &mut problems,
                KUBE_LABELS,
                text,
                "must be left as it was read",
            );
            problems
        })
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("maps and lists of strings can be written as JSON")
}

/// The annotations of a core Node, and the list of those that cannot be read.
struct Annotations<'a> {
    all: &'a BTreeMap<String, String>,
    problems: &'a mut Problems,
}

impl Annotations<'_> {
    fn parsed<T>(&mut self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let text = self.all.get(key).filter(|text| !text.is_empty())?;
        let parsed = parse(text);
        if parsed.is_none() {
            note_annotation(self.problems, key, text, "cannot be read; it is ignored");
        }
        parsed
    }

    /// The annotation if it is valid, else nothing.
    fn text(&mut self, key: &str, is_valid: impl FnOnce(&str) -> bool) -> String {
        self.parsed(key, |text| is_valid(text).then(|| text.to_owned()))
            .unwrap_or_default()
    }

    fn json<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        self.parsed(key, |text| serde_json::from_str::<Option<T>>(text).ok())
            .flatten()
    }

    /// The interfaces, without addresses that are none.
    fn interfaces(&mut self) -> Vec<NodeInterface> {
        let mut interfaces: Vec<NodeInterface> = self.json(INTERFACES).unwrap_or_default();
        for interface in &mut interfaces {
            interface
                .addresses
                .retain(|address| net::parse_ip(address).is_some());
        }
        interfaces
    }
}

fn all_addresses(bgp: &NodeBgpSpec, node: &KubeNode) -> Vec<NodeAddress> {
    let calico = [&bgp.ipv4_address, &bgp.ipv6_address]
        .into_iter()
        .filter(|address| !address.is_empty());
    let calico = calico.map(|address| (address, "CalicoNodeIP"));
    let kubernetes = node
        .status
        .iter()
        .flat_map(|status| status.addresses.iter().flatten());
    let kubernetes = kubernetes
        .filter(|address| matches!(address.type_.as_str(), "InternalIP" | "ExternalIP"))
        .map(|address| (&address.address, address.type_.as_str()));
    let all = calico.chain(kubernetes);
    all.map(|(address, role)| NodeAddress {
        address: address.clone(),
        r#type: role.to_owned(),
    })
    .collect()
}

/// Whether the text is an address or CIDR of the family.
fn is_address(text: &str, family: u8) -> bool {
    net::parse_cidr_or_ip(text).is_some_and(|cidr| cidr.is_ipv4() == (family == 4))
}

/// Whether the text is an address or a CIDR of the family without bits beyond the prefix.
fn is_network(text: &str, family: u8) -> bool {
    is_address(text, family) && net::parse_cidr_or_ip(text).is_some_and(net::Cidr::is_masked)
}

/// The address after the one that the CIDR is written with; nothing for IPv6.
fn static_tunnel_address(cidr: &str, problems: &mut Problems) -> Option<String> {
    let Some(parsed) = net::parse_cidr(cidr) else {
        problems.add(
            &Path::ROOT.field("spec").field("podCIDR"),
            cidr,
            "must be a CIDR such as 10.0.0.0/24",
        );
        return None;
    };
    let IpAddr::V4(address) = parsed.ip() else {
        return Some(String::new());
    };
    let [a, b, c, last] = address.octets();
    Some(IpAddr::from([a, b, c, last.wrapping_add(1)]).to_string())
}

#[cfg(test)]
mod tests;
