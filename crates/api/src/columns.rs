//! What the command line's tables show of each kind, column by column, as calicoctl does.

use std::fmt::Display;

use crate::kind::Kind;
use crate::resource::Resource;
use crate::scalar::AsNumber;

/// Longest list of addresses in a cell.
const MAX_LIST: usize = 80;
/// The AS number of nodes when nothing else is configured.
const DEFAULT_AS_NUMBER: AsNumber = AsNumber(64512);

/// What cells may depend on besides their object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableContext {
    /// The AS number of nodes that have none of their own.
    pub as_number: Option<AsNumber>,
}

/// The headings of a kind's table; the namespace comes first where it is asked for.
pub fn headings(kind: Kind, wide: bool) -> &'static [&'static str] {
    match (kind, wide) {
        (Kind::BgpConfiguration, _) => &["NAME", "LOGSEVERITY", "MESHENABLED", "ASNUMBER"],
        (Kind::BgpFilter, _) => &[
            "NAME",
            "NUMEXPORTV4",
            "NUMIMPORTV4",
            "NUMEXPORTV6",
            "NUMIMPORTV6",
        ],
        (Kind::BgpPeer, _) => &["NAME", "PEERIP", "NODE", "ASN"],
        (Kind::BlockAffinity, _) => &["NAME", "CIDR", "NODE", "TYPE", "STATE"],
        (Kind::CalicoNodeStatus, true) => &["NAME", "NODE", "CLASSES"],
        (Kind::ClusterInformation, _) => &[
            "NAME",
            "CLUSTERGUID",
            "CLUSTERTYPE",
            "CALICOVERSION",
            "DATASTOREREADY",
        ],
        (
            Kind::GlobalNetworkPolicy
            | Kind::NetworkPolicy
            | Kind::StagedGlobalNetworkPolicy
            | Kind::StagedNetworkPolicy,
            wide,
        ) => {
            if wide {
                &["NAME", "TIER", "ORDER", "SELECTOR"]
            } else {
                &["NAME", "TIER"]
            }
        }
        (Kind::GlobalNetworkSet | Kind::NetworkSet, true) => &["NAME", "NETS"],
        (Kind::CalicoNodeStatus | Kind::HostEndpoint, false) => &["NAME", "NODE"],
        (Kind::HostEndpoint, true) => &["NAME", "NODE", "INTERFACE", "IPS", "PROFILES"],
        (Kind::IpamBlock, _) => &["NAME", "CIDR", "AFFINITY"],
        (Kind::IpamConfiguration, false) => &["NAME", "STRICTAFFINITY", "AUTOALLOCATEBLOCKS"],
        (Kind::IpamConfiguration, true) => &[
            "NAME",
            "STRICTAFFINITY",
            "AUTOALLOCATEBLOCKS",
            "MAXBLOCKSPERHOST",
        ],
        (Kind::IpPool, false) => &["NAME", "CIDR", "SELECTOR"],
        (Kind::IpPool, true) => &[
            "NAME",
            "CIDR",
            "NAT",
            "IPIPMODE",
            "VXLANMODE",
            "DISABLED",
            "DISABLEBGPEXPORT",
            "SELECTOR",
            "ASSIGNMENTMODE",
        ],
        (Kind::IpReservation, true) => &["NAME", "CIDRS"],
        (Kind::Node, true) => &["NAME", "ASN", "IPV4", "IPV6"],
        (Kind::Profile, true) => &["NAME", "LABELS"],
        (Kind::StagedKubernetesNetworkPolicy, true) => &["NAME", "PODSELECTOR"],
        (Kind::Tier, _) => &["NAME", "ORDER"],
        (Kind::WorkloadEndpoint, false) => &["WORKLOAD", "NODE", "NETWORKS", "INTERFACE"],
        (Kind::WorkloadEndpoint, true) => &[
            "NAME",
            "WORKLOAD",
            "NODE",
            "NETWORKS",
            "INTERFACE",
            "PROFILES",
            "NATS",
        ],
        (
            Kind::FelixConfiguration
            | Kind::GlobalNetworkSet
            | Kind::IpReservation
            | Kind::IpamHandle
            | Kind::KubeControllersConfiguration
            | Kind::LiveMigration
            | Kind::NetworkSet
            | Kind::Node
            | Kind::Profile
            | Kind::StagedKubernetesNetworkPolicy,
            _,
        ) => &["NAME"],
    }
}

/// All headings that a kind knows, for tables with columns of the user's choice.
pub fn known_headings(kind: Kind) -> Vec<&'static str> {
    let mut all: Vec<_> = headings(kind, true).to_vec();
    if kind.is_namespaced() {
        all.push("NAMESPACE");
    }
    if kind == Kind::WorkloadEndpoint {
        all.push("ORCHESTRATOR");
    }
    all
}

