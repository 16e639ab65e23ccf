//! Endpoints of workloads and hosts, and network sets.

use tortie_api::k8s::{NAMESPACE_LABEL, SERVICE_ACCOUNT_LABEL};
use tortie_api::meta::Metadata;
use tortie_api::names::EndpointIds;
use tortie_api::net::{is_mac, parse_ip};
use tortie_api::scalar::Dscp;
use tortie_api::workload_endpoint::{IpNat as ApiIpNat, QosControls as ApiQosControls};
use tortie_api::{
    HostEndpoint as ApiHostEndpoint, Path, Problems, WorkloadEndpoint as ApiWorkloadEndpoint,
};

use super::read;
use tortie_engine::input::{
    EndpointPort, HostEndpoint, HostEndpointKey, IpNat, Labels, NAMESPACE, NetworkSet, QosControls,
    SERVICE_ACCOUNT, WorkloadEndpoint, WorkloadEndpointKey,
};

/// The annotation of a host endpoint with the DSCP value for what it sends.
const DSCP: &str = "qos.projectcalico.org/dscp";

/// What the names of profiles of namespaces start with.
const NAMESPACE_PROFILE: &str = "kns.";

/// The key of a workload's endpoint, from its name.
pub(super) fn workload_key(namespace: &str, name: &str) -> Option<WorkloadEndpointKey> {
    let ids = EndpointIds::parse(name).ok()?;
    let workload = match ids.orchestrator.as_str() {
        "k8s" => ids.pod,
        "cni" => ids.container_id,
        "libnetwork" => "libnetwork".to_owned(),
        _ => ids.workload,
    };
    let parts = [
        namespace,
        &ids.node,
        &ids.orchestrator,
        &workload,
        &ids.endpoint,
    ];
    if parts.into_iter().any(str::is_empty) {
        return None;
    }
    Some(WorkloadEndpointKey {
        workload: format!("{namespace}/{workload}"),
        node: ids.node,
        orchestrator: ids.orchestrator,
        endpoint: ids.endpoint,
    })
}

/// Converts a workload's endpoint; without addresses there is nothing yet to enforce.
pub(super) fn workload_endpoint(
    endpoint: &ApiWorkloadEndpoint,
    problems: &mut Problems,
) -> Option<WorkloadEndpoint> {
    let spec = &endpoint.spec;
    if spec.ip_networks.is_empty() {
        return None;
    }
    let root = Path::ROOT;
    let at = root.field("spec");
    let nets = read::nets(&at.field("ipNetworks"), &spec.ip_networks, problems);
    let spoofed = read::nets(
        &at.field("allowSpoofedSourcePrefixes"),
        &spec.allow_spoofed_source_prefixes,
        problems,
    );
    let mac = mac(&at.field("mac"), &spec.mac, problems);
    if spec.interface_name.is_empty() {
        problems.add_missing(&at.field("interfaceName"), "must be given");
        return None;
    }
    let floating = nats(&at.field("ipNATs"), &spec.ip_nats, problems);
    let controls = spec.qos_controls.as_ref();
    let qos = controls.map(|controls| qos(&at.field("qosControls"), controls, problems));
    // What rules cannot name is of no use here: such ports are for whoever wires up the workload.
    let ports = spec.ports.iter().filter(|port| !port.name.is_empty());
    let ports = ports.map(|port| EndpointPort {
        name: port.name.clone(),
        protocol: port.protocol.clone(),
        port: port.port,
    });
    let (ipv4_nets, ipv6_nets) = nets?.into_iter().partition(|net| net.addr().is_ipv4());
    Some(WorkloadEndpoint {
        interface: spec.interface_name.clone(),
        mac: mac?,
        labels: workload_labels(&endpoint.metadata.labels, &spec.service_account_name),
        profiles: spec.profiles.clone(),
        ipv4_nets,
        ipv6_nets,
        nats: floating,
        ports: ports.collect(),
        allow_spoofed_source_prefixes: spoofed?,
        annotations: endpoint.metadata.annotations.clone(),
        qos,
    })
}

/// Labels that only profiles may give are taken away, so that no workload can pretend to be in another namespace or
/// to have another service account.
///
/// The name of the service account may be longer than a label can be, so that it comes from the spec.
fn workload_labels(labels: &Labels, service_account: &str) -> Labels {
    let is_reserved =
        |name: &str| name.starts_with(NAMESPACE_LABEL) || name.starts_with(SERVICE_ACCOUNT_LABEL);
    let mut labels = labels.clone();
    labels.retain(|name, _| !is_reserved(name));
    if !service_account.is_empty() {
        labels.insert(SERVICE_ACCOUNT.to_owned(), service_account.to_owned());
    }
    labels
}

