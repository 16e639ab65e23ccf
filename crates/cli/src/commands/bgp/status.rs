//! `tortie bgp status` and `tortie node status`

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tortie_agent::LocalAgent;
use tortie_bgp::bird::status::{Answers, Families, HEADINGS, Sockets};
use tortie_bgp::bird::{self, Error};
use tortie_bgp::speaker::Report;
use tortie_error::Causes;

use crate::args::{BgpStatus, BgpStatusOutput, NodeStatusArgs};
use crate::commands::root;
use crate::output::bordered::bordered;

/// What one BIRD says, or why it does not.
type Asked = bird::Result<Answers>;

pub(super) async fn run(args: &BgpStatus) -> Result<ExitCode> {
    let folder = &args.run.folder;
    let report = Report::read(folder).with_context(|| {
        let folder = folder.display();
        format!("the report in {folder} cannot be read")
    })?;
    let answers = Sockets::in_folder(folder).ask(false).await;
    let problems = problems(report.as_ref(), &answers);
    let mut out = anstream::stdout();
    match args.output {
        BgpStatusOutput::Json => {
            let of = |asked: &Asked| {
                let peers = asked.iter().flat_map(|answers| &answers.peers);
                let peers = peers.map(|peer| {
                    json!({
                        "name": peer.name, "address": peer.address, "type": peer.r#type.words(), "state": peer.session,
                        "since": peer.since, "info": peer.info, "established": peer.is_established,
                    })
                });
                peers.collect::<Vec<_>>()
            };
            let all = json!({
                "well": problems.is_empty(), "speaker": report, "problems": problems,
                "ipv4": of(&answers.v4), "ipv6": of(&answers.v6),
            });
            writeln!(out, "{all:#}")?;
        }
        BgpStatusOutput::Text => {
            for (family, asked) in [("IPv4", &answers.v4), ("IPv6", &answers.v6)] {
                write!(out, "{}", table(family, asked))?;
            }
            for problem in &problems {
                writeln!(out, "{problem}")?;
            }
            if problems.is_empty() {
                writeln!(
                    out,
                    "All sessions are established, and nothing is left out."
                )?;
            }
        }
    }
    Ok(if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn problems(report: Option<&Report>, answers: &Families<Asked>) -> Vec<String> {
    let mut problems = Vec::new();
    match report {
        None => problems.push("no `tortie bgp` keeps BIRD's configuration here".to_owned()),
        Some(report) if report.has_left => problems.push(
            "the node has left, and announces nothing before `tortie node startup`".to_owned(),
        ),
        Some(report) => {
            if !report.in_sync {
                problems.push("the datastore is not followed now".to_owned());
            }
            problems.extend(report.refusals.iter().cloned());
            problems.extend(report.unreadable.iter().cloned());
            problems.extend(report.problems.iter().cloned());
            problems.extend(report.failure.iter().cloned());
        }
    }
    for (family, asked) in [("IPv4", &answers.v4), ("IPv6", &answers.v6)] {
        match asked {
            // One BIRD 2 speaks both, and where neither answers it is said once.
            Err(Error::Unreachable { .. }) if family == "IPv6" => {}
            Err(error) => problems.push(format!("BIRD does not answer: {}", Causes(error))),
            Ok(answers) => {
                let down = answers.peers.iter().filter(|peer| !peer.is_established);
                problems.extend(down.map(|peer| {
                    let info = if peer.info.is_empty() {
                        peer.state
                    } else {
                        &peer.info
                    };
                    format!(
                        "{} ({}) is not established: {info}",
                        peer.address, peer.name
                    )
                }));
            }
        }
    }
    problems
}

/// As calicoctl prints it.
pub(in crate::commands) async fn node_status(args: &NodeStatusArgs) -> Result<ExitCode> {
    root::check_node_status()?;
    if LocalAgent::find()?.is_none() {
        bail!("Calico process is not running.");
    }
    let mut out = anstream::stdout();
    writeln!(out, "Calico process is running.")?;
    let answers = ask(&args.run.folder).await;
    for (family, asked) in [("IPv4", &answers.v4), ("IPv6", &answers.v6)] {
        write!(out, "\n{}", table(family, asked))?;
    }
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}

/// In the folder, or where BIRD's own packages have their socket.
async fn ask(folder: &Path) -> Families<Asked> {
    let answers = Sockets::in_folder(folder).ask(false).await;
    match &answers.v4 {
        Err(Error::Unreachable { .. }) => {
            Sockets::in_folder(Path::new("/var/run/bird"))
                .ask(false)
                .await
        }
        _ => answers,
    }
}

fn table(family: &str, asked: &Asked) -> String {
    let answers = match asked {
        Ok(answers) => answers,
        Err(Error::Unreachable { .. }) => {
            return format!("{family} BGP status\nBIRD is not running.\n");
        }
        Err(error) => {
            return format!(
                "{family} BGP status\nBIRD does not answer: {}\n",
                Causes(error)
            );
        }
    };
    if answers.peers.is_empty() {
        return format!("{family} BGP status\nNo {family} peers found.\n");
    }
    let rows = answers.peers.iter().map(|peer| peer.row().to_vec());
    let table = bordered(&HEADINGS, &rows.collect::<Vec<_>>());
    format!("{family} BGP status\n{table}")
}
