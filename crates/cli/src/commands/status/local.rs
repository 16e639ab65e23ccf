//! What can be known of this machine.

use anyhow::Result;
use tortie_agent::NodeStatus;
use tortie_agent::asked::{self, Answer};
use tortie_config::{Config, Sources, from_environment, resolve};

use super::Found;
use super::cluster::Cluster;
use crate::commands::agent::{PARAMETER_FILE, node_name, parameter_file};
use crate::commands::node::enforced;

/// Asks the agent of this machine, if there is one.
pub(super) async fn ask(given: Option<&str>, found: &mut Found) -> Result<()> {
    let name = node_name(given, &from_environment(std::env::vars_os()))?;
    let nodes = found.cluster.iter().flat_map(|cluster| &cluster.nodes);
    let is_node = given.is_some() || nodes.into_iter().any(|node| *node == name);
    found.node = is_node.then(|| name.clone());
    let config = parameters(found.cluster.as_ref(), &name)?;
    match asked::ask(&config).await {
        Ok(Answer::Status(status)) => take(*status, found),
        Ok(Answer::Refused { about, error }) => found.not_asked.push(format!(
            "the agent of this machine, {about}, which answers root and its own user: {error}"
        )),
        Ok(Answer::Absent) if is_node => {
            let reason =
                "no agent enforces policy on this machine; start `tortie up` or `tortie agent`";
            found.add_problem("node", &name, reason);
        }
        Ok(Answer::Absent) if found.cluster.is_some() => found
            .notes
            .push(format!("this machine, {name}, is no node of the cluster")),
        Ok(Answer::Absent) => {}
        Err(error) => found
            .not_asked
            .push(format!("who enforces policy on this machine: {error}")),
    }
    Ok(())
}

/// The parameters of this machine's agent, as far as they are known here.
fn parameters(cluster: Option<&Cluster>, node: &str) -> Result<Config> {
    let mut sources = Sources {
        environment: from_environment(std::env::vars_os()),
        file: parameter_file(PARAMETER_FILE.as_ref())?,
        ..Sources::default()
    };
    if let Some(cluster) = cluster {
        enforced::add_parameters(cluster.parameters(), node, &mut sources);
    }
    Ok(resolve(&sources).config)
}

fn take(status: NodeStatus, found: &mut Found) {
    found.node = Some(status.node.clone());
    found.problems.extend(status.problems.iter().cloned());
    for refused in &status.refused {
        let reason = format!(
            "the kernel refused it for IPv{}, and denies in its place: {}",
            refused.ip_version, refused.reason
        );
        found.add_problem(&refused.what, &refused.name, &reason);
    }
    for invalid in &status.invalid {
        let object = format!("{}({})", invalid.what, invalid.name);
        // The datastore's own reading may have found it already.
        if !found.problems.iter().any(|known| known.what == object) {
            found.problems.push(invalid.clone());
        }
    }
    let ineffective = status.without_effect.iter().map(ToString::to_string);
    found.notes.extend(ineffective);
    found.agent = Some(status);
}
