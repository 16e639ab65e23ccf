//! `bird.cfg` and `bird6.cfg`: the daemon's own settings, and its sessions.

use std::collections::HashMap;

use super::daemon;
use crate::plan::{FamilyPlan, LogLevel, MAX_PREFERENCE, NextHop, OVERRIDE_PREFERENCE, Peer};
use crate::render::filter::{self, Direction};
use crate::render::text::{Text, line};
use crate::{Family, Plan};

pub(super) fn render(plan: &Plan, family: Family) -> String {
    let of_family = plan.family(family);
    let mut out = Text::default();
    line!(out, "function apply_communities ()");
    line!(out, "{{");
    filter::communities(&mut out, &of_family.communities);
    line!(out, "}}");
    templates(&mut out, plan);
    line!(out, "include \"{}_aggr.cfg\";", daemon(family));
    line!(out, "include \"{}_ipam.cfg\";", daemon(family));
    line!(out, "router id {};", plan.router_id);
    listen(&mut out, of_family);
    out.push_str(
        "protocol kernel from kernel_template {\n  export filter calico_kernel_programming;\n  graceful restart;\n  merge paths on;\n}\n",
    );
    line!(out, "protocol device {{");
    debug(&mut out, plan.log);
    line!(out, "  scan time 2;");
    line!(out, "}}");
    out.push_str("protocol direct from direct_template {\n}\n");
    // Sessions of an IP version that the node has no address of cannot start anywhere.
    if of_family.address.is_some() {
        sessions(&mut out, plan, of_family);
    }
    out.finish()
}

fn templates(out: &mut Text, plan: &Plan) {
    // Routes stay when BIRD stops, and those of others are known to it.
    out.push_str(
        "template kernel kernel_template {\n  learn;\n  persist;\n  scan time 2;\n  import all;\n}\n",
    );
    line!(out, "template direct direct_template {{");
    debug(out, plan.log);
    let ignored = plan.ignored_interfaces.iter();
    let ignored = ignored.fold(String::new(), |text, pattern| {
        text + &format!("-\"{pattern}\", ")
    });
    line!(
        out,
        "  interface {ignored}-\"cali*\", -\"kube-ipvs*\", \"*\";"
    );
    line!(out, "}}");
}

fn debug(out: &mut Text, log: LogLevel) {
    match log {
        LogLevel::None => {}
        LogLevel::Info => line!(out, "  debug {{ states }};"),
        LogLevel::Debug => line!(out, "  debug all;"),
    }
}

fn listen(out: &mut Text, plan: &FamilyPlan) {
    let address = plan
        .listen_address
        .map(|address| format!(" address {address}"));
    let port = plan.listen_port.map(|port| format!(" port {port}"));
    if address.is_some() || port.is_some() {
        let (address, port) = (address.unwrap_or_default(), port.unwrap_or_default());
        line!(out, "listen bgp{address}{port};");
    }
}

fn sessions(out: &mut Text, plan: &Plan, of_family: &FamilyPlan) {
    line!(out, "template bgp bgp_template {{");
    match plan.log {
        LogLevel::None => {}
        LogLevel::Info => line!(out, "  debug {{ states, routes, filters, events }};"),
        LogLevel::Debug => line!(out, "  debug all;"),
    }
    line!(out, "  description \"Connection to BGP peer\";");
    line!(out, "  local as {};", plan.as_number);
    out.push_str(
        "  gateway recursive;\n  add paths on;\n  graceful restart;\n  connect delay time 2;\n  connect retry time 5;\n  error wait time 5,30;\n}\n",
    );
    filter::functions(out, plan, of_family.family);
    // All peers of a mesh have the same.
    let mut filters: HashMap<(&[usize], bool), String> = HashMap::new();
    for peer in &of_family.peers {
        let key = (peer.filters.as_slice(), plan.is_internal(peer));
        let filters = filters
            .entry(key)
            .or_insert_with(|| both_filters(plan, of_family, key));
        session(out, peer, filters);
    }
}

fn session(out: &mut Text, peer: &Peer, filters: &str) {
    line!(out, "protocol bgp {} from bgp_template {{", peer.name);
    if let Some(number) = peer.local_as {
        line!(out, "  local as {number};");
    }
    let (address, number) = (peer.address, peer.as_number);
    match peer.port {
        Some(port) => line!(out, "  neighbor {address} port {port} as {number};"),
        None => line!(out, "  neighbor {address} as {number};"),
    }
    if let Some(source) = peer.source {
        line!(out, "  source address {source};");
    }
    match peer.ttl_security {
        Some(hops) => line!(out, "  ttl security on;\n  multihop {hops};"),
        None => line!(out, "  ttl security off;\n  multihop;"),
    }
    out.push_str(filters);
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
    match peer.next_hop {
        NextHop::Auto => {}
        NextHop::Own => line!(out, "  next hop self;"),
        NextHop::Keep => line!(out, "  next hop keep;"),
    }
    if let Some(count) = peer.allowed_local_as {
        line!(out, "  allow local as {count};");
    }
    line!(out, "}}");
}

fn both_filters(
    plan: &Plan,
    of_family: &FamilyPlan,
    (filters, is_internal): (&[usize], bool),
) -> String {
    let (family, priority) = (of_family.family, of_family.normal_priority);
    let mut out = Text::default();
    line!(out, "  import filter {{");
    let import = (Direction::Import, family);
    filter::calls(&mut out, plan, import, filters, is_internal);
    let normal = MAX_PREFERENCE - priority;
    line!(
        out,
        "    if (defined(bgp_local_pref)&&(bgp_local_pref > {normal})) then"
    );
    line!(out, "      preference = {OVERRIDE_PREFERENCE};");
    line!(out, "    accept;\n  }};");
    line!(out, "  export filter {{");
    // What was learnt has a preference; what was not has the metric that the kernel says.
    line!(
        out,
        "    if (defined(source) && source = RTS_BGP && defined(bgp_local_pref)) then {{"
    );
    line!(out, "      krt_metric = {MAX_PREFERENCE} - bgp_local_pref;");
    line!(out, "    }} else {{");
    line!(
        out,
        "      if (!defined(krt_metric)) then {{ krt_metric = {priority}; }}"
    );
    line!(out, "      bgp_local_pref = {MAX_PREFERENCE} - krt_metric;");
    line!(out, "    }}");
    let export = (Direction::Export, family);
    filter::calls(&mut out, plan, export, filters, is_internal);
    line!(out, "    calico_export_to_bgp_peers({is_internal});");
    line!(out, "    reject;\n  }};");
    out.finish()
}