/// One cell; empty for a heading that the kind does not know.
pub fn cell(resource: &Resource, heading: &str, context: &TableContext) -> String {
    let metadata = resource.metadata();
    match heading {
        "NAME" => return metadata.name.clone(),
        "NAMESPACE" => return metadata.namespace.clone(),
        _ => {}
    }
    match resource {
        Resource::BgpConfiguration(config) => match heading {
            "LOGSEVERITY" => config.spec.log_severity_screen.clone(),
            "MESHENABLED" => or_dash(config.spec.node_to_node_mesh_enabled),
            "ASNUMBER" => or_dash(config.spec.as_number),
            _ => String::new(),
        },
        Resource::BgpFilter(filter) => match heading {
            "NUMEXPORTV4" => filter.spec.export_v4.len().to_string(),
            "NUMIMPORTV4" => filter.spec.import_v4.len().to_string(),
            "NUMEXPORTV6" => filter.spec.export_v6.len().to_string(),
            "NUMIMPORTV6" => filter.spec.import_v6.len().to_string(),
            _ => String::new(),
        },
        Resource::BgpPeer(peer) => match heading {
            "PEERIP" => peer.spec.peer_ip.clone(),
            "NODE" if !peer.spec.node.is_empty() => peer.spec.node.clone(),
            "NODE" if !peer.spec.node_selector.is_empty() => peer.spec.node_selector.clone(),
            "NODE" => "(global)".to_owned(),
            "ASN" => peer.spec.as_number.to_string(),
            _ => String::new(),
        },
        Resource::Node(node) => match (heading, &node.spec.bgp) {
            ("ASN", Some(bgp)) => bgp.as_number.map_or_else(
                || format!("({})", context.as_number.unwrap_or(DEFAULT_AS_NUMBER)),
                |number| number.to_string(),
            ),
            ("IPV4", Some(bgp)) => bgp.ipv4_address.clone(),
            ("IPV6", Some(bgp)) => bgp.ipv6_address.clone(),
            _ => String::new(),
        },
        Resource::Profile(profile) if heading == "LABELS" => join(
            profile
                .spec
                .labels_to_apply
                .iter()
                .map(|(key, value)| format!("{key}={value}")),
        ),
        Resource::CalicoNodeStatus(status) => match heading {
            "NODE" => status.spec.node.clone(),
            "CLASSES" => join(
                status
                    .spec
                    .classes
                    .iter()
                    .map(|class| format!("{class:?}").to_uppercase()),
            ),
            _ => String::new(),
        },
        Resource::ClusterInformation(info) => match heading {
            "CLUSTERGUID" => info.spec.cluster_guid.clone(),
            "CLUSTERTYPE" => info.spec.cluster_type.clone(),
            "CALICOVERSION" => info.spec.calico_version.clone(),
            "DATASTOREREADY" => or_dash(info.spec.datastore_ready),
            _ => String::new(),
        },
        other => from_value(other, heading),
    }
}

/// Cells that show one field as it is.
fn from_value(resource: &Resource, heading: &str) -> String {
    let path: &[&str] = match (resource.kind(), heading) {
        (_, "TIER") => &["tier"],
        (_, "ORDER") => &["order"],
        (Kind::IpPool, "SELECTOR") => &["nodeSelector"],
        (_, "SELECTOR") => &["selector"],
        (_, "NETS") => &["nets"],
        (_, "NODE") => &["node"],
        (_, "INTERFACE") => &["interfaceName"],
        (_, "IPS") => &["expectedIPs"],
        (_, "PROFILES") => &["profiles"],
        (_, "STRICTAFFINITY") => &["strictAffinity"],
        (_, "AUTOALLOCATEBLOCKS") => &["autoAllocateBlocks"],
        (_, "MAXBLOCKSPERHOST") => &["maxBlocksPerHost"],
        (_, "CIDR") => &["cidr"],
        (_, "NAT") => &["natOutgoing"],
        (_, "IPIPMODE") => &["ipipMode"],
        (_, "VXLANMODE") => &["vxlanMode"],
        (_, "DISABLED") => &["disabled"],
        (_, "DISABLEBGPEXPORT") => &["disableBGPExport"],
        (_, "ASSIGNMENTMODE") => &["assignmentMode"],
        (_, "CIDRS") => &["reservedCIDRs"],
        (_, "PODSELECTOR") => &["podSelector"],
        (_, "WORKLOAD") => &["workload", "pod"],
        (_, "ORCHESTRATOR") => &["orchestrator"],
        (_, "NETWORKS") => &["ipNetworks"],
        (_, "NATS") => &["ipNATs"],
        (_, "AFFINITY") => &["affinity"],
        (_, "TYPE") => &["type"],
        (_, "STATE") => &["state"],
        _ => return String::new(),
    };
    let spec = &resource.to_value()["spec"];
    let value = path
        .iter()
        .map(|field| &spec[*field])
        .find(|value| !value.is_null());
    match (value, heading) {
        (Some(serde_json::Value::Array(items)), _) => truncate(join(items.iter().map(|item| {
            item.as_str()
                .map_or_else(|| item.to_string(), str::to_owned)
        }))),
        (Some(serde_json::Value::String(text)), _) => text.clone(),
        (Some(value), _) => value.to_string(),
        (
            None,
            "NAT" | "DISABLED" | "DISABLEBGPEXPORT" | "STRICTAFFINITY" | "AUTOALLOCATEBLOCKS",
        ) => "false".to_owned(),
        (None, "IPIPMODE" | "VXLANMODE") => "Never".to_owned(),
        (None, "ORDER") => "-".to_owned(),
        (None, _) => String::new(),
    }
}

fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn join(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

/// Cuts a long list, so that the table stays a table.
fn truncate(text: String) -> String {
    if text.len() <= MAX_LIST {
        return text;
    }
    let end = (0..=MAX_LIST - 3)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}...", &text[..end])
}
