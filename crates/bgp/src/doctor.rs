//! What is wrong with sessions, over all nodes: each with object, field, value, and what would be right.
//!
//! The mesh is looked at as one; of the sessions that `BGPPeer`s ask for, both sides are compared.

mod nodes;
mod pair;
mod reflectors;
mod sessions;

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

pub use pair::{End, disagreements};

use crate::plan::{Peer, PeerKind, Plan};
use crate::{Cluster, Family, PerFamily, Reason};

/// How much is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something that is asked for is not so.
    Error,
    /// Something is not as it should be, and may do no harm.
    Warning,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub severity: Severity,
    #[serde(flatten)]
    pub reason: Reason,
    /// The nodes that have it; none where all have.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub nodes: BTreeSet<String>,
}

impl Finding {
    /// Something that keeps what is asked for from being so.
    pub fn error(reason: Reason) -> Self {
        Self {
            severity: Severity::Error,
            reason,
            nodes: BTreeSet::new(),
        }
    }

    /// Something that may do no harm.
    pub fn warning(reason: Reason) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(reason)
        }
    }

    /// Which these nodes have.
    #[must_use]
    pub fn on(mut self, nodes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.nodes.extend(nodes.into_iter().map(Into::into));
        self
    }

    /// Whether something that is asked for is not so.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    fn concerns(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.contains(node)
    }
}

/// What is looked at of a node's plan.
struct Examined {
    node: String,
    /// Sessions that `BGPPeer`s ask for.
    sessions: Vec<Peer>,
    /// How many sessions of the mesh there are.
    mesh: PerFamily<usize>,
    /// The plan without its sessions.
    plan: Plan,
}

/// Looks at all nodes, and tells what concerns this one, or everything.
pub fn examine(cluster: &mut Cluster, node: Option<&str>) -> Vec<Finding> {
    let names: Vec<String> = cluster.nodes().map(ToString::to_string).collect();
    let examined: Vec<Examined> = names
        .into_iter()
        .map(|name| Examined::new(cluster, name))
        .collect();
    let mut findings = Vec::new();
    nodes::examine(cluster, &examined, &mut findings);
    sessions::examine(cluster, &examined, &mut findings);
    reflectors::examine(cluster, &examined, &mut findings);
    let mut findings = joined(findings);
    if let Some(node) = node {
        findings.retain(|finding| finding.concerns(node));
    }
    findings
}

/// The same on several nodes is one finding; errors come first.
fn joined(findings: Vec<Finding>) -> Vec<Finding> {
    let mut joined: Vec<Finding> = Vec::new();
    let mut known = HashMap::new();
    for finding in findings {
        let key = (finding.severity, finding.reason.to_string());
        let index = *known.entry(key).or_insert(joined.len());
        if let Some(first) = joined.get_mut(index) {
            first.nodes.extend(finding.nodes);
        } else {
            joined.push(finding);
        }
    }
    joined.sort_by_key(|finding| finding.severity);
    joined
}

impl Examined {
    fn new(cluster: &mut Cluster, node: String) -> Self {
        let mut plan = Plan::new(cluster.inputs_of_sessions(&node));
        let mut sessions = Vec::new();
        let mut mesh = PerFamily::default();
        for family in Family::BOTH {
            let peers = std::mem::take(&mut plan.families.get_mut(family).peers);
            for peer in peers {
                if peer.kind == PeerKind::Mesh {
                    *mesh.get_mut(family) += 1;
                } else {
                    sessions.push(peer);
                }
            }
        }
        Self {
            node,
            sessions,
            mesh,
            plan,
        }
    }

    fn end<'a>(&'a self, peer: &'a Peer) -> Option<End<'a>> {
        End::new(&self.plan, peer)
    }

    fn count_sessions(&self) -> usize {
        self.sessions.len() + self.mesh.v4 + self.mesh.v6
    }

    fn is_reflector(&self) -> bool {
        self.plan.cluster_id.is_some()
    }
}
