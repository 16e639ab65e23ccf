//! Both sides of a session, and what they do not agree about.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use super::Finding;
use crate::plan::{Origin, Peer, PeerKind, Plan};
use crate::{Family, Reason};

/// The port of RFC 4271.
const PORT: u16 = 179;

/// One side of a session.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    pub node: &'a str,
    pub address: IpAddr,
    /// What it calls itself in this session.
    pub as_number: u32,
    /// Whether that is of this session alone.
    is_local_as: bool,
    pub listen_port: u16,
    /// The other side, as this one sees it.
    pub peer: &'a Peer,
}

impl<'a> End<'a> {
    /// None where the node has no address for it.
    pub fn new(plan: &'a Plan, peer: &'a Peer) -> Option<Self> {
        let of_family = plan.family(Family::of(peer.address));
        Some(Self {
            node: &plan.node,
            address: of_family.address?,
            as_number: peer.local_as.unwrap_or(plan.as_number),
            is_local_as: peer.local_as.is_some(),
            listen_port: of_family.listen_port.unwrap_or(PORT),
            peer,
        })
    }

    /// A field of the object that asks for the session; of a node where that is the mesh.
    fn field(&self, field: &'static str, of_mesh: &'static str) -> Origin {
        let Origin { kind, name, .. } = &self.peer.origin;
        let field = if self.is_mesh() { of_mesh } else { field };
        Origin::new(kind, Arc::clone(name), Cow::Borrowed(field))
    }

    fn is_mesh(&self) -> bool {
        self.peer.kind == PeerKind::Mesh
    }

    /// Where this side connects to.
    fn asked_port(&self) -> u16 {
        self.peer.port.unwrap_or(PORT)
    }
}

/// What keeps both sides of a session from having it, or may do so.
pub fn disagreements(a: &End, b: &End) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(wrong_as(a, b));
    findings.extend(wrong_as(b, a));
    passive(a, b, &mut findings);
    ports(a, b, &mut findings);
    password(a, b, &mut findings);
    ttl(a, b, &mut findings);
    for (one, other) in [(a, b), (b, a)] {
        findings.extend(source(one, other));
    }
    let nodes = [a.node, b.node];
    findings
        .into_iter()
        .map(|finding| finding.on(nodes))
        .collect()
}

/// What the one takes for the other's AS number is not that.
fn wrong_as(a: &End, b: &End) -> Option<Finding> {
    let (expected, told) = (a.peer.as_number, b.as_number);
    if expected == told {
        return None;
    }
    let (one, other) = (a.node, b.node);
    let (origin, remedy) = if a.is_mesh() && !b.is_local_as {
        let remedy = format!(
            "each node's own spec.bgp.asNumber, or none of any: who has one takes it for that of nodes without one; {told} for {other}"
        );
        (Origin::new("Node", other, "spec.bgp.asNumber"), remedy)
    } else if b.is_local_as {
        let remedy = format!("{told} on the side of {one}, or spec.localASNumber: {expected} here");
        (b.field("spec.localASNumber", "spec.bgp.asNumber"), remedy)
    } else {
        let remedy =
            format!("{told}, which {other} has; or spec.bgp.asNumber: {expected} in Node({other})");
        (a.field("spec.asNumber", "spec.bgp.asNumber"), remedy)
    };
    let text = format!(
        "{one} expects the AS number {expected} of {other}, which says {told}: the session is refused"
    );
    Some(Finding::error(
        Reason::new(text)
            .of(origin)
            .value(if b.is_local_as { told } else { expected })
            .remedy(remedy),
    ))
}

fn passive(a: &End, b: &End, findings: &mut Vec<Finding>) {
    if a.peer.is_passive && b.peer.is_passive {
        let text = format!(
            "{} and {} both wait for the other to open the session",
            a.node, b.node
        );
        findings.push(Finding::error(
            Reason::new(text)
                .of(a.peer.origin.clone())
                .remedy("peers of different kinds wait for different sides: one BGPPeer for both, with nodeSelector and peerSelector"),
        ));
    }
}

fn ports(a: &End, b: &End, findings: &mut Vec<Finding>) {
    let opens =
        |one: &End, other: &End| !one.peer.is_passive && one.asked_port() == other.listen_port;
    let comes_up = opens(a, b) || opens(b, a);
    for (one, other) in [(a, b), (b, a)] {
        let (asked, listens) = (one.asked_port(), other.listen_port);
        if one.peer.is_passive || asked == listens {
            continue;
        }
        let text = format!(
            "{} connects to port {asked} of {}, which listens on {listens}",
            one.node, other.node
        );
        let reason = Reason::new(text)
            .of(one.field("spec.peerIP", "spec.listenPort"))
            .value(
                one.peer
                    .port
                    .map_or("no port".to_owned(), |port| port.to_string()),
            )
            .remedy(format!("{}", SocketText(one.peer.address, listens)));
        findings.push(if comes_up {
            Finding::warning(reason)
        } else {
            Finding::error(reason)
        });
    }
}

/// `192.0.2.1:1179`, `[2001:db8::1]:1179`
struct SocketText(IpAddr, u16);

impl std::fmt::Display for SocketText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::net::SocketAddr::new(self.0, self.1).fmt(f)
    }
}

fn password(a: &End, b: &End, findings: &mut Vec<Finding>) {
    let text = match (&a.peer.password, &b.peer.password) {
        (None, None) => return,
        (Some(one), Some(other)) if one == other => return,
        (Some(_), Some(_)) => format!("{} and {} sign with different passwords", a.node, b.node),
        (Some(_), None) => format!("{} signs with a password, and {} does not", a.node, b.node),
        (None, Some(_)) => format!("{} signs with a password, and {} does not", b.node, a.node),
    };
    let with = if a.peer.password.is_some() { a } else { b };
    findings.push(Finding::error(
        Reason::new(text)
            .of(with.field("spec.password", "spec.nodeMeshPassword"))
            .remedy("the same secretKeyRef on both sides"),
    ));
}

fn ttl(a: &End, b: &End, findings: &mut Vec<Finding>) {
    let (with, without) = match (a.peer.ttl_security, b.peer.ttl_security) {
        (Some(_), None) => (a, b),
        (None, Some(_)) => (b, a),
        _ => return,
    };
    let hops = with.peer.ttl_security.unwrap_or_default();
    let text = format!(
        "{} drops packets whose TTL is not that of a sender {hops} hop(s) away, and {} does not send such",
        with.node, without.node
    );
    findings.push(Finding::error(
        Reason::new(text)
            .of(with.field("spec.ttlSecurity", "spec.bgp"))
            .value(hops)
            .remedy("spec.ttlSecurity on both sides, or on none"),
    ));
}

/// The other side knows only the node's own address.
fn source(one: &End, other: &End) -> Option<Finding> {
    if one.peer.source.is_some() {
        return None;
    }
    let text = format!(
        "{} starts the session from whatever address its routes give, and {} takes it from {} only",
        one.node, other.node, one.address
    );
    Some(Finding::warning(
        Reason::new(text)
            .of(one.field("spec.sourceAddress", "spec.bgp"))
            .value("None")
            .remedy("UseNodeIP, unless the node has but one address"),
    ))
}
