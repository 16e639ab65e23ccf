//! What would have to change for the other answer.

use std::fmt::Write as _;

use tortie_engine::verdict::{By, Flow, Outcome, Point, Side, Verdict};

use tortie_why::Judged;

/// One side of a connection.
struct Stand<'a> {
    side: &'a Side,
    is_ingress: bool,
    /// Whose policies would have to change.
    who: String,
    /// The other end.
    peer: &'a str,
    /// Which packets.
    what: &'a str,
}

/// `To allow it: a policy in tier default for ingress of shop/db must allow TCP 5432 from shop/web`
pub(super) fn line(from: &str, to: &str, judged: &Judged) -> String {
    let what = what(&judged.connection.flow);
    let stands = stands(from, to, &what, &judged.verdict);
    match judged.outcome() {
        Outcome::Deny => {
            let denied = stands.iter();
            let denied = denied.filter(|stand| stand.side.verdict == Outcome::Deny);
            let needed: Vec<String> = denied.map(Stand::to_allow).collect();
            format!("To allow it: {}", needed.join("; and "))
        }
        Outcome::Allow => {
            // The nearer to the destination, the more usual.
            let mut stands = stands.iter().rev();
            let enough = stands.find_map(Stand::to_deny);
            let enough = enough.unwrap_or_else(|| {
                "policy applies to neither end: it takes a host endpoint, and a policy for that"
                    .to_owned()
            });
            format!("To deny it: {enough}")
        }
    }
}

fn stands<'a>(from: &'a str, to: &'a str, what: &'a str, verdict: &'a Verdict) -> Vec<Stand<'a>> {
    let stand = |side, is_ingress, who: String| Stand {
        side,
        is_ingress,
        who,
        peer: if is_ingress { from } else { to },
        what,
    };
    let mut all = vec![stand(&verdict.egress, false, from.to_owned())];
    for stage in &verdict.on_the_way {
        let endpoint = stage.side.endpoint.as_ref();
        let who = endpoint.map_or(stage.node.clone(), ToString::to_string);
        all.push(stand(&stage.side, stage.is_inbound, who));
    }
    all.push(stand(&verdict.ingress, true, to.to_owned()));
    all
}

impl Stand<'_> {
    /// `for ingress of shop/db`.
    fn for_whom(&self) -> String {
        let direction = if self.is_ingress { "ingress" } else { "egress" };
        let point = match self.side.by.point() {
            Point::Normal => "",
            Point::Untracked => " (doNotTrack)",
            Point::PreDnat => " (preDNAT)",
            Point::Forward => " (applyOnForward)",
        };
        format!("for {direction} of {}{point}", self.who)
    }

    /// `TCP 5432 from shop/web`.
    fn packets(&self) -> String {
        let word = if self.is_ingress { "from" } else { "to" };
        format!("{} {word} {}", self.what, self.peer)
    }

    fn to_allow(&self) -> String {
        let (whom, packets) = (self.for_whom(), self.packets());
        match &self.side.by {
            By::EndOfTier { tier, .. } => {
                format!("a policy in tier {tier} {whom} must allow {packets}")
            }
            By::Rule {
                tier, policy, rule, ..
            } => {
                let policy = policy.full_name();
                format!(
                    "rule {rule} of {policy} must not deny it, or a policy before it in tier {tier} {whom} must allow {packets}"
                )
            }
            By::Profile { profile, rule, .. } => format!(
                "rule {rule} of profile {profile} must not deny it, or a policy {whom} must allow {packets}"
            ),
            By::Denial { object, .. } => {
                format!("the kernel must get {object} as it is meant to be")
            }
            By::EndpointToHost { node, .. } => format!(
                "defaultEndpointToHostAction of node {node} must be Accept or Return (FelixConfiguration `default` or `node.{node}`)"
            ),
            By::NoProfile { .. }
            | By::Failsafe { .. }
            | By::NoEndpoint { .. }
            | By::OwnNode { .. } => format!("a policy {whom} must allow {packets}"),
        }
    }

    /// None where no policy can.
    fn to_deny(&self) -> Option<String> {
        let (whom, packets) = (self.for_whom(), self.packets());
        match &self.side.by {
            By::Rule {
                tier, policy, rule, ..
            } => {
                let policy = policy.full_name();
                Some(format!(
                    "rule {rule} of {policy} must not allow it, or a policy before it in tier {tier} {whom} must deny {packets}"
                ))
            }
            By::Profile { .. } => Some(format!(
                "a policy {whom} must apply, and not allow {packets}"
            )),
            By::Failsafe { port, .. } => {
                let list = if self.is_ingress {
                    "failsafeInboundHostPorts"
                } else {
                    "failsafeOutboundHostPorts"
                };
                Some(format!("{port} must leave {list}"))
            }
            By::EndpointToHost { node, .. } => Some(format!(
                "defaultEndpointToHostAction of node {node} must be Drop"
            )),
            By::OwnNode { .. } => {
                Some("nothing does, because a node always reaches its own pods".to_owned())
            }
            By::NoEndpoint { .. }
            | By::EndOfTier { .. }
            | By::NoProfile { .. }
            | By::Denial { .. } => None,
        }
    }
}

/// `TCP 5432`.
fn what(flow: &Flow) -> String {
    let protocol = flow.protocol.as_ref().map(ToString::to_string);
    let mut text = protocol.unwrap_or_else(|| "packets".to_owned());
    if let Some(port) = flow.destination_port {
        // Writing to a string cannot fail.
        let _ = write!(text, " {port}");
    }
    if let Some(icmp) = flow.icmp {
        let _ = write!(text, " type {}", icmp.r#type);
    }
    text
}
