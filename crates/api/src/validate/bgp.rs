//! BGP settings, peers and filters.

use std::collections::HashSet;

use crate::kinds::BgpConfiguration;
use crate::kinds::bgp_configuration::BgpConfigurationSpec;
use crate::kinds::bgp_filter::{
    BgpFilterAction, BgpFilterCommunityMatch, BgpFilterOperation, BgpFilterRuleV4, BgpFilterRuleV6,
    BgpFilterSpec,
};
use crate::kinds::bgp_peer::BgpPeerSpec;
use crate::net;
use crate::problem::{Path, Problems};

pub(super) fn check_configuration(
    at: &Path<'_>,
    config: &BgpConfiguration,
    problems: &mut Problems,
) {
    let spec = &config.spec;
    if config.metadata.name != "default" {
        check_default_only(at, spec, problems);
    }
    if spec.node_to_node_mesh_enabled == Some(false) {
        for (name, is_set) in [
            ("nodeMeshPassword", spec.node_mesh_password.is_some()),
            (
                "nodeMeshMaxRestartTime",
                spec.node_mesh_max_restart_time.is_some(),
            ),
        ] {
            if is_set {
                problems.add_missing(
                    &at.field(name),
                    "must not be set, because nodeToNodeMeshEnabled is false",
                );
            }
        }
    }
    let communities_at = at.field("communities");
    if !spec.communities.is_empty() && spec.prefix_advertisements.is_empty() {
        problems.add_missing(&communities_at, "must be used by prefixAdvertisements");
    }
    for (index, community) in spec.communities.iter().enumerate() {
        let at = communities_at.index(index);
        if community.name.is_empty() {
            problems.add_missing(&at.field("name"), "must be given");
        }
        if !is_community(&community.value) {
            problems.add(&at.field("value"), &community.value, COMMUNITY);
        }
    }
    check_advertisements(at, spec, problems);
}

const COMMUNITY: &str =
    "must be a community: `aa:nn` of 16-bit numbers or `aa:nn:mm` of 32-bit numbers";

/// Notes fields that only the settings named `default` may have.
fn check_default_only(at: &Path<'_>, spec: &BgpConfigurationSpec, problems: &mut Problems) {
    for (name, is_set) in [
        (
            "nodeToNodeMeshEnabled",
            spec.node_to_node_mesh_enabled.is_some(),
        ),
        ("asNumber", spec.as_number.is_some()),
        (
            "serviceLoadBalancerIPs",
            !spec.service_load_balancer_ips.is_empty(),
        ),
        ("serviceExternalIPs", !spec.service_external_ips.is_empty()),
        ("serviceClusterIPs", !spec.service_cluster_ips.is_empty()),
        ("nodeMeshPassword", spec.node_mesh_password.is_some()),
        (
            "nodeMeshMaxRestartTime",
            spec.node_mesh_max_restart_time.is_some(),
        ),
    ] {
        if is_set {
            problems.add_missing(
                &at.field(name),
                "may only be set in the BGPConfiguration named `default`",
            );
        }
    }
}

fn check_advertisements(at: &Path<'_>, spec: &BgpConfigurationSpec, problems: &mut Problems) {
    let defined = spec.communities.iter().map(|one| one.name.as_str());
    let defined: HashSet<&str> = defined.collect();
    let advertisements_at = at.field("prefixAdvertisements");
    for (index, advertisement) in spec.prefix_advertisements.iter().enumerate() {
        let at = advertisements_at.index(index);
        if advertisement.cidr.is_empty() {
            problems.add_missing(&at.field("cidr"), "must be given");
        }
        let communities_at = at.field("communities");
        if advertisement.communities.is_empty() {
            problems.add_missing(&communities_at, "must name at least one community");
        }
        for (index, text) in advertisement.communities.iter().enumerate() {
            if looks_like_community(text) {
                if !is_community(text) {
                    problems.add(&communities_at.index(index), text, COMMUNITY);
                }
            } else if !defined.contains(text.as_str()) {
                let rule = "must be a community value or the name of one in spec.communities";
                problems.add(&communities_at.index(index), text, rule);
            }
        }
    }
}

fn looks_like_community(text: &str) -> bool {
    let mut parts = 0;
    let all_digits = text.split(':').all(|part| {
        parts += 1;
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
    });
    all_digits && (2..=3).contains(&parts)
}

fn is_community(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    looks_like_community(text)
        && match parts.len() {
            2 => parts.iter().all(|part| part.parse::<u16>().is_ok()),
            _ => parts.iter().all(|part| part.parse::<u32>().is_ok()),
        }
}