/// A MAC address in lower case with colons; empty if there is none.
fn mac(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<String> {
    if text.is_empty() {
        return Some(String::new());
    }
    if !is_mac(text) {
        problems.add(at, text, "must be a MAC address");
        return None;
    }
    let digits = text.to_ascii_lowercase().replace([':', '-', '.'], "");
    let mut mac = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % 2 == 0 {
            mac.push(':');
        }
        mac.push(digit);
    }
    Some(mac)
}

/// Floating addresses without those that cannot be read.
fn nats(at: &Path<'_>, nats: &[ApiIpNat], problems: &mut Problems) -> Vec<IpNat> {
    let mut converted = Vec::new();
    for (index, nat) in nats.iter().enumerate() {
        match (parse_ip(&nat.external_ip), parse_ip(&nat.internal_ip)) {
            (Some(external), Some(internal)) => converted.push(IpNat { external, internal }),
            _ => problems.add(
                &at.index(index),
                nat,
                "must be two addresses; it is ignored",
            ),
        }
    }
    converted
}

fn qos(at: &Path<'_>, controls: &ApiQosControls, problems: &mut Problems) -> QosControls {
    let dscp = controls.dscp.as_ref();
    QosControls {
        ingress_bandwidth: controls.ingress_bandwidth,
        egress_bandwidth: controls.egress_bandwidth,
        ingress_burst: controls.ingress_burst,
        egress_burst: controls.egress_burst,
        ingress_packet_rate: controls.ingress_packet_rate,
        egress_packet_rate: controls.egress_packet_rate,
        ingress_max_connections: controls.ingress_max_connections,
        egress_max_connections: controls.egress_max_connections,
        ingress_peakrate: controls.ingress_peakrate,
        egress_peakrate: controls.egress_peakrate,
        ingress_minburst: controls.ingress_minburst,
        egress_minburst: controls.egress_minburst,
        ingress_packet_burst: controls.ingress_packet_burst,
        egress_packet_burst: controls.egress_packet_burst,
        dscp: dscp.and_then(|dscp| dscp_value(&at.field("dscp"), dscp, problems)),
    }
}

fn dscp_value(at: &Path<'_>, dscp: &Dscp, problems: &mut Problems) -> Option<u8> {
    let value = dscp.value();
    if value.is_none() {
        let rule = "must be 0 to 63 or a name such as EF; it is ignored";
        problems.add(at, dscp, rule);
    }
    value
}

/// Converts an endpoint of a host, and gives its key; there is none without a node.
pub(super) fn host_endpoint(
    endpoint: &ApiHostEndpoint,
    problems: &mut Problems,
) -> Option<(HostEndpointKey, Option<HostEndpoint>)> {
    let (metadata, spec) = (&endpoint.metadata, &endpoint.spec);
    let root = Path::ROOT;
    let at = root.field("spec");
    if spec.node.is_empty() {
        problems.add_missing(&at.field("node"), "must be given");
        return None;
    }
    let key = HostEndpointKey {
        node: spec.node.clone(),
        name: metadata.name.clone(),
    };
    let addresses = spec.expected_ips.iter().enumerate();
    let addresses = addresses.filter_map(|(index, text)| {
        read::address(&at.field("expectedIPs").index(index), text, problems)
    });
    let expected_ips = addresses.collect();
    let ports = spec.ports.iter().map(|port| EndpointPort {
        name: port.name.clone(),
        protocol: port.protocol.clone(),
        port: port.port,
    });
    let value = HostEndpoint {
        interface: spec.interface_name.clone(),
        expected_ips,
        labels: metadata.labels.clone(),
        profiles: spec.profiles.clone(),
        ports: ports.collect(),
        dscp: annotated_dscp(metadata, problems),
    };
    Some((key, Some(value)))
}

fn annotated_dscp(metadata: &Metadata, problems: &mut Problems) -> Option<u8> {
    let text = metadata.annotations.get(DSCP)?;
    let dscp: Dscp = text.parse().ok()?;
    let root = Path::ROOT;
    let metadata = root.field("metadata");
    let annotations = metadata.field("annotations");
    dscp_value(&annotations.field(DSCP), &dscp, problems)
}

/// Converts a network set of a namespace; it has the labels of the namespace, too.
pub(super) fn network_set(
    metadata: &Metadata,
    nets: &[String],
    problems: &mut Problems,
) -> NetworkSet {
    let namespace = &metadata.namespace;
    let mut set = global_network_set(metadata, nets, problems);
    set.labels.insert(NAMESPACE.to_owned(), namespace.clone());
    set.profiles.push(format!("{NAMESPACE_PROFILE}{namespace}"));
    set
}

/// Converts a network set of the cluster, without the networks that cannot be read.
pub(super) fn global_network_set(
    metadata: &Metadata,
    nets: &[String],
    problems: &mut Problems,
) -> NetworkSet {
    let root = Path::ROOT;
    let spec = root.field("spec");
    NetworkSet {
        labels: metadata.labels.clone(),
        nets: read::readable_nets(&spec.field("nets"), nets, problems),
        profiles: Vec::new(),
    }
}
