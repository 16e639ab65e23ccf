//! What is said to a question.

use anyhow::Result;
use serde::Serialize;
use tortie_api::rule::Action;
use tortie_engine::verdict::{By, Judge, Openings, Outcome, Side, Stage, Verdict};

use crate::connection::{Behind, Connection};
use crate::directory::Directory;
use crate::flow::Question;
use crate::meaning::Meaning;

/// What is said to a question.
#[derive(Debug)]
pub enum Reply {
    /// About one connection, or about all that there can be between two ends.
    One(Box<Judged>),
    /// About each connection that one to a service can become.
    Service(Behind, Vec<Judged>),
}

/// A connection that was asked about.
#[derive(Debug)]
pub struct Judged {
    /// The packet, and its way.
    pub connection: Connection,
    /// What the engine says.
    pub verdict: Verdict,
    /// What is open, where the question does not say which packet it is about.
    pub openings: Option<Openings>,
}

/// An answer as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Form<'a> {
    verdict: Outcome,
    egress: &'a Side,
    ingress: &'a Side,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    on_the_way: &'a [Stage],
    #[serde(skip_serializing_if = "Option::is_none")]
    openings: Option<&'a Openings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backends: Option<Vec<BackendForm<'a>>>,
    /// Why nothing is behind a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<&'a str>,
}

/// An answer about one of those behind a service.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BackendForm<'a> {
    to: &'a str,
    address: String,
    port: Option<u16>,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// A side that nobody was asked about.
static UNASKED: Side = Side {
    endpoint: None,
    verdict: Outcome::Allow,
    by: By::NoEndpoint {
        action: Action::Allow,
    },
    trace: Vec::new(),
};

impl Question {
    /// Answers it.
    pub fn ask(&self, directory: &Directory, judge: &mut Judge<'_>) -> Result<Reply> {
        Ok(match self.meaning(directory)? {
            Meaning::One(connection) => Reply::One(Box::new(Judged::new(*connection, judge))),
            Meaning::Service(mut behind) => {
                let backends = std::mem::take(&mut behind.backends).into_iter();
                let judged = backends.map(|connection| Judged::new(connection, judge));
                let judged = judged.collect();
                Reply::Service(behind, judged)
            }
        })
    }
}

// === impl Reply ===

impl Reply {
    /// Allowed only if all that was asked about is.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::One(judged) => judged.outcome(),
            Self::Service(_, judged) if judged.is_empty() => Outcome::Deny,
            Self::Service(_, judged) => Outcome::of_all(judged.iter().map(Judged::outcome)),
        }
    }

    /// The connection that stands for all: one that is denied, if there is one.
    pub fn foremost(&self) -> Option<&Judged> {
        match self {
            Self::One(judged) => Some(judged),
            Self::Service(_, judged) => {
                let mut all = judged.iter();
                let denied = all.find(|judged| judged.outcome() == Outcome::Deny);
                denied.or(judged.first())
            }
        }
    }

    /// All connections that were asked about.
    pub fn judged(&self) -> &[Judged] {
        match self {
            Self::One(judged) => std::slice::from_ref(&**judged),
            Self::Service(_, judged) => judged,
        }
    }

    /// The answer as JSON.
    pub fn form(&self) -> Form<'_> {
        let foremost = self.foremost();
        let verdict = foremost.map(|judged| &judged.verdict);
        let behind = match self {
            Self::One(_) => None,
            Self::Service(behind, _) => Some(behind),
        };
        let remarks = self.judged().iter();
        let remarks = remarks.flat_map(|judged| &judged.connection.remarks);
        Form {
            verdict: self.outcome(),
            egress: verdict.map_or(&UNASKED, |verdict| &verdict.egress),
            ingress: verdict.map_or(&UNASKED, |verdict| &verdict.ingress),
            on_the_way: verdict.map_or(&[], |verdict| &verdict.on_the_way),
            openings: foremost.and_then(|judged| judged.openings.as_ref()),
            service: behind.map(|behind| &*behind.service),
            backends: behind.map(|_| self.judged().iter().map(BackendForm::new).collect()),
            because: behind.and_then(|behind| behind.nobody.as_deref()),
            remarks: remarks.map(String::as_str).collect(),
        }
    }
}

impl<'a> BackendForm<'a> {
    fn new(judged: &'a Judged) -> Self {
        let flow = &judged.connection.flow;
        Self {
            to: &judged.connection.to,
            address: flow.destination.address.to_string(),
            port: flow.destination_port,
            verdict: &judged.verdict,
        }
    }
}

// === impl Judged ===

impl Judged {
    fn new(connection: Connection, judge: &mut Judge<'_>) -> Self {
        let (flow, hops) = (&connection.flow, &connection.hops);
        let is_vague = match &flow.protocol {
            None => true,
            Some(protocol) if protocol.supports_ports() => flow.destination_port.is_none(),
            Some(protocol) => (protocol.is_icmp() || protocol.is_icmpv6()) && flow.icmp.is_none(),
        };
        let openings = is_vague.then(|| judge.openings(flow, hops)).flatten();
        Self {
            verdict: judge.pass(flow, hops),
            openings,
            connection,
        }
    }

    /// Allowed only if all that was asked about is.
    pub fn outcome(&self) -> Outcome {
        match &self.openings {
            Some(openings) if openings.is_all_open() => Outcome::Allow,
            Some(_) => Outcome::Deny,
            None => self.verdict.verdict,
        }
    }

    /// Whether some of what was asked about is allowed, and some is not.
    pub fn is_partly_open(&self) -> bool {
        let openings = self.openings.as_ref();
        openings.is_some_and(|openings| !openings.is_all_open() && !openings.is_all_closed())
    }
}
