//! `bird_ipam.cfg` and `bird_aggr.cfg`: what peers are told, what the kernel gets, and the node's blocks.

use crate::plan::{
    Encapsulation, FamilyPlan, MAX_PREFERENCE, OVERRIDE_PREFERENCE, Pool, Programmer, Tunnelled,
};
use crate::render::text::{Text, line};
use crate::{Family, Plan};

pub(super) fn render(plan: &Plan, family: Family) -> String {
    let of_family = plan.family(family);
    let mut out = Text::default();
    // Routes of the agent's own devices never leave the node.
    out.push_str(
        "function reject_local_routes () {\n  if (defined(ifname)) then {\n     if (ifname ~ \"bpf*.cali\") then {\n        reject;\n     }\n  }\n}\n",
    );
    export(&mut out, plan, of_family);
    kernel(&mut out, of_family);
    out.finish()
}

fn export(out: &mut Text, plan: &Plan, of_family: &FamilyPlan) {
    line!(
        out,
        "function calico_export_to_bgp_peers(bool internal_peer) {{"
    );
    for pool in of_family.pools.iter().filter(|pool| !pool.is_exported) {
        line!(out, "  if (net ~ {}) then {{ reject; }}", pool.network);
    }
    // Where the agent programs routes through its devices, every node has them.
    let ipip = if plan.bird_programs.ipip {
        ""
    } else {
        " || (ifname ~ \"tunl0\")"
    };
    line!(out, "  if (internal_peer) then {{");
    line!(out, "    if (defined(ifname)) then {{");
    line!(
        out,
        "      if ((ifname ~ \"*.cali\") || (ifname ~ \"*.calico\"){ipip}) then {{"
    );
    line!(out, "        reject;\n      }}\n    }}\n  }}");
    line!(out, "  reject_local_routes();");
    line!(out, "  apply_communities();");
    line!(out, "  calico_aggr();");
    for route in of_family.services.iter().chain(&of_family.reflected) {
        line!(out, "  if ( net ~ {} ) then {{ accept; }}", route.network);
    }
    for pool in of_family.pools.iter().filter(|pool| pool.is_exported) {
        line!(out, "  if (net ~ {}) then {{ accept; }}", pool.network);
    }
    line!(out, "}}");
}

fn kernel(out: &mut Text, of_family: &FamilyPlan) {
    let priority = of_family.normal_priority;
    line!(out, "filter calico_kernel_programming {{");
    for range in &of_family.rejected {
        line!(out, "  if ( net ~ {} ) then {{ reject; }}", range.network);
    }
    line!(
        out,
        "  if (defined(source) && (source = RTS_BGP) && !defined(krt_metric)) then {{"
    );
    line!(out, "      krt_metric = {priority};");
    line!(out, "      if (defined(bgp_local_pref)) then {{");
    line!(
        out,
        "          krt_metric = {MAX_PREFERENCE} - bgp_local_pref;"
    );
    line!(out, "      }}");
    line!(out, "      if (krt_metric < {priority}) then {{");
    line!(out, "          preference = {OVERRIDE_PREFERENCE};");
    line!(out, "      }}\n  }}");
    for (address, _) in &of_family.wireguard {
        line!(
            out,
            "  if (defined(bgp_next_hop) && bgp_next_hop = {address}) then {{ reject; }}"
        );
    }
    for pool in &of_family.pools {
        if let Some(statement) = programming(of_family, pool) {
            line!(out, "  {statement}");
        }
    }
    line!(out, "  accept;\n}}");
}

/// What becomes of routes of a pool. For IPv6 only what is rejected is said, and for IPv4 nothing on a node without an address.
fn programming(of_family: &FamilyPlan, pool: &Pool) -> Option<String> {
    let network = pool.network;
    if of_family.family == Family::V4 && of_family.address.is_none() {
        return None;
    }
    if pool.programmer == Programmer::Agent && !pool.is_kept {
        return Some(format!("if (net ~ {network}) then {{ reject; }}"));
    }
    if of_family.family == Family::V6 {
        return None;
    }
    let tunnel = match (pool.encapsulation, of_family.network) {
        (Encapsulation::Ipip(Tunnelled::Always), _) | (Encapsulation::Ipip(_), None) => {
            "krt_tunnel=\"tunl0\"; ".to_owned()
        }
        (Encapsulation::Ipip(Tunnelled::CrossSubnet), Some(own)) => format!(
            "if (defined(bgp_next_hop)&&(bgp_next_hop ~ {own})) then krt_tunnel=\"\"; else krt_tunnel=\"tunl0\"; "
        ),
        (Encapsulation::None | Encapsulation::Vxlan, _) => String::new(),
    };
    Some(format!("if (net ~ {network}) then {{ {tunnel}accept; }}"))
}

/// Blocks, and all that has a route to nowhere.
pub(super) fn aggr(of_family: &FamilyPlan) -> String {
    let mut out = Text::default();
    line!(out, "template static static_template {{");
    let blocks = of_family.blocks.iter().filter(|block| block.has_route());
    let services = of_family.services.iter().map(|route| route.network);
    for network in blocks.map(|block| block.network).chain(services) {
        line!(out, "   route {network} blackhole;");
    }
    for via in &of_family.reachable {
        let (address, bits) = (via.address, of_family.family.bits());
        line!(out, "   route {address}/{bits} via {};", via.gateway);
    }
    line!(out, "}}");
    let has_routes = !(of_family.blocks.is_empty()
        && of_family.services.is_empty()
        && of_family.reachable.is_empty());
    if has_routes {
        line!(out, "protocol static from static_template {{\n}}");
    }
    line!(out, "function calico_aggr ()\n{{");
    let priority = of_family.normal_priority;
    for block in of_family.blocks.iter().filter(|block| block.is_told) {
        let network = block.network;
        line!(out, "      if ( net = {network} ) then {{ accept; }}");
        line!(
            out,
            "      if ( net ~ {network} && krt_metric < {priority} ) then {{ accept; }}"
        );
        line!(out, "      if ( net ~ {network} ) then {{ reject; }}");
    }
    line!(out, "}}");
    out.finish()
}
