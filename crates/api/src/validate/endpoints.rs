//! Host endpoints, workload endpoints and nodes.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::is_default;
use crate::kinds::WorkloadEndpoint;
use crate::kinds::host_endpoint::HostEndpointSpec;
use crate::kinds::node::NodeSpec;
use crate::kinds::workload_endpoint::{WorkloadEndpointPort, WorkloadEndpointSpec};
use crate::names;
use crate::net;
use crate::problem::{Path, Problems};
use crate::scalar::Protocol;

pub(super) fn check_host(at: &Path<'_>, spec: &HostEndpointSpec, problems: &mut Problems) {
    if spec.node.is_empty() {
        problems.add_missing(&at.field("node"), "must be given");
    }
    if spec.interface_name.is_empty() && spec.expected_ips.is_empty() {
        problems.add_missing(at, "must have interfaceName or expectedIPs");
    }
    let ports_at = at.field("ports");
    for (index, port) in spec.ports.iter().enumerate() {
        let at = ports_at.index(index);
        check_protocol(&at, &port.protocol, problems);
        if port.name.is_empty() {
            problems.add_missing(&at.field("name"), "must be given");
        }
    }
}

fn check_protocol(at: &Path<'_>, protocol: &Protocol, problems: &mut Problems) {
    if !protocol.supports_ports() {
        problems.add(&at.field("protocol"), protocol, "must be TCP, UDP or SCTP");
    }
}

pub(super) fn check_workload(at: &Path<'_>, endpoint: &WorkloadEndpoint, problems: &mut Problems) {
    let spec = &endpoint.spec;
    if spec.interface_name.is_empty() {
        problems.add_missing(&at.field("interfaceName"), "must be given");
    }
    match names::workload_endpoint_name(spec) {
        Ok(name) if name != endpoint.metadata.name => {
            let root = Path::ROOT;
            let metadata = root.field("metadata");
            problems.add(
                &metadata.field("name"),
                &endpoint.metadata.name,
                format!("must be `{name}`, which follows from the spec"),
            );
        }
        Ok(_) => {}
        Err(error) => problems.add_missing(at, error.to_string()),
    }
    let networks_at = at.field("ipNetworks");
    for (index, network) in spec.ip_networks.iter().enumerate() {
        if net::parse_cidr_or_ip(network).is_some_and(|cidr| !cidr.is_single()) {
            let rule = "must be a single address: /32 for IPv4, /128 for IPv6";
            problems.add(&networks_at.index(index), network, rule);
        }
    }
    check_nats(at, spec, problems);
    let ports_at = at.field("ports");
    for (index, port) in spec.ports.iter().enumerate() {
        check_workload_port(&ports_at.index(index), port, problems);
    }
    if let Some(dscp) = spec.qos_controls.as_ref().and_then(|qos| qos.dscp.as_ref())
        && dscp.value().is_none()
    {
        let at = at.field("qosControls");
        problems.add(
            &at.field("dscp"),
            dscp,
            "must be a DSCP value: 0 to 63, or a name such as EF",
        );
    }
}

fn check_workload_port(at: &Path<'_>, port: &WorkloadEndpointPort, problems: &mut Problems) {
    check_protocol(at, &port.protocol, problems);
    if port.name.is_empty() && port.host_port == 0 {
        problems.add_missing(
            &at.field("name"),
            "must be given, because there is no hostPort",
        );
    }
}

/// Every address behind NAT must be one of the endpoint's own.
fn check_nats(at: &Path<'_>, spec: &WorkloadEndpointSpec, problems: &mut Problems) {
    let networks = spec.ip_networks.iter();
    let networks = networks.filter_map(|network| net::parse_cidr_or_ip(network));
    let networks: HashSet<IpNet> = networks.map(net::Cidr::network).collect();
    // There are few of these, however many networks there are.
    let lengths: BTreeSet<u8> = networks.iter().map(IpNet::prefix_len).collect();
    let is_own = |address: IpAddr| {
        let mut around = lengths
            .iter()
            .filter_map(|length| IpNet::new(address, *length).ok());
        around.any(|network| networks.contains(&network.trunc()))
    };
    let nats_at = at.field("ipNATs");
    for (index, nat) in spec.ip_nats.iter().enumerate() {
        let at = nats_at.index(index);
        let internal = net::parse_cidr_or_ip(&nat.internal_ip);
        let external = net::parse_cidr_or_ip(&nat.external_ip);
        let (Some(internal), Some(external)) = (internal, external) else {
            problems.add(
                &at,
                nat,
                "must have an internalIP and an externalIP, both addresses",
            );
            continue;
        };
        if internal.is_ipv4() != external.is_ipv4() {
            problems.add(&at, nat, "must have two addresses of the same IP version");
        }
        if !is_own(internal.ip()) {
            problems.add(
                &at.field("internalIP"),
                &nat.internal_ip,
                "must be one of ipNetworks",
            );
        }
    }
}

pub(super) fn check_node(at: &Path<'_>, spec: &NodeSpec, problems: &mut Problems) {
    if spec.bgp.as_ref().is_some_and(is_default) {
        problems.add_missing(&at.field("bgp"), "must not be empty; leave it out instead");
    }
}
