//! What a data plane knows, as lines of text.
//!
//! ```text
//! {app == 'web'}: 10.0.0.1/32               a set: what a selector matches
//! {all()|tcp|http}: 10.0.0.1,tcp:80         named ports of what a selector matches
//! {svc ns/name}: …  {svcnoport ns/name}: …  a service with and without ports
//! policy gnp/p @tier for app == 'web': in allow tcp from {app == 'web'}; out deny
//! profile p: in allow; out allow
//! pod a 10.0.0.1 | profiles p | default=deny both gnp/p | last=pass in gnp/q out gnp/r
//! host h on eth0 10.0.0.9 | default=deny both gnp/p | untracked default=pass both gnp/q
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ipnet::IpNet;
use tortie_api::rule::Action;
use tortie_engine::input::DefaultAction;
use tortie_engine::message::{
    HostEndpoint, MigrationRole, Policy, PolicyId, PortRange, Rule, RuleSide, SetId, TierInfo,
    WorkloadEndpoint, WorkloadEndpointId,
};

use crate::states::data_plane::DataPlane;

/// How sets are called.
pub(crate) type SetNames = BTreeMap<SetId, String>;

/// All lines, in order.
pub(crate) fn lines(data_plane: &DataPlane, names: &SetNames) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, members) in &data_plane.sets {
        let mut members: Vec<String> = members.iter().map(ToString::to_string).collect();
        members.sort();
        lines.push(format!("{}: {}", set(id, names), members.join(" ")));
    }
    for (id, policy) in &data_plane.policies {
        lines.push(policy_line(id, policy, names));
    }
    for (name, profile) in &data_plane.profiles {
        let rules = rules(&profile.inbound_rules, &profile.outbound_rules, names);
        lines.push(format!("profile {name}: {rules}"));
    }
    for (id, endpoint) in &data_plane.workloads {
        lines.push(workload_line(id, endpoint));
    }
    for (id, endpoint) in &data_plane.hosts {
        lines.push(host_line(&id.endpoint_id, endpoint));
    }
    for ((kind, name), content) in &data_plane.network {
        let is_void = *kind == "tunnels" && !content.contains("true");
        if !is_void && *kind != "config" {
            lines.push(format!("{kind} {name}: {content}"));
        }
    }
    for line in &mut lines {
        *line = line.trim().trim_end_matches(':').to_owned();
    }
    lines.sort();
    lines
}

fn set(id: &SetId, names: &SetNames) -> String {
    format!("{{{}}}", names.get(id).map_or(id.as_str(), |name| name))
}

fn policy_line(id: &PolicyId, policy: &Policy, names: &SetNames) -> String {
    let mut line = format!("policy {id}");
    if policy.tier != "default" {
        let _ = write!(line, " @{}", policy.tier);
    }
    if policy.original_selector != "all()" {
        let _ = write!(line, " for {}", policy.original_selector.replace('"', "'"));
    }
    for (flag, is_set) in [
        ("untracked", policy.untracked),
        ("pre-dnat", policy.pre_dnat),
        ("always", !policy.perf_hints.is_empty()),
    ] {
        if is_set {
            let _ = write!(line, " {flag}");
        }
    }
    assert_eq!(policy.namespace, id.namespace, "the namespace of {id}");
    let rules = rules(&policy.inbound_rules, &policy.outbound_rules, names);
    format!("{line}: {rules}")
}

fn rules(inbound: &[Rule], outbound: &[Rule], names: &SetNames) -> String {
    let inbound = inbound.iter().map(|r| format!("in {}", rule(r, names)));
    let outbound = outbound.iter().map(|r| format!("out {}", rule(r, names)));
    inbound.chain(outbound).collect::<Vec<_>>().join("; ")
}

fn rule(rule: &Rule, names: &SetNames) -> String {
    let mut words = vec![
        match rule.action {
            Action::Allow => "allow",
            Action::Deny => "deny",
            Action::Log => "log",
            Action::Pass => "pass",
        }
        .to_owned(),
    ];
    words.extend(rule.ip_version.map(|version| format!("v{version}")));
    for (not, protocol) in [("", &rule.protocol), ("!", &rule.not_protocol)] {
        words.extend(
            protocol
                .as_ref()
                .map(|p| format!("{not}{p}").to_lowercase()),
        );
    }
    for (not, icmp) in [("", rule.icmp), ("!", rule.not_icmp)] {
        words.extend(icmp.map(|icmp| match icmp.code {
            Some(code) => format!("{not}icmp({},{code})", icmp.r#type),
            None => format!("{not}icmp({})", icmp.r#type),
        }));
    }
    for (word, entity) in [("from", &rule.src), ("to", &rule.dst)] {
        let conditions = side(entity, names);
        if !conditions.is_empty() {
            words.push(word.to_owned());
            words.extend(conditions);
        }
    }
    words.join(" ")
}

fn side(side: &RuleSide, names: &SetNames) -> Vec<String> {
    let mut words = Vec::new();
    let sets = |ids: &[SetId]| -> Vec<String> { ids.iter().map(|id| set(id, names)).collect() };
    let nets = |nets: &[IpNet]| -> Vec<String> { nets.iter().map(ToString::to_string).collect() };
    let ports = |ranges: &[PortRange]| -> Vec<String> {
        let text = |range: &PortRange| match (range.first, range.last) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}:{last}"),
        };
        ranges.iter().map(text).collect()
    };
    for (word, items) in [
        ("", sets(&side.sets)),
        ("not ", sets(&side.not_sets)),
        ("nets ", nets(&side.nets)),
        ("not nets ", nets(&side.not_nets)),
        (
            "ports ",
            [ports(&side.ports), sets(&side.named_port_sets)].concat(),
        ),
        (
            "not ports ",
            [ports(&side.not_ports), sets(&side.not_named_port_sets)].concat(),
        ),
        ("service ", sets(&side.port_sets)),
    ] {
        if !items.is_empty() {
            words.push(format!("{word}{}", items.join(",")));
        }
    }
    words
}