pub(super) fn check_peer(at: &Path<'_>, spec: &BgpPeerSpec, problems: &mut Problems) {
    let has_as_number = spec.as_number.0 != 0;
    let set = |text: &String| !text.is_empty();
    for (name, clashes, rule) in [
        (
            "node",
            set(&spec.node) && set(&spec.node_selector),
            "must not be set together with nodeSelector",
        ),
        (
            "peerIP",
            set(&spec.peer_ip) && set(&spec.peer_selector),
            "must not be set together with peerSelector",
        ),
        (
            "asNumber",
            set(&spec.peer_selector) && has_as_number,
            "must not be set together with peerSelector, which takes each peer's own number",
        ),
        (
            "peerIP",
            set(&spec.local_workload_selector) && set(&spec.peer_ip),
            "must not be set together with localWorkloadSelector",
        ),
        (
            "peerSelector",
            set(&spec.local_workload_selector) && set(&spec.peer_selector),
            "must not be set together with localWorkloadSelector",
        ),
        (
            "asNumber",
            set(&spec.local_workload_selector) && !has_as_number,
            "must be given, because localWorkloadSelector is set",
        ),
        (
            "reachableBy",
            set(&spec.reachable_by) && !set(&spec.peer_ip),
            "needs peerIP",
        ),
        (
            "keepOriginalNextHop",
            spec.keep_original_next_hop && spec.next_hop_mode.is_some(),
            "must not be set together with nextHopMode, which replaces it",
        ),
    ] {
        if clashes {
            problems.add_missing(&at.field(name), rule);
        }
    }
    if let (Some(gateway), Some((peer, _))) = (
        net::parse_ip(&spec.reachable_by),
        net::parse_ip_port(&spec.peer_ip),
    ) && gateway.is_ipv4() != peer.is_ipv4()
    {
        let rule = "must be of the same IP version as peerIP";
        problems.add(&at.field("reachableBy"), &spec.reachable_by, rule);
    }
}

/// What the rules of both IP versions have in common.
struct FilterRule<'a> {
    cidr: &'a str,
    has_operator: bool,
    has_prefix_length: bool,
    action: BgpFilterAction,
    operations: &'a [BgpFilterOperation],
    communities: Option<&'a BgpFilterCommunityMatch>,
}

macro_rules! filter_rule {
    ($rule:ty) => {
        impl<'a> From<&'a $rule> for FilterRule<'a> {
            fn from(rule: &'a $rule) -> Self {
                Self {
                    cidr: &rule.cidr,
                    has_operator: rule.match_operator.is_some(),
                    has_prefix_length: rule.prefix_length.is_some(),
                    action: rule.action,
                    operations: &rule.operations,
                    communities: rule.communities.as_ref(),
                }
            }
        }
    };
}

filter_rule!(BgpFilterRuleV4);
filter_rule!(BgpFilterRuleV6);

pub(super) fn check_filter(at: &Path<'_>, spec: &BgpFilterSpec, problems: &mut Problems) {
    for (name, rules) in [("exportV4", &spec.export_v4), ("importV4", &spec.import_v4)] {
        let at = at.field(name);
        for (index, rule) in rules.iter().enumerate() {
            check_filter_rule(&at.index(index), &rule.into(), problems);
        }
    }
    for (name, rules) in [("exportV6", &spec.export_v6), ("importV6", &spec.import_v6)] {
        let at = at.field(name);
        for (index, rule) in rules.iter().enumerate() {
            check_filter_rule(&at.index(index), &rule.into(), problems);
        }
    }
}

fn check_filter_rule(at: &Path<'_>, rule: &FilterRule<'_>, problems: &mut Problems) {
    if rule.cidr.is_empty() == rule.has_operator {
        let missing = if rule.has_operator {
            "cidr"
        } else {
            "matchOperator"
        };
        problems.add_missing(
            &at.field(missing),
            "must be given: cidr and matchOperator go together",
        );
    }
    let values = rule.communities.iter().flat_map(|one| &one.values);
    for (index, value) in values.enumerate() {
        if !is_community(value) {
            let at = at.field("communities");
            problems.add(&at.field("values").index(index), value, COMMUNITY);
        }
    }
    if rule.has_prefix_length && rule.cidr.is_empty() {
        problems.add_missing(&at.field("prefixLength"), "needs cidr");
    }
    if !rule.operations.is_empty() && rule.action != BgpFilterAction::Accept {
        problems.add_missing(&at.field("operations"), "need action Accept");
    }
}
