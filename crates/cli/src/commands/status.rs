//! `tortie status`: is this node, or this cluster, well?

mod bgp;
mod cluster;
mod local;
mod text;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use tortie_agent::{NodeStatus, Problem};
use tortie_client::connect::{DatastoreType, Target, environment};

use self::cluster::Cluster;
use super::report;
use crate::args::{Global, Status, StatusOutput};
use crate::config::find_target;

/// All that could be found out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    /// Whether there are no problems.
    well: bool,
    /// The version of this program.
    version: &'static str,
    /// Which datastore was asked.
    datastore: String,
    /// What it holds, if it could be read.
    cluster: Option<Cluster>,
    /// The node that this machine is, if it is one.
    node: Option<String>,
    /// What the agent of this machine says.
    agent: Option<NodeStatus>,
    /// What is wrong.
    problems: Vec<Problem>,
    /// What is worth knowing, and not wrong.
    notes: Vec<String>,
    /// Who could not be asked.
    not_asked: Vec<String>,
}

pub(super) async fn run(args: &Status, global: &Global) -> Result<ExitCode> {
    let found = find(args, global).await?;
    let mut out = anstream::stdout();
    match args.output {
        StatusOutput::Json => writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?,
        StatusOutput::Text => write!(out, "{}", text::render(&found))?,
    }
    Ok(if found.well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn find(args: &Status, global: &Global) -> Result<Found> {
    let target = find_target(global, &environment)?;
    let mut found = Found {
        well: false,
        version: env!("CARGO_PKG_VERSION"),
        datastore: name(&target),
        cluster: None,
        node: None,
        agent: None,
        problems: Vec::new(),
        notes: Vec::new(),
        not_asked: Vec::new(),
    };
    match cluster::read(&target).await {
        Ok(cluster) => {
            found.problems.extend(cluster.problems());
            found.cluster = Some(cluster);
        }
        Err(error) => {
            let reason = report::causes(&error);
            let reason = reason.trim_start_matches("datastore is unavailable: ");
            found.add_problem("datastore", "", reason);
        }
    }
    local::ask(args.node.as_deref(), &mut found).await?;
    bgp::look(global, &mut found).await;
    found.well = found.problems.is_empty();
    Ok(found)
}

impl Found {
    fn add_problem(&mut self, what: &str, name: &str, reason: &str) {
        self.problems.push(problem(what, name, reason));
    }
}

fn problem(what: &str, name: &str, reason: &str) -> Problem {
    Problem {
        what: what.to_owned(),
        name: name.to_owned(),
        reason: reason.to_owned(),
    }
}

/// The datastore, as people name it.
fn name(target: &Target) -> String {
    match target.datastore {
        DatastoreType::Embedded => format!("embedded, {}", target.data_file.display()),
        DatastoreType::Etcdv3 => format!("etcd, {}", target.settings.etcd_endpoints),
        DatastoreType::Kubernetes => match target.settings.kubeconfig.as_str() {
            "" => "Kubernetes".to_owned(),
            file => format!("Kubernetes, {file}"),
        },
    }
}