fn tiers(tiers: &[TierInfo]) -> impl Iterator<Item = String> {
    tiers.iter().map(|tier| {
        let action = match tier.default_action {
            Some(DefaultAction::Deny) => "deny",
            Some(DefaultAction::Pass) => "pass",
            None => "?",
        };
        let mut text = format!("{}={action}", tier.name);
        let (ingress, egress) = (&tier.ingress_policies, &tier.egress_policies);
        let lists = if ingress == egress {
            vec![("both", ingress)]
        } else {
            vec![("in", ingress), ("out", egress)]
        };
        for (direction, policies) in lists {
            if !policies.is_empty() {
                let ids: Vec<String> = policies.iter().map(ToString::to_string).collect();
                let _ = write!(text, " {direction} {}", ids.join(" "));
            }
        }
        text
    })
}

fn workload_line(id: &WorkloadEndpointId, endpoint: &WorkloadEndpoint) -> String {
    let name = match (&*id.orchestrator_id, &*id.endpoint_id) {
        ("k8s", "eth0") => id.workload_id.trim_start_matches("default/").to_owned(),
        (orchestrator, interface) => format!("{orchestrator}/{}/{interface}", id.workload_id),
    };
    let mut head = format!("pod {name}");
    for net in endpoint.ipv4_nets.iter().chain(&endpoint.ipv6_nets) {
        let _ = write!(head, " {}", net.addr());
    }
    let mut parts = vec![head];
    if !endpoint.profile_ids.is_empty() {
        parts.push(format!("profiles {}", endpoint.profile_ids.join(" ")));
    }
    parts.extend(tiers(&endpoint.tiers));
    let peer = endpoint.local_bgp_peer.as_ref();
    parts.extend(peer.map(|peer| format!("peer {}", peer.bgp_peer_name)));
    let uid = &endpoint.live_migration_uid;
    match endpoint.live_migration_role {
        MigrationRole::NoRole => assert_eq!(uid, ""),
        MigrationRole::Source => parts.push(format!("source of {uid}")),
        MigrationRole::Target => parts.push(format!("target of {uid}")),
    }
    if !endpoint.live_migration_vmi_name.is_empty() {
        parts.push(format!("machine {}", endpoint.live_migration_vmi_name));
    }
    for nat in endpoint.ipv4_nat.iter().chain(&endpoint.ipv6_nat) {
        parts.push(format!("nat {} to {}", nat.ext_ip, nat.int_ip));
    }
    for net in &endpoint.allow_spoofed_source_prefixes {
        parts.push(format!("may spoof {net}"));
    }
    parts.extend(
        endpoint
            .qos_policies
            .iter()
            .map(|p| format!("dscp {}", p.dscp)),
    );
    if let Some(skip) = endpoint.skip_redir {
        let words = [(skip.ingress, "in"), (skip.egress, "out")];
        let words = words.iter().filter(|(is_set, _)| *is_set);
        let words: Vec<&str> = words.map(|(_, word)| *word).collect();
        parts.push(format!("no short cut {}", words.join(" ")));
    }
    parts.join(" | ")
}

fn host_line(name: &str, endpoint: &HostEndpoint) -> String {
    let mut head = format!("host {name} on {}", endpoint.name);
    let (v4, v6) = (&endpoint.expected_ipv4_addrs, &endpoint.expected_ipv6_addrs);
    for ip in v4.iter().chain(v6) {
        let _ = write!(head, " {ip}");
    }
    let mut parts = vec![head];
    if !endpoint.profile_ids.is_empty() {
        parts.push(format!("profiles {}", endpoint.profile_ids.join(" ")));
    }
    for (word, list) in [
        ("", &endpoint.tiers),
        ("untracked ", &endpoint.untracked_tiers),
        ("pre-dnat ", &endpoint.pre_dnat_tiers),
        ("forward ", &endpoint.forward_tiers),
    ] {
        parts.extend(tiers(list).map(|tier| format!("{word}{tier}")));
    }
    parts.extend(
        endpoint
            .qos_policies
            .iter()
            .map(|p| format!("dscp {}", p.dscp)),
    );
    parts.join(" | ")
}
