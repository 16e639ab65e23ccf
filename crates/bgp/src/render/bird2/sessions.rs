//! Sessions: what most have in common is in a template, and each says what it has of its own.

use super::{channel, debug, has_sessions, suffix};
use crate::Plan;
use crate::plan::{FamilyPlan, NextHop, Peer};
use crate::render::filter::{self, Direction};
use crate::render::text::{Text, line};

pub(super) fn render(out: &mut Text, plan: &Plan, of_family: &FamilyPlan) {
    if !has_sessions(of_family) {
        return;
    }
    filter::functions(out, plan, of_family.family);
    template(out, plan, of_family);
    for peer in &of_family.peers {
        session(out, plan, of_family, peer);
    }
}

fn template(out: &mut Text, plan: &Plan, of_family: &FamilyPlan) {
    let (v, channel) = (suffix(of_family.family), channel(of_family.family));
    line!(out, "template bgp calico_bgp_{v} {{");
    debug(out, plan.log, "states, routes, filters, events");
    line!(out, "  description \"Connection to BGP peer\";");
    let port = of_family.listen_port.map(|port| format!(" port {port}"));
    line!(
        out,
        "  local{} as {};",
        port.unwrap_or_default(),
        plan.as_number
    );
    if of_family.listen_address.is_some() {
        line!(out, "  strict bind on;");
    }
    out.push_str("  multihop;\n  ttl security off;\n  graceful restart on;\n  connect delay time 2;\n  connect retry time 5;\n  error wait time 5,30;\n");
    line!(out, "  {channel} {{");
    line!(out, "    gateway recursive;");
    line!(out, "    add paths on;");
    filters(out, plan, of_family, &[], true);
    line!(out, "  }};\n}}\n");
}

fn session(out: &mut Text, plan: &Plan, of_family: &FamilyPlan, peer: &Peer) {
    line!(
        out,
        "protocol bgp {} from calico_bgp_{} {{",
        peer.name,
        suffix(of_family.family)
    );
    if let Some(number) = peer.local_as {
        line!(out, "  local as {number};");
    }
    let (address, number) = (peer.address, peer.as_number);
    match peer.port {
        Some(port) => line!(out, "  neighbor {address} port {port} as {number};"),
        None => line!(out, "  neighbor {address} as {number};"),
    }
    // Without an address it would listen at all of them.
    if let Some(source) = peer.source.or(of_family.listen_address) {
        line!(out, "  source address {source};");
    }
    if let Some(hops) = peer.ttl_security {
        line!(out, "  ttl security on;\n  multihop {hops};");
    }
    if peer.is_passive {
        line!(out, "  passive on;");
    }
    if let Some(seconds) = peer.restart_time {
        line!(out, "  graceful restart time {seconds};");
    }
    if let Some(seconds) = peer.keepalive_time {
        line!(out, "  keepalive time {seconds};");
    }
    if let Some(cluster) = peer.reflects {
        line!(out, "  rr client;\n  rr cluster id {cluster};");
    }
    if let Some(password) = &peer.password {
        line!(out, "  password \"{}\";", password.reveal());
    }
    if let Some(count) = peer.allowed_local_as {
        line!(out, "  allow local as {count};");
    }
    let is_internal = plan.is_internal(peer);
    let has_filters = !peer.filters.is_empty() || !is_internal;
    if has_filters || peer.next_hop != NextHop::Auto {
        line!(out, "  {} {{", channel(of_family.family));
        match peer.next_hop {
            NextHop::Auto => {}
            NextHop::Own => line!(out, "    next hop self;"),
            NextHop::Keep => line!(out, "    next hop keep;"),
        }
        if has_filters {
            filters(out, plan, of_family, &peer.filters, is_internal);
        }
        line!(out, "  }};");
    }
    line!(out, "}}");
}

fn filters(
    out: &mut Text,
    plan: &Plan,
    of_family: &FamilyPlan,
    filters: &[usize],
    is_internal: bool,
) {
    let (family, v) = (of_family.family, suffix(of_family.family));
    line!(out, "    import filter {{");
    filter::calls(out, plan, (Direction::Import, family), filters, is_internal);
    line!(out, "    calico_import_{v}();\n    }};");
    line!(out, "    export filter {{");
    line!(out, "    calico_prepare_export_{v}();");
    filter::calls(out, plan, (Direction::Export, family), filters, is_internal);
    line!(out, "    calico_export_to_bgp_peers_{v}({is_internal});");
    line!(out, "    reject;\n    }};");
}
