//! `tortie node checksystem`: can this machine do what a node has to do?
//!
//! Lists of modules say what a kernel might do. Here it is tried: in network namespaces that nobody else sees, and with the
//! drivers that an agent uses.

mod modules;
mod probes;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use tortie_rules::Dataplane as Kind;

use self::modules::Modules;
use self::probes::Probe;
use crate::args::{CheckSystem, CheckSystemOutput};
use crate::commands::root;

/// What one check found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    name: String,
    result: Outcome,
    /// What cannot be done without it.
    needed_for: &'static str,
    /// What is wrong, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Outcome {
    Ok,
    Fail,
    /// Not there, and nothing that is used here needs it.
    Skip,
}

pub(super) fn run(args: &CheckSystem) -> Result<ExitCode> {
    root::check_system()?;
    let checks = check_all();
    let has_failed = checks.iter().any(|check| check.result == Outcome::Fail);
    let mut out = anstream::stdout().lock();
    match args.output {
        CheckSystemOutput::Json => writeln!(out, "{:#}", serde_json::to_value(&checks)?)?,
        CheckSystemOutput::Text => {
            let width = checks.iter().map(|check| check.name.len()).max();
            let width = width.unwrap_or_default();
            for check in &checks {
                let Check {
                    name,
                    result,
                    needed_for,
                    problem,
                } = check;
                writeln!(out, "{name:width$}  {result:4}  {needed_for}")?;
                if let Some(problem) = problem {
                    writeln!(out, "  {problem}")?;
                }
            }
            let verdict = if has_failed {
                "This machine cannot do all that a node has to do."
            } else {
                "This machine can do what a node has to do."
            };
            writeln!(out, "{verdict}")?;
        }
    }
    Ok(if has_failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn check_all() -> Vec<Check> {
    let modules = Modules::read();
    let mut checks = vec![kernel_version(&modules)];
    let dataplanes = [Kind::Nftables, Kind::Iptables].map(|kind| (kind, probes::dataplane(kind)));
    // One of the two is enough.
    let is_any_usable = dataplanes.iter().any(|(_, probed)| probed.is_ok());
    for (kind, probed) in dataplanes {
        let problem = probed.err().map(|problem| match modules.missing_of(kind) {
            missing if missing.is_empty() => problem,
            missing => format!(
                "{problem}; the kernel seems to have no {}",
                missing.join(", ")
            ),
        });
        checks.push(Check {
            name: format!("data plane {kind}"),
            result: outcome(problem.is_none(), !is_any_usable),
            needed_for: "policy; one of the data planes is enough",
            problem,
        });
    }
    checks.extend(probes::ALL.iter().map(check));
    checks
}

fn kernel_version(modules: &Modules) -> Check {
    Check {
        name: format!("kernel {}", modules.release),
        result: outcome(modules.is_new_enough(), true),
        needed_for: "everything",
        problem: (!modules.is_new_enough()).then(|| {
            let (major, minor) = modules::OLDEST_KERNEL;
            format!("at least {major}.{minor} is needed: install a newer kernel")
        }),
    }
}

fn check(probe: &Probe) -> Check {
    let problem = (probe.run)().err();
    Check {
        name: probe.name.to_owned(),
        result: outcome(problem.is_none(), probe.is_required),
        needed_for: probe.needed_for,
        problem: problem.map(|problem| format!("{problem}: {}", probe.advice)),
    }
}

fn outcome(is_ok: bool, is_required: bool) -> Outcome {
    match (is_ok, is_required) {
        (true, _) => Outcome::Ok,
        (false, true) => Outcome::Fail,
        (false, false) => Outcome::Skip,
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "OK",
            Self::Fail => "FAIL",
            Self::Skip => "SKIP",
        })
    }
}
