//! The way of a route from node to node: told, perhaps reflected, and taken by the node that asks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ipnet::IpNet;

use super::answer::Learnt;
use super::decision::{By, export, import};
use super::holding::Holding;
use super::route::{Route, Source};
use super::{session, words};
use crate::doctor::{End, Finding, disagreements};
use crate::plan::{Community, NextHop, Origin, Peer, Plan};
use crate::{Cluster, Family, Reason};

/// How many nodes may be on the ways that are looked at.
const MAX_NODES: usize = 200;

/// What BIRD takes for the preference of what a peer of another AS tells.
const DEFAULT_PREFERENCE: u32 = 100;

/// RFC 1997: such a route is told to nobody, or to nobody outside of the AS.
const NO_ADVERTISE: Community = Community::Standard(0xffff, 0xff02);
const NO_EXPORT: Community = Community::Standard(0xffff, 0xff01);

/// A route on its way.
struct At {
    node: Arc<str>,
    route: Route,
    /// The session by which it came, if it came by one.
    by: Option<Peer>,
    way: Vec<String>,
}

/// What reaches the node that asks.
pub(super) struct Spread {
    to: String,
    plan: Plan,
    plans: BTreeMap<Arc<str>, Plan>,
    learnt: Vec<Learnt>,
}

impl Spread {
    pub(super) fn new(to: &str, plan: Plan) -> Self {
        Self {
            to: to.to_owned(),
            plan,
            plans: BTreeMap::new(),
            learnt: Vec::new(),
        }
    }

    /// Follows the routes of a node that has the prefix.
    pub(super) fn follow(&mut self, cluster: &mut Cluster, holder: &Arc<str>, network: IpNet) {
        let plan = cluster.plan(holder);
        let holding = Holding::new(cluster, holder, &plan, network);
        self.plans.insert(Arc::clone(holder), plan);
        if holding.routes.is_empty() {
            let reason = holding.lacks.first().cloned();
            let reason =
                reason.unwrap_or_else(|| Reason::new(format!("{holder} has no such route")));
            self.note(holder, vec![holder.to_string()], None, Some(false), reason);
            return;
        }
        let starts = holding.routes.into_iter().map(|held| At {
            node: Arc::clone(holder),
            route: held.route,
            by: None,
            way: vec![holder.to_string()],
        });
        let mut waiting: VecDeque<At> = starts.collect();
        let mut seen = vec![Arc::clone(holder)];
        while let Some(at) = waiting.pop_front() {
            if !self.plans.contains_key(&at.node) {
                let plan = cluster.plan(&at.node);
                self.plans.insert(Arc::clone(&at.node), plan);
            }
            let next = self.pass_on(cluster, &at, &mut seen);
            waiting.extend(next);
        }
    }

    /// Tells all peers of a node that may tell the one that asks; gives those that go on with it.
    fn pass_on(&mut self, cluster: &mut Cluster, at: &At, seen: &mut Vec<Arc<str>>) -> Vec<At> {
        let family = Family::of_network(at.route.network);
        let plan = &self.plans[&at.node];
        let mut next = Vec::new();
        let mut notes = Vec::new();
        for peer in &plan.family(family).peers {
            let Some(name) = cluster.node_at(peer.address).cloned() else {
                continue;
            };
            let is_goal = *name == *self.to;
            let goes_on = cluster.goes_on(&name) || !plan.is_internal(peer);
            if !is_goal && (!goes_on || seen.contains(&name) || seen.len() >= MAX_NODES) {
                continue;
            }
            let sent = send(plan, peer, at);
            if is_goal {
                let (is_learnt, session, reason, route) =
                    take(&self.plan, plan, peer, sent, cluster, family);
                notes.push((at.way.clone(), session, is_learnt, reason, route));
                continue;
            }
            if sent.0.is_none() {
                continue;
            }
            let other = cluster.plan(&name);
            let (is_taken, _, _, route) = take(&other, plan, peer, sent, cluster, family);
            if let (true, Some(route)) = (is_taken, route) {
                let back = back(&other, plan, family).cloned();
                let mut way = at.way.clone();
                way.push(name.to_string());
                seen.push(Arc::clone(&name));
                next.push(At {
                    node: name,
                    route,
                    by: back,
                    way,
                });
            }
        }
        let from = Arc::clone(&at.node);
        for (way, session, is_learnt, reason, route) in notes {
            self.note(&from, way, session, Some(is_learnt), reason);
            if let Some(last) = self.learnt.last_mut() {
                last.route = route;
            }
        }
        next
    }

