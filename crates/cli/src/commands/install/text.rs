//! What `install` tells people.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;
use serde_json::Value;
use tortie_error::Causes;
use tortie_install::apply::{self, Options, Outcome, Progress};
use tortie_install::cluster::Cluster;

use super::kind_of;

/// The kind of which there are so many that only changes are worth a line.
const MANY: &str = "CustomResourceDefinition";

/// One line on what was found.
pub(super) fn found(found: &Cluster) -> String {
    let nodes = match found.nodes {
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    };
    let mut text = format!("Kubernetes {}, {nodes}", found.version);
    if !found.pod_networks.is_empty() {
        let networks = found.pod_networks.iter().map(ToString::to_string);
        let networks: Vec<_> = networks.collect();
        let _ = write!(text, ", pods in {}", networks.join(" and "));
    }
    match &found.kube_proxy {
        Some(mode) => {
            let _ = write!(text, ", kube-proxy with {mode}");
        }
        None => text.push_str(", no kube-proxy that says what it works with"),
    }
    text.push('\n');
    if let Some(ours) = &found.installed {
        let _ = writeln!(text, "{} is there, of {}", ours, ours.image);
    }
    text
}

/// What became of objects.
#[derive(Debug, Default)]
pub(super) struct Tally {
    outcomes: Vec<Outcome>,
    failed: usize,
    unnamed: usize,
}

impl Tally {
    /// Stores objects, or tries it, and says so. An object that is refused does not hide the others.
    pub(super) async fn add(
        &mut self,
        client: &kube::Client,
        objects: &[Value],
        options: Options,
    ) -> Result<()> {
        for object in objects {
            let outcome = match apply::apply(client, object, options).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.failed += 1;
                    writeln!(anstream::stderr(), "failed     {}", Causes(&error))?;
                    continue;
                }
            };
            self.outcomes.push(outcome);
            let word = match outcome {
                Outcome::Created if kind_of(object) == MANY => {
                    self.unnamed += 1;
                    continue;
                }
                Outcome::Created => "created",
                Outcome::Changed => "changed",
                Outcome::Unchanged => continue,
            };
            writeln!(anstream::stdout(), "{word}    {}", apply::name_of(object))?;
        }
        if self.unnamed > 0 {
            let unnamed = std::mem::take(&mut self.unnamed);
            writeln!(
                anstream::stdout(),
                "created    {unnamed} definitions of custom resources"
            )?;
        }
        Ok(())
    }

    pub(super) fn count(&self, which: Outcome) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| **outcome == which)
            .count()
    }

    /// Says how many there were. Gives whether none was refused.
    pub(super) fn finish(self, is_dry_run: bool) -> Result<bool> {
        let [created, changed, unchanged] =
            [Outcome::Created, Outcome::Changed, Outcome::Unchanged].map(|which| self.count(which));
        let would = if is_dry_run { "would be " } else { "" };
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        writeln!(
            anstream::stdout(),
            "{created} objects {would}created, {changed} changed, {unchanged} as they were{failed}"
        )?;
        Ok(self.failed == 0)
    }
}

/// On stderr, since it is no result.
pub(super) fn tell_progress(progress: &Progress) {
    // Nobody needs it who does not read it.
    let _ = writeln!(anstream::stderr(), "Waiting: {}", progress.missing());
}

pub(super) fn ready(progress: &Progress) -> String {
    match progress.nodes {
        None | Some(0) => "Installed; there are no nodes for it yet.".to_owned(),
        Some(1) => "The node enforces policy, and the controllers run.".to_owned(),
        Some(nodes) => format!("All {nodes} nodes enforce policy, and the controllers run."),
    }
}

pub(super) fn where_to_look(namespace: &str) -> String {
    format!("it is stored, and not ready: kubectl -n {namespace} describe pods tells why")
}
