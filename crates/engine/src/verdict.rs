//! Whether a connection is allowed, and why.
//!
//! The answer comes from the very rules, sets and lists that the data plane is given: [`Judge`] reads what
//! [`Engine::flush`](crate::Engine::flush) last computed. An engine with [`Scope::AllNodes`](crate::Scope::AllNodes)
//! answers for all endpoints of the cluster.
//!
//! A packet that opens a connection must get out of its source (egress) and into its destination (ingress). On each
//! side the tiers are asked in order, in each tier the policies in order, in each policy the rules in order; then the
//! profiles. On its way through nodes it meets policies of hosts, too: [`Hop`] says which.

mod applied;
mod by;
mod judge;
mod judged;
mod kernel;
mod openings;
mod order;
mod path;
mod rule_match;
mod rule_text;
mod words;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use tortie_api::names::PolicyId;
use tortie_api::rule::Action;
use tortie_api::scalar::Protocol;

pub use applied::AppliedPolicy;
pub use by::By;
pub use judge::Judge;
pub use kernel::{Denial, Kernel, Place};
pub use openings::{Opening, Openings};
pub use path::{Gate, Hop, Stage, Translated};

use crate::input::{DefaultAction, HostEndpointKey, Icmp, WorkloadEndpointKey};
use crate::is_default;

/// A packet that opens a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Where it comes from.
    pub source: End,
    /// Where it goes to.
    pub destination: End,
    /// Its protocol; none for one that no rule names.
    pub protocol: Option<Protocol>,
    /// The port that it comes from; one of those that clients get, if not given.
    pub source_port: Option<u16>,
    /// The port that it goes to.
    pub destination_port: Option<u16>,
    /// The kind of ICMP message that it is.
    pub icmp: Option<Icmp>,
}

/// One end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub address: IpAddr,
    /// The endpoint that has it; none if policy applies to nothing there.
    pub endpoint: Option<EndpointKey>,
}

/// The identity of an endpoint in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointKey {
    /// An interface of a workload.
    Workload(WorkloadEndpointKey),
    /// An interface of a host.
    Host(HostEndpointKey),
}

/// Whether a packet may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Outcome {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// The answer for a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Allowed only if both sides allow it, and all that it meets on the way.
    pub verdict: Outcome,
    /// Getting out of the source.
    pub egress: Side,
    /// Getting into the destination.
    pub ingress: Side,
    /// What policies of hosts decided where the packet is forwarded, or before it was clear where it goes.
    #[serde(skip_serializing_if = "is_default")]
    pub on_the_way: Vec<Stage>,
}

/// The answer of one side.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The endpoint; none if policy applies to nothing there.
    pub endpoint: Option<EndpointKey>,
    /// What this side decided.
    pub verdict: Outcome,
    /// What decided it.
    pub by: By,
    /// All that was asked, in order.
    pub trace: Vec<Step>,
}

/// The point of a host at which a policy applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Point {
    /// Where connections end or begin.
    #[default]
    Normal,
    /// Before connection tracking.
    Untracked,
    /// Before destination NAT.
    PreDnat,
    /// Where packets are forwarded.
    Forward,
}

/// Something that was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// The policies of a tier.
    Tier(TierStep),
    Profile(ProfileStep),
}

/// What a tier's policies said.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TierStep {
    pub tier: Arc<str>,
    /// At which point of a host.
    #[serde(skip_serializing_if = "is_default")]
    pub point: Point,
    /// Its policies that apply, as far as they were asked.
    pub policies: Vec<PolicyStep>,
    /// What its end did, if that was reached.
    #[serde(skip_serializing_if = "is_default")]
    pub end: Option<DefaultAction>,
}

/// What a policy's rules said.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStep {
    pub policy: Arc<PolicyId>,
    /// Whether it only reports what it would do; it then decides nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub staged: bool,
    /// Its rules, up to the one that decides.
    pub rules: Vec<RuleStep>,
    /// Why it denies whatever its rules say; they are not asked then.
    #[serde(skip_serializing_if = "is_default")]
    pub denial: Option<Denial>,
}

/// What a profile's rules said.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileStep {
    pub profile: Arc<str>,
    /// Whether it does not exist; it then denies everything.
    #[serde(skip_serializing_if = "is_default")]
    pub missing: bool,
    /// Its rules, up to the one that decides.
    pub rules: Vec<RuleStep>,
    /// Why it denies whatever its rules say; they are not asked then.
    #[serde(skip_serializing_if = "is_default")]
    pub denial: Option<Denial>,
}

/// What one rule said.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleStep {
    /// Its place, from 0.
    pub rule: usize,
    /// What it does with what it matches.
    pub action: Action,
    /// Whether it matches.
    pub matched: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: Option<String>,
    /// What it is for, in words.
    pub text: Arc<str>,
}

// === impl Outcome ===

impl Outcome {
    /// Denied if any is.
    pub fn of_all(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let mut outcomes = outcomes.into_iter();
        if outcomes.any(|outcome| outcome == Self::Deny) {
            Self::Deny
        } else {
            Self::Allow
        }
    }
}

// === impl Verdict ===

impl Verdict {
    pub(crate) fn new(egress: Side, ingress: Side, on_the_way: Vec<Stage>) -> Self {
        let stages = on_the_way.iter().map(|stage| stage.side.verdict);
        let sides = [egress.verdict, ingress.verdict];
        Self {
            verdict: Outcome::of_all(sides.into_iter().chain(stages)),
            egress,
            ingress,
            on_the_way,
        }
    }
}

// === impl Side ===

impl Side {
    /// What is decided without asking policies.
    pub(crate) fn unasked(by: By) -> Self {
        Self {
            endpoint: None,
            verdict: match by.action() {
                Action::Deny => Outcome::Deny,
                Action::Allow | Action::Log | Action::Pass => Outcome::Allow,
            },
            by,
            trace: Vec::new(),
        }
    }

    /// The rule that decided, with what it is for.
    pub fn deciding_rule(&self) -> Option<&RuleStep> {
        let rules = match self.trace.last()? {
            Step::Tier(tier) => &tier.policies.last()?.rules,
            Step::Profile(profile) => &profile.rules,
        };
        let is_rule = matches!(self.by, By::Rule { .. } | By::Profile { .. });
        rules.last().filter(|rule| is_rule && rule.matched)
    }
}

// === impl EndpointKey ===

impl EndpointKey {
    /// The node that it is on.
    pub fn node(&self) -> &str {
        match self {
            Self::Workload(key) => &key.node,
            Self::Host(key) => &key.node,
        }
    }
}

impl fmt::Display for EndpointKey {
    /// `namespace/pod` for a pod, `host/name` for a host endpoint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workload(key) if key.orchestrator == "k8s" => f.write_str(&key.workload),
            Self::Workload(key) => {
                write!(f, "{}/{}/{}", key.orchestrator, key.workload, key.endpoint)
            }
            Self::Host(key) => write!(f, "host/{}", key.name),
        }
    }
}

impl Serialize for EndpointKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
