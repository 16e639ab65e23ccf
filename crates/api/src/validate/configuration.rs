//! Settings of the agent and of the controllers, and requests for node status.

use std::collections::HashSet;

use crate::kinds::FelixConfiguration;
use crate::kinds::calico_node_status::CalicoNodeStatusSpec;
use crate::kinds::felix_configuration::FelixConfigurationSpec;
use crate::kinds::kube_controllers_configuration::KubeControllersConfigurationSpec;
use crate::net;
use crate::problem::{Path, Problems};
use crate::scalar::Port;
use crate::validate::labels::{MAX_LABEL, MAX_NAME, annotations, is_label_text};

/// The region becomes part of a namespace name with this prefix, which must stay a DNS label.
const REGION_PREFIX: &str = "openstack-region-";
/// iptables matches at most 15 ports in one rule, and a range counts as two.
const MAX_NODE_PORT_RANGES: usize = 7;
/// How many bits of the packet mark rules need.
pub const NEEDED_MARK_BITS: u32 = 5;
/// Longest name of an interface.
const MAX_INTERFACE: usize = 15;
/// Most route tables that the ranges may cover together.
const MAX_ROUTE_TABLES: i64 = 0xffff;

pub(super) fn check_felix(at: &Path<'_>, config: &FelixConfiguration, problems: &mut Problems) {
    let spec = &config.spec;
    let name = &config.metadata.name;
    if spec.node_selector.is_some() && (name == "default" || name.starts_with("node.")) {
        let rule = "must not be set in objects named `default` or `node.…`";
        problems.add(&at.field("nodeSelector"), &spec.node_selector, rule);
    }
    check_node_ports(at, spec, problems);
    check_marks(at, spec, problems);
    check_interface_prefix(at, spec, problems);
    for (name, port) in [
        ("natPortRange", &spec.nat_port_range),
        ("bpfPSNATPorts", &spec.bpf_psnat_ports),
    ] {
        if let Some(Port::Range(0, _)) = port {
            problems.add(&at.field(name), port, "must be from 1 to 65535");
        }
    }
    if let Some(cidrs) = &spec.external_nodes_cidr_list {
        let at = at.field("externalNodesList");
        for (index, cidr) in cidrs.iter().enumerate() {
            if !net::parse_cidr_or_ip(cidr).is_some_and(net::Cidr::is_ipv4) {
                problems.add(&at.index(index), cidr, "must be an IPv4 address or CIDR");
            }
        }
    }
    let region = &spec.openstack_region;
    let max_region = MAX_LABEL - REGION_PREFIX.len();
    if !region.is_empty() && (region.len() > max_region || !is_label_text(region)) {
        let rule = format!("must be a DNS label of at most {max_region} characters");
        problems.add(&at.field("openstackRegion"), region, rule);
    }
    for (name, address, want_ipv4) in [
        ("natOutgoingAddress", &spec.nat_outgoing_address, true),
        (
            "deviceRouteSourceAddress",
            &spec.device_route_source_address,
            true,
        ),
        (
            "deviceRouteSourceAddressIPv6",
            &spec.device_route_source_address_ipv6,
            false,
        ),
    ] {
        if !address.is_empty() && net::parse_ip(address).is_none_or(|ip| ip.is_ipv4() != want_ipv4)
        {
            let version = if want_ipv4 { 4 } else { 6 };
            problems.add(
                &at.field(name),
                address,
                format!("must be an IPv{version} address"),
            );
        }
    }
    check_route_tables(at, spec, problems);
    let overrides_at = at.field("healthTimeoutOverrides");
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_ -".contains(&b);
    for (index, entry) in spec.health_timeout_overrides.iter().enumerate() {
        let at = overrides_at.index(index);
        if entry.name.is_empty() || !entry.name.bytes().all(is_name) {
            problems.add(
                &at.field("name"),
                &entry.name,
                "must be letters, digits, `_`, `-` and spaces",
            );
        }
        if entry.timeout.is_negative() {
            problems.add(&at.field("timeout"), entry.timeout, "must not be negative");
        }
    }
}

/// No data plane can work with fewer bits.
fn check_marks(at: &Path<'_>, spec: &FelixConfigurationSpec, problems: &mut Problems) {
    for (name, mask) in [
        ("iptablesMarkMask", spec.iptables_mark_mask),
        ("nftablesMarkMask", spec.nftables_mark_mask),
    ] {
        let Some(mask) = mask else { continue };
        let bits = u32::try_from(mask).map_or(0, u32::count_ones);
        if bits < NEEDED_MARK_BITS {
            let rule = format!("must have at least {NEEDED_MARK_BITS} bits set; it has {bits}");
            problems.add(&at.field(name), mask, rule);
        }
    }
}