    fn note(
        &mut self,
        from: &str,
        way: Vec<String>,
        session: Option<String>,
        is_learnt: Option<bool>,
        reason: Reason,
    ) {
        self.learnt.push(Learnt {
            from: from.to_owned(),
            session,
            way,
            is_learnt,
            reason,
            route: None,
        });
    }

    /// All that was found, those that are learnt first; if it is nothing, why.
    pub(super) fn finish(
        mut self,
        cluster: &mut Cluster,
        family: Family,
        holders: &[Arc<str>],
    ) -> (Plan, Vec<Learnt>) {
        let is_learnt = self.learnt.iter().any(|one| one.is_learnt == Some(true));
        if !is_learnt {
            self.note_no_sessions(cluster, family, holders);
            self.note_routers(cluster, family);
        }
        self.learnt.sort_by_key(|one| one.is_learnt != Some(true));
        (self.plan, self.learnt)
    }

    fn note_no_sessions(&mut self, cluster: &mut Cluster, family: Family, holders: &[Arc<str>]) {
        for holder in holders {
            if self.learnt.iter().any(|one| *one.from == **holder) {
                continue;
            }
            let inputs = cluster.inputs_of_sessions(&self.plan.node);
            let reason = session::between(inputs, &self.plan, holder, family);
            self.note(holder, vec![holder.to_string()], None, Some(false), reason);
        }
    }

    /// Routers may tell what they like.
    fn note_routers(&mut self, cluster: &Cluster, family: Family) {
        let peers = &self.plan.family(family).peers;
        let routers: Vec<(String, String)> = peers
            .iter()
            .filter(|peer| cluster.node_at(peer.address).is_none())
            .map(|peer| (peer.address.to_string(), peer.name.clone()))
            .collect();
        for (address, session) in routers {
            let reason = Reason::new(
                "it is no node: what it tells is not known from these objects",
            )
            .remedy("ask on the machine itself, without -f: BIRD there knows what it has learnt");
            self.note(&address, vec![address.clone()], Some(session), None, reason);
        }
    }
}

impl Cluster {
    /// Whether a node tells peers of its AS what others of it have told.
    fn goes_on(&self, node: &str) -> bool {
        let facts = self.all().nodes.get(node);
        facts.is_some_and(|facts| facts.session.cluster_id.is_some())
    }
}

/// The route as a peer gets it, or none, with what decided.
fn send(plan: &Plan, peer: &Peer, at: &At) -> (Option<Route>, Reason) {
    let by = at.by.as_ref();
    if let Some(reason) = by.and_then(|by| not_relayed(plan, peer, by, &at.route)) {
        return (None, reason);
    }
    let decision = export(plan, peer, at.route.clone());
    let reason = words::exported(plan, peer, &decision, at.route.network);
    let sent = decision.route.map(|route| received(plan, peer, route));
    (sent, reason)
}

/// What a peer gets of a route.
fn received(plan: &Plan, peer: &Peer, mut route: Route) -> Route {
    let own = plan.family(Family::of_network(route.network)).address;
    let is_internal = plan.is_internal(peer);
    route.next_hop = match peer.next_hop {
        NextHop::Own => own,
        NextHop::Keep => route.next_hop.or(own),
        NextHop::Auto => route.next_hop.filter(|_| is_internal).or(own),
    };
    if !is_internal {
        let number = peer.local_as.unwrap_or(plan.as_number);
        route.as_path.insert(0, number);
        route.local_preference = Some(DEFAULT_PREFERENCE);
    }
    Route {
        next_hop: route.next_hop,
        local_preference: route.local_preference,
        as_path: route.as_path,
        communities: route.communities,
        ..Route::new(route.network, Source::Bgp)
    }
}

