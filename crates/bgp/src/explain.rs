//! Routes that explain themselves: whether a prefix is told, learnt and programmed, and if not, what is the reason.
//!
//! What is asked is the plan that is rendered, and of the inputs what the plan leaves out.
//!
//! ```text
//! Cluster ─▶ holder: routes of its own ─▶ export to each peer ─▶ (reflectors) ─▶ import by the node that asks ─▶ its kernel
//! ```
//!
//! # Invariants
//! - Pure, as inputs and plan are. A decision is the one that BIRD's filters make (`decision.rs`).

mod answer;
mod decision;
mod holding;
mod route;
mod session;
mod spread;
mod target;
mod words;

use std::sync::Arc;

use ipnet::IpNet;

pub use answer::{Answer, Learnt, NodeAnswer, Programmed, Told};
pub use decision::{By, Decision, export, import, program};
pub use route::{Route, Source};
pub use target::Target;

use crate::plan::{Peer, Plan};
use crate::{Cluster, Family, Reason};
use holding::Holding;
use spread::Spread;

/// How many nodes are looked at that tell all nodes' routes, such as ranges of services.
const MAX_HOLDERS: usize = 20;

/// Of how many peers that are nodes it is looked at whether they want the session too.
const MAX_COMPARED: usize = 50;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// About which destinations.
    pub target: Target,
    /// Of which node; none of those that have the prefix.
    pub node: Option<String>,
    /// Towards whom alone: a `BGPPeer`, a node, an address, or BIRD's name of a session.
    pub peer: Option<String>,
}

/// Answers a question. What is wrong with the question is the error.
pub fn explain(cluster: &mut Cluster, question: &Question) -> Result<Answer, String> {
    if let Some(node) = &question.node {
        cluster.check_node(node)?;
    }
    let (network, mut notes) = target::resolve(cluster, question);
    let asked = question.node.as_deref();
    let mut holders = match asked.filter(|asked| has_routes(cluster, asked, network)) {
        // What many tell is asked of this one alone.
        Some(asked) => vec![Arc::from(asked)],
        None => holding::holders(cluster, network),
    };
    if holders.len() > MAX_HOLDERS {
        holders.truncate(MAX_HOLDERS);
        notes.push("other nodes tell it as well: ask about each with --node".to_owned());
    }
    let mut answers = Vec::new();
    for holder in &holders {
        answers.push(of_holder(cluster, holder, network, question)?);
    }
    if let Some(asked) = asked.filter(|asked| holders.iter().all(|holder| **holder != **asked)) {
        answers.push(of_learner(cluster, asked, network, &holders, question)?);
        notes.extend(target::unknown_interfaces(&cluster.plan(asked), network));
    }
    notes.extend(target::notes(cluster, network, &holders));
    let nobody = holding::nobody(cluster, network);
    Ok(Answer::new(
        network,
        question,
        answers,
        nobody.first(),
        notes,
    ))
}

fn has_routes(cluster: &mut Cluster, node: &str, network: IpNet) -> bool {
    let plan = cluster.plan(node);
    let holding = Holding::new(cluster, node, &plan, network);
    !holding.routes.is_empty()
}

/// What a node that has the prefix tells its peers.
fn of_holder(
    cluster: &mut Cluster,
    node: &Arc<str>,
    network: IpNet,
    question: &Question,
) -> Result<NodeAnswer, String> {
    let family = Family::of_network(network);
    let plan = cluster.plan(node);
    let holding = Holding::new(cluster, node, &plan, network);
    let mut answer = NodeAnswer::new(node, true);
    answer.has = holding.reasons();
    answer.lacks.clone_from(&holding.lacks);
    let wanted = session::wanted(cluster, node, &plan, family, question.peer.as_deref())?;
    for (index, peer) in wanted.peers.iter().enumerate() {
        let mut told = told(cluster, &plan, peer, &holding);
        if told.is_told
            && index < MAX_COMPARED
            && let Some(reason) = spread::refused(cluster, &plan, peer)
        {
            told.refuse(reason);
        }
        answer.told.push(told);
    }
    answer.missing = wanted.missing;
    if answer.told.is_empty() && answer.missing.is_empty() {
        answer.missing.push(session::nobody(cluster, &plan, family));
    }
    answer.programmed = Some(words::own(&plan, &holding, network));
    Ok(answer)
}

fn told(cluster: &Cluster, plan: &Plan, peer: &Peer, holding: &Holding) -> Told {
    let mut first = None;
    for route in &holding.routes {
        let decision = export(plan, peer, route.route.clone());
        let reason = words::exported(plan, peer, &decision, route.route.network);
        if decision.route.is_some() {
            return Told::new(cluster, peer, decision.route.as_ref(), reason);
        }
        first.get_or_insert(reason);
    }
    let reason = first.or_else(|| holding.lacks.first().cloned());
    let reason = reason.unwrap_or_else(|| Reason::new("the node has no such route"));
    Told::new(cluster, peer, None, reason)
}

/// What a node learns of a prefix that others have.
fn of_learner(
    cluster: &mut Cluster,
    node: &str,
    network: IpNet,
    holders: &[Arc<str>],
    question: &Question,
) -> Result<NodeAnswer, String> {
    let family = Family::of_network(network);
    let plan = cluster.plan(node);
    let mut answer = NodeAnswer::new(node, false);
    let wanted = session::wanted(cluster, node, &plan, family, question.peer.as_deref())?;
    let mut spread = Spread::new(node, plan);
    for holder in holders {
        spread.follow(cluster, holder, network);
    }
    let (plan, mut learnt) = spread.finish(cluster, family, holders);
    if question.peer.is_some() {
        let is_wanted = |learnt: &Learnt| {
            let mut names = wanted.peers.iter().map(|peer| &peer.name);
            names.any(|name| learnt.session.as_ref() == Some(name))
        };
        learnt.retain(is_wanted);
        answer.missing = wanted.missing;
    }
    answer.programmed = Some(words::programmed(&plan, &learnt, network));
    answer.lacks = if holders.is_empty() {
        holding::nobody(cluster, network)
    } else {
        holding::of_services(cluster, node, &plan, network)
    };
    answer.learnt = learnt;
    Ok(answer)
}
