//! What peers are told, what the kernel gets, and the node's blocks.

use ipnet::IpNet;

use super::{channel, suffix};
use crate::Family;
use crate::plan::{
    Encapsulation, FamilyPlan, MAX_PREFERENCE, OVERRIDE_PREFERENCE, Pool, Programmer,
};
use crate::render::filter;
use crate::render::text::{Text, line};

pub(super) fn render(out: &mut Text, plan: &FamilyPlan) {
    statics(out, plan);
    aggregation(out, plan);
    export(out, plan);
    kernel(out, plan);
}

/// What has a route to nowhere, and the ways to peers.
fn statics(out: &mut Text, plan: &FamilyPlan) {
    let family = plan.family;
    line!(out, "protocol static static_{} {{", suffix(family));
    line!(out, "  {};", channel(family));
    let blocks = plan.blocks.iter().filter(|block| block.has_route());
    let services = plan.services.iter().map(|route| route.network);
    for network in blocks.map(|block| block.network).chain(services) {
        line!(out, "  route {network} blackhole;");
    }
    for via in &plan.reachable {
        line!(
            out,
            "  route {}/{} via {};",
            via.address,
            family.bits(),
            via.gateway
        );
    }
    line!(out, "}}\n");
}

/// Of a block, peers are told the whole, and of its addresses those that are on the move.
fn aggregation(out: &mut Text, plan: &FamilyPlan) {
    let told = || plan.blocks.iter().filter(|block| block.is_told);
    line!(out, "function calico_aggr_{}() {{", suffix(plan.family));
    decide(out, told().map(|block| block.network), "", "accept;");
    let priority = plan.normal_priority;
    let part = format!("if krt_metric < {priority} then accept; reject;");
    decide(out, told().map(|block| block.network), "+", &part);
    line!(out, "}}\n");
}

fn export(out: &mut Text, plan: &FamilyPlan) {
    let v = suffix(plan.family);
    line!(out, "function apply_communities_{v}() {{");
    filter::communities(out, &plan.communities);
    line!(out, "}}\n");
    line!(
        out,
        "function calico_export_to_bgp_peers_{v}(bool internal_peer) {{"
    );
    let pools = |is_exported: bool| {
        let pools = plan.pools.iter();
        let pools = pools.filter(move |pool| pool.is_exported == is_exported);
        pools.map(|pool| pool.network)
    };
    decide(out, pools(false), "+", "reject;");
    // Routes that every node's agent programs, and those of an agent's own devices.
    line!(out, "  if defined(ifname) then {{");
    line!(
        out,
        "    if internal_peer && ((ifname ~ \"*.cali\") || (ifname ~ \"*.calico\") || (ifname ~ \"tunl0\")) then reject;"
    );
    line!(out, "    if ifname ~ \"bpf*.cali\" then reject;\n  }}");
    line!(out, "  apply_communities_{v}();");
    line!(out, "  calico_aggr_{v}();");
    let services = plan.services.iter().chain(&plan.reflected);
    decide(
        out,
        services.map(|route| route.network).chain(pools(true)),
        "+",
        "accept;",
    );
    line!(out, "}}\n");
    // What was learnt has a preference; what was not has the metric that the kernel says.
    let priority = plan.normal_priority;
    line!(out, "function calico_prepare_export_{v}() {{");
    line!(
        out,
        "  if source = RTS_BGP && defined(bgp_local_pref) then {{"
    );
    line!(out, "    krt_metric = {MAX_PREFERENCE} - bgp_local_pref;");
    line!(out, "  }} else {{");
    line!(
        out,
        "    if !defined(krt_metric) then krt_metric = {priority};"
    );
    line!(out, "    bgp_local_pref = {MAX_PREFERENCE} - krt_metric;");
    line!(out, "  }}\n}}\n");
    line!(out, "function calico_import_{v}() {{");
    let normal = MAX_PREFERENCE - priority;
    line!(
        out,
        "  if defined(bgp_local_pref) && bgp_local_pref > {normal} then preference = {OVERRIDE_PREFERENCE};"
    );
    line!(out, "  accept;\n}}\n");
}

fn kernel(out: &mut Text, plan: &FamilyPlan) {
    let (v, priority) = (suffix(plan.family), plan.normal_priority);
    line!(out, "filter calico_kernel_programming_{v} {{");
    // The kernel has made these itself; BIRD 1.6 knows that.
    line!(out, "  if source = RTS_DEVICE then reject;");
    decide(
        out,
        plan.rejected.iter().map(|range| range.network),
        "+",
        "reject;",
    );
    line!(out, "  if source = RTS_BGP && !defined(krt_metric) then {{");
    line!(out, "    krt_metric = {priority};");
    line!(
        out,
        "    if defined(bgp_local_pref) then krt_metric = {MAX_PREFERENCE} - bgp_local_pref;"
    );
    line!(
        out,
        "    if krt_metric < {priority} then preference = {OVERRIDE_PREFERENCE};\n  }}"
    );
    if !plan.wireguard.is_empty() {
        let hops: Vec<String> = plan
            .wireguard
            .iter()
            .map(|(ip, _)| ip.to_string())
            .collect();
        let hops = hops.join(",\n    ");
        line!(
            out,
            "  if defined(bgp_next_hop) && bgp_next_hop ~ [\n    {hops}\n  ] then reject;"
        );
    }
    // Of overlapping pools of IPv4 the first one decides, and of IPv6 one that is left to the agent, as in the files for BIRD 1.6.
    for pool in plan.pools.iter().filter(|_| is_decided(plan)) {
        match (is_programmed(pool), plan.family) {
            (true, Family::V4) => line!(out, "  if net ~ {} then accept;", pool.network),
            (true, Family::V6) => {}
            (false, _) => line!(out, "  if net ~ {} then reject;", pool.network),
        }
    }
    line!(out, "  accept;\n}}\n");
}

/// Nothing is said about pools of IPv4 on a node without an address of it.
fn is_decided(plan: &FamilyPlan) -> bool {
    plan.family == Family::V6 || plan.address.is_some()
}

/// There is no attribute of a route that would send packets through a tunnel of IPv4.
fn is_programmed(pool: &Pool) -> bool {
    let is_plain = pool.encapsulation == Encapsulation::None || pool.network.addr().is_ipv6();
    pool.is_kept || pool.programmer == Programmer::Bird && is_plain
}

/// Decides about all routes of these networks, or with `+` also in them.
fn decide(out: &mut Text, networks: impl Iterator<Item = IpNet>, part: &str, action: &str) {
    let mut networks = networks.peekable();
    if networks.peek().is_none() {
        return;
    }
    line!(out, "  if net ~ [");
    while let Some(network) = networks.next() {
        let comma = if networks.peek().is_some() { "," } else { "" };
        line!(out, "    {network}{part}{comma}");
    }
    line!(out, "  ] then {{ {action} }}");
}
