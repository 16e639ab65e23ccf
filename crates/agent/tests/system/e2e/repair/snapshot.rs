//! What the kernel holds, as text in which only what matters differs.

use serde_json::Value;

use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

/// All that is ours, or all that is others'.
pub(super) fn snapshot(setting: &Setting, plane: Plane, is_foreign: bool) -> String {
    let mut text = String::new();
    if is_foreign {
        text += &setting.run("nft", "-s list table inet theirs");
    }
    match plane {
        Plane::Nftables if is_foreign => {}
        Plane::Nftables => {
            for family in ["ip", "ip6"] {
                text += &nftables(setting, family);
            }
        }
        Plane::Iptables | Plane::IptablesNft => {
            for program in plane.save_programs() {
                text += &iptables(&setting.run(program, ""), is_foreign);
            }
            text += &ip_sets(&setting.run("ipset", "save"), is_foreign);
        }
    }
    text
}

/// The names of our chains that have rules.
pub(super) fn chains(setting: &Setting, family: &str) -> Vec<String> {
    let mut chains: Vec<String> = objects(setting, family)
        .iter()
        .filter_map(|object| Some(object["rule"]["chain"].as_str()?.to_owned()))
        .collect();
    chains.dedup();
    chains
}

/// The names of our sets or maps that have elements.
pub(super) fn named(setting: &Setting, family: &str, what: &str) -> Vec<String> {
    let objects = objects(setting, family);
    let with_elements = objects
        .iter()
        .map(|object| &object[what])
        .filter(|object| object["elem"].as_array().is_some_and(|e| !e.is_empty()));
    let names = with_elements.map(|object| object["name"].as_str().unwrap().to_owned());
    names.collect()
}

fn objects(setting: &Setting, family: &str) -> Vec<Value> {
    let text = setting.run("nft", &format!("-j list table {family} calico"));
    let mut whole: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(whole["nftables"].take()).unwrap()
}

/// Our table; where the order has no meaning, sorted. While it does not exist, nothing.
fn nftables(setting: &Setting, family: &str) -> String {
    let tables = setting.run("nft", "list tables");
    if !tables
        .lines()
        .any(|line| line == format!("table {family} calico"))
    {
        return String::new();
    }
    let text = setting.run("nft", &format!("-s list table {family} calico"));
    let mut blocks: Vec<String> = text.split("\n\t}\n").map(sorted_elements).collect();
    blocks.sort();
    blocks.join("\n")
}

/// A block of a table, with the elements in order if it has such.
fn sorted_elements(block: &str) -> String {
    let Some((head, elements)) = block.split_once("elements = {") else {
        return block.to_owned();
    };
    let mut elements: Vec<&str> = elements
        .split(',')
        .map(|e| e.trim_matches([' ', '\t', '\n', '}']))
        .collect();
    elements.sort_unstable();
    format!("{head}{}", elements.join("\n"))
}

/// The rules in the order that they have in their chains.
fn iptables(saved: &str, is_foreign: bool) -> String {
    let mut table = "";
    let mut lines = Vec::new();
    for line in saved.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        }
        let is_ours = line.contains("cali");
        let is_theirs = line.contains("theirs");
        if (line.starts_with("-A") || line.starts_with(':'))
            && (if is_foreign { is_theirs } else { is_ours })
        {
            let line = line.split_once(" [").map_or(line, |(line, _)| line);
            let words: Vec<&str> = line.split(' ').collect();
            let chain = words.get(1).copied().unwrap_or_default();
            lines.push((table, chain, line));
        }
    }
    lines.sort_by_key(|(table, chain, _)| (*table, *chain));
    let lines = lines
        .iter()
        .map(|(table, _, line)| format!("{table} {line}\n"));
    lines.collect()
}

fn ip_sets(saved: &str, is_foreign: bool) -> String {
    let mut lines: Vec<&str> = saved
        .lines()
        .filter(|line| line.contains(if is_foreign { "theirs" } else { "cali" }))
        // Sets are known by content, and what they were made with differs from kernel to kernel.
        .filter(|line| line.starts_with("add"))
        .collect();
    lines.sort_unstable();
    lines.join("\n")
}
