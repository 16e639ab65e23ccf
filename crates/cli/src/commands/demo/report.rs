//! What happened, for programs.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use tortie_engine::verdict::Outcome;
use tortie_why::Answer;

use super::cast::{CAST, Cell, IpVersion, Protocol};
use super::script::Change;
use crate::args::{Demo, DemoDataplane};
use crate::commands::why;

/// All that happened.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) dataplane: &'static str,
    /// Whether it ran among users of its own, without root's rights.
    pub(super) own_users: bool,
    pub(super) ready_after_ms: f64,
    pub(super) pods: Vec<PodReport>,
    pub(super) steps: Vec<StepReport>,
    pub(super) why: Vec<Explanation>,
    /// How many connections were tried.
    pub(super) probes: usize,
    /// How many of them were possible exactly if they had to be.
    pub(super) as_expected: usize,
    /// For how many the engine's verdict was what packets showed.
    pub(super) verdicts_agree: usize,
    pub(super) seconds: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct PodReport {
    pub(super) name: String,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) interface: String,
    /// The port of its service over TCP.
    pub(super) port: u16,
}

/// What happened in one step.
#[derive(Debug, Serialize)]
pub(super) struct StepReport {
    pub(super) title: &'static str,
    pub(super) changes: Vec<ChangeReport>,
    pub(super) cells: Vec<CellReport>,
}

/// A change, and when packets showed it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeReport {
    pub(super) file: &'static str,
    pub(super) enforced_after_ms: f64,
    pub(super) shown_by: String,
    pub(super) opens: bool,
}

/// A connection.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CellReport {
    #[serde(skip)]
    pub(super) cell: Cell,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) protocol: Protocol,
    pub(super) port: u16,
    pub(super) ip_version: IpVersion,
    /// What must become of it.
    pub(super) expected: Outcome,
    /// What became of it.
    pub(super) packets: Outcome,
    /// What the engine says about it.
    pub(super) verdict: Outcome,
}

/// Why a connection is possible or not.
#[derive(Debug, Serialize)]
pub(super) struct Explanation {
    /// How to ask for it, if the datastore were not the demo's own.
    pub(super) command: String,
    pub(super) answer: Value,
    /// The same for people.
    #[serde(skip)]
    pub(super) text: Vec<u8>,
}

// === impl Report ===

impl Report {
    pub(super) fn new(args: &Demo, versions: &[IpVersion], ready: Duration) -> Self {
        let pods = CAST.iter().map(|role| PodReport {
            name: role.full_name(),
            addresses: role.addresses(versions),
            interface: role.interface(),
            port: role.port,
        });
        Self {
            dataplane: match args.dataplane {
                DemoDataplane::Nftables => "nftables",
                DemoDataplane::Iptables => "iptables",
            },
            own_users: args.inside.own_users,
            ready_after_ms: milliseconds(ready),
            pods: pods.collect(),
            steps: Vec::new(),
            why: Vec::new(),
            probes: 0,
            as_expected: 0,
            verdicts_agree: 0,
            seconds: 0.0,
        }
    }

    /// Counts, when all steps are there.
    pub(super) fn finish(&mut self, took: Duration) {
        let steps = || self.steps.iter();
        self.probes = steps().map(|step| step.cells.len()).sum();
        self.as_expected = steps().map(StepReport::as_expected).sum();
        self.verdicts_agree = steps().map(StepReport::verdicts_agree).sum();
        self.seconds = took.as_secs_f64();
    }

    /// Whether everything was as it must be.
    pub(super) fn is_right(&self) -> bool {
        self.as_expected == self.probes && self.verdicts_agree == self.probes
    }
}

// === impl StepReport ===

impl StepReport {
    pub(super) fn as_expected(&self) -> usize {
        let right = |cell: &&CellReport| cell.packets == cell.expected;
        self.cells.iter().filter(right).count()
    }

    pub(super) fn verdicts_agree(&self) -> usize {
        let agrees = |cell: &&CellReport| cell.packets == cell.verdict;
        self.cells.iter().filter(agrees).count()
    }
}

// === impl ChangeReport ===

impl ChangeReport {
    pub(super) fn new(change: &Change, took: Duration) -> Self {
        let cell = &change.shown_by;
        let (from, to) = (cell.source().name, cell.destination().name);
        let (protocol, port) = (cell.protocol.as_str(), cell.port());
        Self {
            file: change.file,
            enforced_after_ms: milliseconds(took),
            shown_by: format!("{protocol} {port} from {from} to {to}"),
            opens: change.opens,
        }
    }
}

// === impl CellReport ===

impl CellReport {
    pub(super) fn new(cell: &Cell, expected: bool, packets: bool, verdict: Outcome) -> Self {
        let outcome = |is_open| {
            if is_open {
                Outcome::Allow
            } else {
                Outcome::Deny
            }
        };
        Self {
            cell: *cell,
            from: cell.source().full_name(),
            to: cell.destination().full_name(),
            protocol: cell.protocol,
            port: cell.port(),
            ip_version: cell.version,
            expected: outcome(expected),
            packets: outcome(packets),
            verdict,
        }
    }
}

// === impl Explanation ===

impl Explanation {
    pub(super) fn new(cell: &Cell, answer: &Answer) -> Result<Self> {
        let (from, to) = (cell.source().full_name(), cell.destination().full_name());
        let (protocol, port) = (cell.protocol.as_str(), cell.port());
        let mut text = Vec::new();
        why::write(answer, &mut text)?;
        Ok(Self {
            command: format!("tortie why {from} {to} --protocol {protocol} --port {port}"),
            answer: serde_json::to_value(&answer.verdict)?,
            text,
        })
    }
}

fn milliseconds(duration: Duration) -> f64 {
    // More digits than this are noise.
    (duration.as_secs_f64() * 1e5).round() / 100.0
}
