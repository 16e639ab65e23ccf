//! What the kernel holds, as lines in which only what matters differs.

use std::collections::BTreeSet;
use std::process::Command;

use tortie_testkit::net::Node;

use crate::killed::Plane;

/// Everything in a node's packet filter, in an order that does not depend on how it came about.
pub(crate) fn snapshot(node: &Node, plane: Plane) -> Vec<String> {
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments);
        let output = node.namespace().run(|| command.output());
        let output = output.unwrap().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    let mut lines = match plane {
        Plane::Nftables => nftables(&run("nft", &["-s", "list", "ruleset"])),
        Plane::Iptables => {
            let mut lines = Vec::new();
            for program in ["iptables-legacy-save", "ip6tables-legacy-save"] {
                lines.extend(iptables(program, &run(program, &[])));
            }
            lines.extend(ip_sets(&run("ipset", &["save"])));
            lines
        }
    };
    assert!(
        lines.len() > 50,
        "{plane:?} has next to nothing: {lines:#?}"
    );
    lines.sort();
    lines
}

/// The lines of one snapshot that another has not.
pub(crate) fn only_in(one: &[String], other: &[String]) -> String {
    let other: BTreeSet<&String> = other.iter().collect();
    let lines = one.iter().filter(|line| !other.contains(line));
    lines.cloned().collect::<Vec<_>>().join("\n")
}

/// A line for each chain with its rules in order, and for each element of a set.
fn nftables(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut table = "";
    for block in text.split("\n\t}\n") {
        let mut block = block.trim_start_matches(['}', '\n']);
        if let Some((head, rest)) = block.split_once("{\n")
            && head.starts_with("table")
        {
            (table, block) = (head, rest);
        }
        let (block, elements) = block.split_once("elements = {").unwrap_or((block, ""));
        let block = block.trim();
        lines.push(format!("{table}{block}"));
        let name = block.lines().next().unwrap_or_default();
        let elements = elements.split(',');
        let elements = elements.map(|element| element.trim_matches([' ', '\t', '\n', '}']));
        lines.extend(elements.map(|element| format!("{table}{name} {element}")));
    }
    lines
}

/// A line for each chain, with its rules in order.
fn iptables(program: &str, saved: &str) -> Vec<String> {
    let mut chains: Vec<(String, String)> = Vec::new();
    let mut table = "";
    for line in saved.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        } else if let Some(chain) = line.strip_prefix(':') {
            let (chain, _) = chain.split_once(" [").unwrap_or((chain, ""));
            let name = chain.split(' ').next().unwrap_or_default();
            let head = format!("{program} {table} {chain}");
            chains.push((format!("-A {name} "), head));
        } else if line.starts_with("-A") {
            let chain = chains
                .iter_mut()
                .rev()
                .find(|(start, _)| line.starts_with(start));
            let (_, text) = chain.unwrap();
            text.push('\n');
            text.push_str(line);
        }
    }
    chains.into_iter().map(|(_, text)| text).collect()
}

/// Sets and their members, without how much room the kernel made for them.
fn ip_sets(saved: &str) -> Vec<String> {
    let lines = saved.lines().map(|line| {
        let mut words = Vec::new();
        let mut rest = line.split(' ');
        while let Some(word) = rest.next() {
            if matches!(word, "hashsize" | "bucketsize" | "initval") {
                rest.next();
            } else {
                words.push(word);
            }
        }
        words.join(" ")
    });
    lines.collect()
}
