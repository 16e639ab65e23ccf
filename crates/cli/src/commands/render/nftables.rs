//! The tables as `nft -f` reads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tortie_dataplane::nftables::{TABLE, base_chains};
use tortie_dataplane::{Batch, MapChange, SetChange, SetKind};
use tortie_engine::message::Member;
use tortie_kernel::nft::{BaseChain, ChainKind, Hook, Policy};
use tortie_rules::nftables::{Line, chain_name, lines, lines_of};
use tortie_rules::{IpVersion, Rule, Table};

use super::members;

/// Comments that are longer than this are cut, as they are where the agent writes them.
const LONGEST_COMMENT: usize = 127;

/// Writes the table of one IP version, in place of the one that is there.
pub(super) fn write(batch: &Batch, version: IpVersion, out: &mut String) {
    let family = match version {
        IpVersion::V4 => "ip",
        IpVersion::V6 => "ip6",
    };
    // Adding first makes deletion succeed in any case.
    put(out, format_args!("add table {family} {TABLE}\n"));
    put(out, format_args!("delete table {family} {TABLE}\n"));
    put(out, format_args!("table {family} {TABLE} {{\n"));
    for set in &batch.sets {
        write_set(set, version, out);
    }
    for map in &batch.maps {
        write_map(map, out);
    }
    let mut hooks: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
    for hook in &batch.hooks {
        let rules = hooks.entry(chain_name(hook.table, hook.chain)).or_default();
        rules.extend(hook.first.iter().chain(&hook.last).cloned());
    }
    for (table, chain) in base_chains() {
        let rules = hooks.get(&*chain.name).map_or(&[][..], Vec::as_slice);
        write_base_chain(table, &chain, rules, version, out);
    }
    for chain in &batch.chains {
        let name = chain_name(chain.table, &chain.name);
        put(out, format_args!("\tchain {name} {{\n"));
        write_rules(&lines(chain, version), out);
        out.push_str("\t}\n");
    }
    out.push_str("}\n");
}

fn write_base_chain(
    table: Table,
    chain: &BaseChain,
    rules: &[Rule],
    version: IpVersion,
    out: &mut String,
) {
    let BaseChain { name, priority, .. } = chain;
    let kind = match chain.kind {
        ChainKind::Filter => "filter",
        ChainKind::Nat => "nat",
        ChainKind::Route => "route",
    };
    let hook = match chain.hook {
        Hook::Prerouting => "prerouting",
        Hook::Input => "input",
        Hook::Forward => "forward",
        Hook::Output => "output",
        Hook::Postrouting => "postrouting",
    };
    let policy = match chain.policy {
        Policy::Accept => "accept",
        Policy::Drop => "drop",
    };
    put(out, format_args!("\tchain {name} {{\n"));
    put(
        out,
        format_args!("\t\ttype {kind} hook {hook} priority {priority}; policy {policy};\n"),
    );
    write_rules(&lines_of(name, table, rules, version), out);
    out.push_str("\t}\n");
}

fn write_rules(lines: &[Line], out: &mut String) {
    for Line { rule, comment } in lines {
        let comment = &comment[..comment.floor_char_boundary(LONGEST_COMMENT)];
        put(out, format_args!("\t\t{rule} comment \"{comment}\"\n"));
    }
}

fn write_set(set: &SetChange, version: IpVersion, out: &mut String) {
    let address = match version {
        IpVersion::V4 => "ipv4_addr",
        IpVersion::V6 => "ipv6_addr",
    };
    put(out, format_args!("\tset {} {{\n", set.name));
    match set.kind {
        SetKind::Addresses => put(out, format_args!("\t\ttype {address}\n")),
        SetKind::Networks => put(
            out,
            format_args!("\t\ttype {address}\n\t\tflags interval\n"),
        ),
        SetKind::Ports => put(
            out,
            format_args!("\t\ttype {address} . inet_proto . inet_service\n"),
        ),
    }
    write_elements(members(&set.change).iter().map(element), out);
    out.push_str("\t}\n");
}

fn element(member: &Member) -> String {
    match member {
        Member::Net(net) if net.prefix_len() == net.max_prefix_len() => net.addr().to_string(),
        Member::Net(net) => net.to_string(),
        Member::Port(address, protocol, port) => format!("{address} . {protocol} . {port}"),
    }
}

fn write_map(map: &MapChange, out: &mut String) {
    let layer = map.table.name();
    put(out, format_args!("\tmap {layer}-{} {{\n", map.name));
    out.push_str("\t\ttype ifname : verdict\n");
    let elements = map.added.iter();
    let elements = elements.map(|(name, chain)| format!("\"{name}\" : goto {layer}-{chain}"));
    write_elements(elements, out);
    out.push_str("\t}\n");
}

fn write_elements(elements: impl Iterator<Item = String>, out: &mut String) {
    let elements: Vec<String> = elements.collect();
    if !elements.is_empty() {
        let elements = elements.join(",\n\t\t\t");
        put(
            out,
            format_args!("\t\telements = {{\n\t\t\t{elements}\n\t\t}}\n"),
        );
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes any text");
}