/// Workloads that are not recognised by their interfaces would not be protected.
fn check_interface_prefix(at: &Path<'_>, spec: &FelixConfigurationSpec, problems: &mut Problems) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let is_prefix =
        |text: &str| !text.is_empty() && text.len() <= MAX_INTERFACE && text.bytes().all(is_plain);
    let prefixes = &spec.interface_prefix;
    // As the value of a parameter, `none` takes it away.
    let is_none = prefixes.eq_ignore_ascii_case("none");
    if !prefixes.is_empty() && (is_none || !prefixes.split(',').all(is_prefix)) {
        let rule = "must be beginnings of interface names, divided by commas, such as `cali,tap`: \
                    letters, digits, `_` and `-`";
        problems.add(&at.field("interfacePrefix"), prefixes, rule);
    }
}

fn check_node_ports(at: &Path<'_>, spec: &FelixConfigurationSpec, problems: &mut Problems) {
    let Some(ranges) = &spec.kube_node_port_ranges else {
        return;
    };
    let at = at.field("kubeNodePortRanges");
    if ranges.len() > MAX_NODE_PORT_RANGES {
        problems.add(
            &at,
            ranges,
            format!("must have at most {MAX_NODE_PORT_RANGES} items"),
        );
    }
    for (index, port) in ranges.iter().enumerate() {
        match port {
            Port::Named(_) => {
                problems.add(&at.index(index), port, "must be a port number or range");
            }
            Port::Range(0, _) => problems.add(&at.index(index), port, "must be from 1 to 65535"),
            Port::Range(..) => {}
        }
    }
}

fn check_route_tables(at: &Path<'_>, spec: &FelixConfigurationSpec, problems: &mut Problems) {
    if let Some(range) = &spec.route_table_range {
        let at = at.field("routeTableRange");
        if range.min < 1 || range.max < range.min || range.max > 250 {
            problems.add(&at, range, "must lie within 1 to 250, min not above max");
        }
        if spec.route_table_ranges.is_some() {
            problems.add(&at, range, "must not be set together with routeTableRanges");
        }
    }
    let Some(ranges) = &spec.route_table_ranges else {
        return;
    };
    let at = at.field("routeTableRanges");
    let mut total = 0_i64;
    for (index, range) in ranges.iter().enumerate() {
        let at = at.index(index);
        if range.min < 1 || range.max < range.min || range.max > i64::from(u32::MAX) {
            problems.add(
                &at,
                range,
                "must lie within 1 to 4294967295, min not above max",
            );
        } else {
            total = total.saturating_add(range.max - range.min + 1);
        }
    }
    if total > MAX_ROUTE_TABLES {
        let rule = format!("must cover at most {MAX_ROUTE_TABLES} tables, cover {total}");
        problems.add_missing(&at, rule);
    }
}

pub(super) fn check_controllers(
    at: &Path<'_>,
    spec: &KubeControllersConfigurationSpec,
    problems: &mut Problems,
) {
    let host_endpoint = spec
        .controllers
        .node
        .as_ref()
        .and_then(|node| node.host_endpoint.as_ref());
    let Some(host_endpoint) = host_endpoint else {
        return;
    };
    let at = at.field("controllers");
    let at = at.field("node");
    let at = at.field("hostEndpoint");
    let templates_at = at.field("templates");
    let mut names = HashSet::new();
    for (index, template) in host_endpoint.templates.iter().enumerate() {
        let at = templates_at.index(index);
        let name = &template.generate_name;
        let name_at = at.field("generateName");
        if name.is_empty() {
            problems.add_missing(&name_at, "must be given");
        } else if name.len() > MAX_NAME {
            problems.add(
                &name_at,
                name,
                format!("must be at most {MAX_NAME} characters"),
            );
        } else if !names.insert(name) {
            problems.add(&name_at, name, "must be unique among the templates");
        }
        if template.interface_cidrs.is_empty() && template.interface_pattern.is_empty() {
            problems.add_missing(&at, "must have interfaceCIDRs or interfacePattern");
        }
        annotations(&at.field("annotations"), &template.annotations, problems);
    }
}

pub(super) fn check_node_status(
    at: &Path<'_>,
    spec: &CalicoNodeStatusSpec,
    problems: &mut Problems,
) {
    for (name, is_missing) in [
        ("node", spec.node.is_empty()),
        ("updatePeriodSeconds", spec.update_period_seconds.is_none()),
    ] {
        if is_missing {
            problems.add_missing(&at.field(name), "must be given");
        }
    }
}
