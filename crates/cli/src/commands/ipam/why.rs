//! `tortie ipam why`: who holds an address, since when, and whether it is leaked.

use std::io::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use tortie_ipam::attribute;
use tortie_ipam::report::{Allocation, Loaded, Problem, Report, State, check};

use super::Addresses;
use super::check::tell;
use crate::args::IpamWhy;

/// Exit code for an address that nobody uses though it is held, or that is used though nobody holds it.
const BROKEN: u8 = 1;
/// Exit code for not knowing.
const UNKNOWN: u8 = 2;

pub(super) async fn run(args: &IpamWhy, addresses: &Addresses) -> Result<ExitCode> {
    let answer = match explain(args.address, addresses).await {
        Ok(answer) => answer,
        Err(error) => {
            writeln!(
                anstream::stderr(),
                "{}",
                super::super::report::error(&error)
            )?;
            return Ok(ExitCode::from(UNKNOWN));
        }
    };
    let mut out = anstream::stdout();
    match args.output.as_str() {
        "json" => writeln!(out, "{:#}", answer.as_json())?,
        _ => write!(out, "{}", answer.as_text())?,
    }
    Ok(if answer.is_broken() {
        ExitCode::from(BROKEN)
    } else {
        ExitCode::SUCCESS
    })
}

/// All that is known of an address.
struct Answer {
    address: IpAddr,
    pool: Option<(String, String)>,
    block: Option<(String, Option<String>)>,
    held: Option<Allocation>,
    problems: Vec<String>,
}

async fn explain(address: IpAddr, addresses: &Addresses) -> Result<Answer> {
    let loaded = addresses.ipam.load().await?;
    let report = check(&loaded, &addresses.in_use().await?);
    Ok(Answer::new(address, &loaded, &report))
}

impl Answer {
    fn new(address: IpAddr, loaded: &Loaded, report: &Report) -> Self {
        let mut pools = loaded.pools.iter().filter(|pool| {
            let net: Result<ipnet::IpNet, _> = pool.spec.cidr.parse();
            net.is_ok_and(|net| net.contains(&address))
        });
        let mut blocks = loaded
            .blocks
            .iter()
            .filter(|block| block.net().contains(&address));
        let held = report
            .allocations
            .iter()
            .find(|held| held.address == address);
        let handle = held.and_then(|held| held.handle.as_deref());
        let concerns = |problem: &&Problem| match problem {
            Problem::Leaked(found)
            | Problem::Unallocated { address: found, .. }
            | Problem::UsedTwice { address: found, .. }
            | Problem::OutsidePools { address: found, .. }
            | Problem::MissingHandle { address: found, .. } => *found == address,
            Problem::HandleCount { handle: found, .. } | Problem::EmptyHandle(found) => {
                handle == Some(found)
            }
            Problem::BlockOutsidePools(block)
            | Problem::AbandonedBlock(block)
            | Problem::MissingAffinity(block, _)
            | Problem::AffinityWithoutBlock(block, _)
            | Problem::StaleAffinity(block, _)
            | Problem::UnconfirmedAffinity(block, _)
            | Problem::OwnerGone(block, _) => block.contains(&address),
            Problem::BlocksOverlap(one, other) => {
                one.contains(&address) || other.contains(&address)
            }
            Problem::Unreadable { .. } => false,
        };
        let problems = report.problems.iter().filter(concerns);
        Self {
            address,
            pool: pools
                .next()
                .map(|pool| (pool.metadata.name.clone(), pool.spec.cidr.clone())),
            block: blocks.next().map(|block| {
                let owner = block.owner().map(|owner| owner.name);
                (block.net().to_string(), owner)
            }),
            held: held.cloned(),
            problems: problems.map(|problem| tell(problem, report)).collect(),
        }
    }

    fn is_broken(&self) -> bool {
        !self.problems.is_empty()
    }

    fn verdict(&self) -> String {
        match &self.held {
            None if self.problems.is_empty() => "free".to_owned(),
            None => "used, but held by nobody".to_owned(),
            Some(held) if held.is_cooling_down => {
                "released, and not given out again yet".to_owned()
            }
            Some(held) => match &held.state {
                State::InUse(user) => format!("in use by {user}"),
                State::Leaked(reason) => format!("leaked: {reason}"),
                State::Unknown => "held; whether it is used cannot be told".to_owned(),
            },
        }
    }

    fn as_text(&self) -> String {
        let mut lines = vec![format!("{} is {}", self.address, self.verdict())];
        lines.push(match &self.pool {
            Some((name, cidr)) => format!("  pool    {name} ({cidr})"),
            None => "  pool    none".to_owned(),
        });
        lines.push(match &self.block {
            Some((net, Some(owner))) => format!("  block   {net}, of {owner}"),
            Some((net, None)) => format!("  block   {net}, of nobody"),
            None => "  block   none yet".to_owned(),
        });
        if let Some(held) = &self.held {
            let handle = held.handle.as_deref().unwrap_or("<none>");
            lines.push(format!("  handle  {handle}"));
            if let Some(since) = held.attributes.get(attribute::TIMESTAMP) {
                lines.push(format!("  since   {since}"));
            }
            if held.is_borrowed {
                lines.push("  borrowed from another node's block".to_owned());
            }
            for (name, value) in &held.attributes {
                if name != attribute::TIMESTAMP {
                    lines.push(format!("  {name:<7} {value}"));
                }
            }
        }
        for problem in &self.problems {
            lines.push(format!("  problem {problem}"));
        }
        if let Some(Allocation {
            state: State::Leaked(_),
            ..
        }) = &self.held
        {
            lines.push(format!(
                "Release it with: tortie ipam release --ip {}",
                self.address
            ));
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn as_json(&self) -> Value {
        let (state, user, reason) = match &self.held {
            None => ("free", None, None),
            Some(held) if held.is_cooling_down => ("coolingDown", None, None),
            Some(held) => match &held.state {
                State::InUse(user) => ("inUse", Some(user), None),
                State::Leaked(reason) => ("leaked", None, Some(reason)),
                State::Unknown => ("unknown", None, None),
            },
        };
        let held = self.held.as_ref();
        json!({
            "address": self.address,
            "state": state,
            "user": user,
            "reason": reason,
            "pool": self.pool.as_ref().map(|(name, cidr)| json!({"name": name, "cidr": cidr})),
            "block": self.block.as_ref().map(|(net, owner)| json!({"cidr": net, "owner": owner})),
            "handle": held.and_then(|held| held.handle.clone()),
            "since": held.and_then(|held| held.attributes.get(attribute::TIMESTAMP)),
            "attributes": held.map(|held| &held.attributes),
            "borrowed": held.is_some_and(|held| held.is_borrowed),
            "problems": self.problems,
        })
    }
}
