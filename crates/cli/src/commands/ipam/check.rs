//! `tortie ipam check`: addresses that are given out and not used, and the reverse.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use tortie_ipam::report::{Allocation, Problem, Report, State, check};

use super::report_file::ReportFile;
use super::{Addresses, is_locked};
use crate::args::IpamCheck;

/// So many nodes are listed by how many addresses they have.
const TOP_NODES: usize = 20;

pub(super) async fn run(args: &IpamCheck, addresses: &Addresses) -> Result<ExitCode> {
    let information = addresses.cluster_information().await?;
    // Addresses first: what is given out meanwhile is then not missed among those in use, and what is released meanwhile
    // shows as in use without a holder at most for as long as this takes.
    let loaded = addresses.ipam.load().await?;
    let in_use = addresses.in_use().await?;
    let report = check(&loaded, &in_use);
    let mut out = anstream::stdout();
    let count = |count: Option<usize>, what: &str| match count {
        Some(count) => format!("{count} {what}"),
        None => format!("{what} that cannot be listed here"),
    };
    writeln!(
        out,
        "Compared {} blocks, {} addresses and {} handles with {}, {} and {}.",
        loaded.blocks.len(),
        report.allocations.len(),
        loaded.handles.len(),
        count(in_use.workloads.as_ref().map(Vec::len), "workloads"),
        count(in_use.nodes.as_ref().map(BTreeMap::len), "nodes"),
        count(
            in_use
                .services
                .as_ref()
                .map(std::collections::BTreeSet::len),
            "services' addresses"
        ),
    )?;
    if args.show_all_ips {
        for held in &report.allocations {
            writeln!(out, "  {}", describe(held))?;
        }
    }
    show_nodes(&mut out, &report)?;
    for (title, problems) in by_sort(&report) {
        writeln!(out, "Found {} {title}.", problems.len())?;
        if args.show_problem_ips {
            for problem in problems {
                writeln!(out, "  {}", tell(problem, &report))?;
            }
        }
    }
    writeln!(
        out,
        "Check complete; found {} problems.",
        report.problems.len()
    )?;
    if let Some(file) = &args.output {
        let content = ReportFile::new(&information, is_locked(&information), &report, &loaded);
        content.write(file)?;
        writeln!(out, "The report is in {}.", file.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_nodes(out: &mut impl std::io::Write, report: &Report) -> Result<()> {
    let mut by_node: BTreeMap<&str, usize> = BTreeMap::new();
    for held in &report.allocations {
        if let Some(node) = held.attributes.get(tortie_ipam::attribute::NODE) {
            *by_node.entry(node).or_default() += 1;
        }
    }
    let mut nodes: Vec<(&str, usize)> = by_node.into_iter().collect();
    nodes.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    if let [(_, most), ..] = nodes.as_slice() {
        let median = nodes[nodes.len() / 2].1;
        writeln!(
            out,
            "Node with most allocations has {most}; median is {median}"
        )?;
    }
    for (node, count) in nodes.iter().take(TOP_NODES) {
        writeln!(out, "  {node} has {count} allocations")?;
    }
    Ok(())
}

/// Problems of each sort, with what they are called. Every sort is told, also where there is none of it.
fn by_sort(report: &Report) -> Vec<(&'static str, Vec<&Problem>)> {
    let mut sorts: Vec<(&str, Vec<&Problem>)> = SORTS.map(|title| (title, Vec::new())).into();
    for problem in &report.problems {
        sorts[sort(problem)].1.push(problem);
    }
    sorts
}

const SORTS: [&str; 8] = [
    "IPs that are allocated in IPAM but not actually in use",
    "in-use IPs that are not in active IP pools",
    "in-use IPs that are in active IP pools but have no corresponding IPAM allocation",
    "IPs with several users",
    "handles with no matching IPs, or with other IPs than they count",
    "handles mentioned in blocks with no matching handle resource",
    "invalid IPAMBlocks, or blocks outside of all pools",
    "affinities that do not fit their block",
];

fn sort(problem: &Problem) -> usize {
    match problem {
        Problem::Leaked(_) => 0,
        Problem::OutsidePools { .. } => 1,
        Problem::Unallocated { .. } => 2,
        Problem::UsedTwice { .. } => 3,
        Problem::EmptyHandle(_) | Problem::HandleCount { .. } => 4,
        Problem::MissingHandle { .. } => 5,
        Problem::BlockOutsidePools(_)
        | Problem::BlocksOverlap(..)
        | Problem::AbandonedBlock(_)
        | Problem::Unreadable { .. } => 6,
        Problem::MissingAffinity(..)
        | Problem::AffinityWithoutBlock(..)
        | Problem::StaleAffinity(..)
        | Problem::UnconfirmedAffinity(..)
        | Problem::OwnerGone(..) => 7,
    }
}

/// A problem in words.
pub(super) fn tell(problem: &Problem, report: &Report) -> String {
    match problem {
        Problem::Leaked(address) => {
            let held = report
                .allocations
                .iter()
                .find(|held| held.address == *address);
            held.map_or_else(|| format!("{address} leaked"), describe)
        }
        Problem::Unallocated { address, user } => {
            format!("{address} in use by {user} and in active IPAM pool but has no IPAM allocation")
        }
        Problem::OutsidePools { address, user } => {
            format!("{address} in use by {user} is not in any active IP pool")
        }
        Problem::UsedTwice { address, users } => {
            format!("{address} has several users: {}", users.join(", "))
        }
        Problem::HandleCount {
            handle,
            block,
            counted,
            held,
        } => {
            format!("handle {handle} counts {counted} addresses in block {block}, which has {held}")
        }
        Problem::EmptyHandle(handle) => format!("handle {handle} doesn't have any active IPs"),
        Problem::MissingHandle { handle, address } => {
            format!("{address} is held under handle {handle}, which doesn't exist")
        }
        Problem::BlockOutsidePools(block) => format!("block {block} is in no pool"),
        Problem::BlocksOverlap(one, other) => {
            format!("blocks {one} and {other} have addresses in common")
        }
        Problem::AbandonedBlock(block) => format!("block {block} is nobody's and empty"),
        Problem::MissingAffinity(block, owner) => {
            format!(
                "block {block} belongs to {}, which has no affinity to it",
                owner.name
            )
        }
        Problem::AffinityWithoutBlock(block, owner) => {
            format!(
                "{} has an affinity to block {block}, which doesn't exist",
                owner.name
            )
        }
        Problem::StaleAffinity(block, owner) => {
            format!("{} has an affinity to block {block} of another", owner.name)
        }
        Problem::UnconfirmedAffinity(block, owner) => {
            format!(
                "the affinity of {} to block {block} is not confirmed",
                owner.name
            )
        }
        Problem::OwnerGone(block, owner) => {
            format!(
                "block {block} belongs to node {}, which doesn't exist",
                owner.name
            )
        }
        Problem::Unreadable { key, reason } => format!("{key} cannot be read: {reason}"),
    }
}

/// An address that is given out, in words.
fn describe(held: &Allocation) -> String {
    let state = match &held.state {
        State::InUse(user) => format!("in use by {user}"),
        State::Leaked(reason) => format!("leaked: {reason}"),
        State::Unknown => "given out; its use cannot be told".to_owned(),
    };
    let handle = held.handle.as_deref().unwrap_or("<none>");
    let facts: Vec<String> = held
        .attributes
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!(
        "{} {state}; handle {handle}; {}",
        held.address,
        facts.join(",")
    )
}