/// Why a route of one peer is not told to another (RFC 4456, RFC 1997).
fn not_relayed(plan: &Plan, to: &Peer, by: &Peer, route: &Route) -> Option<Reason> {
    if to.name == by.name {
        return Some(Reason::new(
            "a route is not told to whom it was learnt from",
        ));
    }
    let is_inside = plan.is_internal(to) && plan.is_internal(by);
    if is_inside && to.reflects.is_none() && by.reflects.is_none() {
        let node = &*plan.node;
        let text = format!(
            "{node} has it from a peer of its own AS, and tells such routes to no other one: it is a route reflector of neither"
        );
        let reason = Reason::new(text)
            .of(Origin::new(
                "Node",
                node,
                "spec.bgp.routeReflectorClusterID",
            ))
            .remedy("make it a route reflector, or let both nodes have a session");
        return Some(reason);
    }
    let is_forbidden = |community| route.communities.contains(&community);
    (is_forbidden(NO_ADVERTISE) || !plan.is_internal(to) && is_forbidden(NO_EXPORT)).then(|| {
        Reason::new("a community of the route forbids it (RFC 1997)")
            .remedy("another community in spec.prefixAdvertisements or in the filter that adds it")
    })
}

/// The session of a node with another, as it plans it.
fn back<'a>(plan: &'a Plan, other: &Plan, family: Family) -> Option<&'a Peer> {
    let address = other.family(family).address;
    let mut peers = plan.family(family).peers.iter();
    peers.find(|peer| Some(peer.address) == address)
}

/// Why another node does not have the session that this one plans with it.
pub(super) fn refused(cluster: &mut Cluster, plan: &Plan, peer: &Peer) -> Option<Reason> {
    let other = cluster.node_at(peer.address).cloned()?;
    let family = Family::of(peer.address);
    let theirs = cluster.plan(&other);
    let Some(back) = back(&theirs, plan, family) else {
        let inputs = cluster.inputs_of_sessions(&other);
        return Some(session::between(inputs, &theirs, &plan.node, family));
    };
    disagreement(plan, peer, &theirs, back)
}

/// What keeps both from having the session.
fn disagreement(plan: &Plan, peer: &Peer, other: &Plan, back: &Peer) -> Option<Reason> {
    let (a, b) = (End::new(plan, peer)?, End::new(other, back)?);
    let mut wrong = disagreements(&a, &b).into_iter();
    wrong.find(Finding::is_error).map(|finding| finding.reason)
}

type Taken = (bool, Option<String>, Reason, Option<Route>);

/// Whether a node takes what another sends.
fn take(
    plan: &Plan,
    from: &Plan,
    peer: &Peer,
    (sent, reason): (Option<Route>, Reason),
    cluster: &mut Cluster,
    family: Family,
) -> Taken {
    let Some(back) = back(plan, from, family) else {
        let inputs = cluster.inputs_of_sessions(&plan.node);
        let reason = session::between(inputs, plan, &from.node, family);
        return (false, None, reason, None);
    };
    let name = Some(back.name.clone());
    if let Some(reason) = disagreement(plan, back, from, peer) {
        return (false, name, reason, None);
    }
    let Some(route) = sent else {
        return (false, name, reason, None);
    };
    let own = [back.local_as.unwrap_or(plan.as_number), plan.as_number];
    let count = |number: u32| route.as_path.iter().filter(|of| **of == number).count();
    let allowed = back.allowed_local_as.unwrap_or(0) as usize;
    if let Some(number) = own.into_iter().find(|number| count(*number) > allowed) {
        let reason = Reason::new(format!(
            "its path has the node's own AS number {number}, so that it is taken for a loop"
        ))
        .of(Origin::new(
            back.origin.kind,
            Arc::clone(&back.origin.name),
            "spec.numAllowedLocalASNumbers",
        ))
        .value(allowed)
        .remedy("how often it may be in a path, or another AS number for each node");
        return (false, name, reason, None);
    }
    let decision = import(plan, back, route);
    if let By::Rule(_) = decision.by {
        let reason = words::imported(plan, back, &decision);
        return (decision.is_accepted(), name, reason, decision.route);
    }
    (true, name, reason, decision.route)
}
