//! What is answered, for people and programs.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use serde::Serialize;

use super::{Question, Route};
use crate::plan::{Origin, Peer};
use crate::{Cluster, Reason};

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// What it is about.
    pub prefix: IpNet,
    /// Whether the prefix is advertised, or learnt and programmed, wherever that was asked.
    pub is_well: bool,
    /// That in a line.
    pub verdict: String,
    /// What each node has to do with it.
    pub nodes: Vec<NodeAnswer>,
    /// What is to be known besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a node has to do with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAnswer {
    pub node: String,
    /// The node has it, or a claim on it: it is not learnt from others.
    pub is_holder: bool,
    /// The routes that its BIRD has from itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub has: Vec<Reason>,
    /// Why it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Reason>,
    /// Its sessions, and whether the peer is told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Told>,
    /// Why there are no more sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Reason>,
    /// From whom it learns the prefix, or why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learnt: Vec<Learnt>,
    /// Whether its kernel gets a route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programmed: Option<Programmed>,
}

/// Whether a peer is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// BIRD's name of the session.
    pub session: String,
    pub peer: IpAddr,
    /// The node that the peer is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_node: Option<String>,
    /// The object that asks for the session.
    pub origin: Origin,
    pub is_told: bool,
    /// What decides.
    pub reason: Reason,
    /// Communities that the route has then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub communities: Vec<String>,
    /// Its metric, where it is not that of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<u32>,
}

/// What a node learns from one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Learnt {
    /// The node or address that tells it, or would.
    pub from: String,
    /// The session, as BIRD of the node that learns calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The nodes on the way, the one that has the prefix first.
    pub way: Vec<String>,
    /// None where that is not known from the objects.
    pub is_learnt: Option<bool>,
    /// What decides.
    pub reason: Reason,
    /// The route as it is taken.
    #[serde(skip)]
    pub(super) route: Option<Route>,
}

/// Whether and by whom a kernel gets a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Programmed {
    /// `BIRD`, `agent`, `kernel` or nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'static str>,
    /// None where that is not known from the objects.
    pub is_programmed: Option<bool>,
    /// What decides.
    pub reason: Reason,
}

impl NodeAnswer {
    pub(super) fn new(node: &str, is_holder: bool) -> Self {
        Self {
            node: node.to_owned(),
            is_holder,
            has: Vec::new(),
            lacks: Vec::new(),
            told: Vec::new(),
            missing: Vec::new(),
            learnt: Vec::new(),
            programmed: None,
        }
    }

    /// Whether all of it is so that packets find their way.
    pub fn is_well(&self) -> bool {
        if !self.is_holder {
            let programmed = self.programmed.as_ref();
            return programmed.is_some_and(|programmed| programmed.is_programmed == Some(true));
        }
        !self.told.is_empty()
            && self.missing.is_empty()
            && self.told.iter().all(|told| told.is_told)
    }

    /// How many peers are told.
    pub fn count_told(&self) -> usize {
        self.told.iter().filter(|told| told.is_told).count()
    }

    /// Whether it learns the prefix; none where that is not known.
    pub fn is_learnt(&self) -> Option<bool> {
        let mut learnt = self.learnt.iter().map(|one| one.is_learnt);
        if learnt.clone().any(|one| one == Some(true)) {
            Some(true)
        } else if learnt.any(|one| one.is_none()) {
            None
        } else {
            Some(false)
        }
    }

    /// In a line, after the prefix.
    fn verdict(&self) -> String {
        let node = &self.node;
        if self.is_holder {
            return match (self.count_told(), self.told.len()) {
                (0, _) => format!("is not advertised by {node}: {}", self.why_not_told()),
                (told, all) if told == all => {
                    let missing = if self.missing.is_empty() {
                        ""
                    } else {
                        ", and others have no session"
                    };
                    format!("is advertised by {node} to {}{missing}", peers(all))
                }
                (told, all) => format!("is advertised by {node} to {told} of {}", peers(all)),
            };
        }
        let programmed = self.programmed.as_ref();
        let (by, is_done) = programmed.map_or((None, None), |one| (one.by, one.is_programmed));
        let routed = match (by, is_done) {
            (Some(by), Some(true)) => format!("programmed by {by}"),
            (_, None) => "perhaps programmed".to_owned(),
            _ => "not programmed".to_owned(),
        };
        match self.is_learnt() {
            Some(true) => format!("is learnt by {node} and {routed}"),
            Some(false) if is_done == Some(true) => {
                format!("is not learnt by {node}, and {routed}")
            }
            Some(false) => format!("is not learnt by {node}: {}", self.why_not_learnt()),
            None => format!(
                "may be learnt by {node}: what routers tell is not known from these objects"
            ),
        }
    }

    fn why_not_told(&self) -> &str {
        let lacks = self.lacks.first();
        let refused = self.told.iter().map(|told| &told.reason).next();
        let reason = lacks.or(refused).or(self.missing.first());
        reason.map_or("it has no peers", |reason| &reason.text)
    }

    fn why_not_learnt(&self) -> &str {
        let refused = self.learnt.iter().map(|one| &one.reason);
        let reason = self.lacks.first().or(refused.into_iter().next());
        let reason = reason.or(self.missing.first());
        reason.map_or("nobody tells it", |reason| &reason.text)
    }
}

fn peers(count: usize) -> String {
    if count == 1 {
        "1 peer".to_owned()
    } else {
        format!("{count} peers")
    }
}

impl Told {
    pub(super) fn new(
        cluster: &Cluster,
        peer: &Peer,
        route: Option<&Route>,
        reason: Reason,
    ) -> Self {
        let node = cluster.node_at(peer.address);
        let communities = route.into_iter().flat_map(|route| &route.communities);
        Self {
            session: peer.name.clone(),
            peer: peer.address,
            peer_node: node.map(|node: &Arc<str>| node.to_string()),
            origin: peer.origin.clone(),
            is_told: route.is_some(),
            reason,
            communities: communities.map(ToString::to_string).collect(),
            metric: route.and_then(Route::metric_for_peers),
        }
    }

    /// There is no such session, and so nothing is told.
    pub(super) fn refuse(&mut self, reason: Reason) {
        self.is_told = false;
        self.reason = reason;
        self.communities.clear();
        self.metric = None;
    }
}

impl Answer {
    pub(super) fn new(
        prefix: IpNet,
        question: &Question,
        of_nodes: Vec<NodeAnswer>,
        nobody: Option<&Reason>,
        notes: Vec<String>,
    ) -> Self {
        let asked: Vec<&NodeAnswer> = match &question.node {
            Some(node) => of_nodes.iter().filter(|one| one.node == *node).collect(),
            None => of_nodes.iter().collect(),
        };
        let is_well = !asked.is_empty() && asked.iter().all(|one| one.is_well());
        let foremost = asked.iter().find(|one| !one.is_well()).or(asked.first());
        let verdict = if let Some(node) = foremost {
            format!("{prefix} {}", node.verdict())
        } else {
            let why = nobody.map_or("there are no nodes", |reason| &reason.text);
            format!("{prefix} is advertised by nobody: {why}")
        };
        Self {
            prefix,
            is_well,
            verdict,
            nodes: of_nodes,
            notes,
        }
    }
}
