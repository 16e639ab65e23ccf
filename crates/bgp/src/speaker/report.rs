//! What is to be said of the work, for people and programs: a file beside BIRD's socket, metrics, the log.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tortie_error::Causes;
use tortie_sync::Status;

use super::feed::Feed;
use crate::{Plan, Problem, bird};

/// The name of the file.
const FILE: &str = "bgp-status.json";

/// What is to be said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    pub node: String,
    /// The process that wrote this.
    pub process: u32,
    /// The node has left: nothing is announced before it is back.
    pub has_left: bool,
    /// Everything has been read, and changes are heard of.
    pub in_sync: bool,
    /// What the datastore does not let us read.
    pub refusals: Vec<String>,
    /// Objects whose newest version cannot be read.
    pub unreadable: Vec<String>,
    /// What was left out, and why.
    pub problems: Vec<String>,
    /// The version of the BIRD that runs, if this process runs one.
    pub bird: Option<String>,
    /// How many sessions there are to be, by IP version.
    pub sessions: [usize; 2],
    /// When BIRD last took a new configuration, in seconds of Unix.
    pub configured_at: Option<u64>,
    /// Why the newest configuration is not in force.
    pub failure: Option<String>,
    pub configurations: u64,
    pub failures: u64,
}

/// What became of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It says what is in force already.
    Unchanged,
    /// It is in force, or BIRD will start with it. These sessions have not come back so far.
    InForce { missing: Vec<String> },
    /// All sessions broke with it and none came back, so what was before is in force.
    Undone { lost: Vec<String> },
}

impl Report {
    pub(super) fn new(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            process: std::process::id(),
            ..Self::default()
        }
    }

    /// That of the speaker whose files are in a folder, if there is one.
    pub fn read(folder: &Path) -> std::io::Result<Option<Self>> {
        match std::fs::read(folder.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether it is of another process than this one, which still runs.
    pub fn is_of_another(&self) -> bool {
        self.process != std::process::id() && self.is_of_living()
    }

    /// Whether who wrote it still runs.
    pub fn is_of_living(&self) -> bool {
        let line = std::fs::read(format!("/proc/{}/cmdline", self.process)).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).skip(1);
        words.any(|word| word == b"bgp" || word == b"up")
    }

    /// That of a process that cannot even begin.
    pub fn of_failure(node: &str, failure: String) -> Self {
        Self {
            failure: Some(failure),
            ..Self::new(node)
        }
    }

    pub fn write(&self, folder: &Path) {
        let path = folder.join(FILE);
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        if let Err(error) = tortie_files::replace(&path, text, tortie_files::PUBLIC) {
            tracing::warn!(path = %path.display(), error = %Causes(&error), "The status cannot be written");
        }
    }

    pub(super) fn take_feed(&mut self, feed: &Feed) {
        self.in_sync = feed.status() == Status::InSync;
        self.refusals = feed.refusals().to_vec();
        let unreadable: Vec<&Problem> = feed.unreadable().collect();
        self.unreadable = told(&self.unreadable, &unreadable);
    }

    pub(super) fn take_problems(&mut self, problems: &[Problem]) {
        let problems: Vec<&Problem> = problems.iter().collect();
        self.problems = told(&self.problems, &problems);
    }

    pub(super) fn take_outcome(&mut self, plan: &Plan, outcome: Outcome) {
        self.sessions = crate::Family::BOTH.map(|family| plan.family(family).peers.len());
        match outcome {
            Outcome::Unchanged => self.failure = None,
            Outcome::InForce { missing } => {
                self.failure = None;
                self.configurations += 1;
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                self.configured_at = now.ok().map(|now| now.as_secs());
                tracing::info!(sessions = ?self.sessions, ?missing, "A new configuration is in force");
            }
            Outcome::Undone { lost } => {
                self.failures += 1;
                tracing::error!(
                    ?lost,
                    "A new configuration broke all sessions and was taken back"
                );
                self.failure = Some(format!(
                    "the newest configuration broke all sessions ({}) and was taken back; the one before is in force",
                    lost.join(", ")
                ));
            }
        }
    }

    pub(super) fn take_failure(&mut self, error: &bird::Error) {
        self.failures += 1;
        self.failure = Some(Causes(error).to_string());
    }

    /// In the text form of `OpenMetrics`.
    pub fn metrics(&self) -> String {
        let mut out = String::new();
        let mut add = |name: &str, kind: &str, help: &str, value: u64| {
            let end = if kind == "counter" { "_total" } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{end} {value}\n"
            );
        };
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let [v4, v6] = self.sessions;
        add(
            "tortie_bgp_in_sync",
            "gauge",
            "Whether the datastore is followed",
            self.in_sync.into(),
        );
        add(
            "tortie_bgp_sessions_ipv4",
            "gauge",
            "BGP sessions that are configured for IPv4",
            count(v4),
        );
        add(
            "tortie_bgp_sessions_ipv6",
            "gauge",
            "BGP sessions that are configured for IPv6",
            count(v6),
        );
        add(
            "tortie_bgp_problems",
            "gauge",
            "Objects or fields that are left out",
            count(self.problems.len() + self.unreadable.len()),
        );
        add(
            "tortie_bgp_configurations",
            "counter",
            "Configurations that BIRD took",
            self.configurations,
        );
        add(
            "tortie_bgp_configuration_failures",
            "counter",
            "Configurations that did not come into force",
            self.failures,
        );
        add(
            "tortie_bgp_configuration_refused",
            "gauge",
            "Whether the newest configuration is not in force",
            self.failure.is_some().into(),
        );
        out.push_str("# EOF\n");
        out
    }
}

/// The problems as texts. Those that were not known are logged.
fn told(known: &[String], problems: &[&Problem]) -> Vec<String> {
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let problems = problems.iter().map(|problem| {
        let text = problem.to_string();
        if !known.contains(&*text) {
            let Problem {
                kind,
                name,
                field,
                reason,
            } = problem;
            tracing::warn!(%kind, %name, %field, %reason, "An object is not as it should be");
        }
        text
    });
    problems.collect()
}
