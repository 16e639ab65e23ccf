//! Answers for people: the verdict, what would have to change, and what decided.

mod change;
mod openings;
mod steps;

use std::fmt::Write as _;
use std::io::Write;

use anyhow::Result;
use clap::builder::styling::{AnsiColor, Style};
use serde_json::Value;
use tortie_api::k8s::ProfileOwner;
use tortie_api::names::PolicyId;
use tortie_engine::verdict::{By, End, Flow, Outcome, Point, RuleStep, Side, Step, Verdict};
use tortie_why::{Behind, Judged, Placeholders, Question, Reply, Sources};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const MIXED: Style = AnsiColor::Yellow.on_default().bold();
const STRONG: Style = Style::new().bold();
const WEAK: Style = Style::new().dimmed();

/// What to ask where the answer is not one for all packets.
const HINT: &str =
    "Which rule decides about one of them: ask with --protocol and --port, or with --icmp-type";

/// How many rules that did not match are shown where none did.
const SHOWN: usize = 6;

/// An answer, told to people.
pub(super) struct Told<'a> {
    question: &'a Question,
    reply: &'a Reply,
    sources: Option<&'a Sources>,
    explains: bool,
}

impl<'a> Told<'a> {
    pub(super) fn new(question: &'a Question, reply: &'a Reply) -> Self {
        Self {
            question,
            reply,
            sources: None,
            explains: false,
        }
    }

    /// Tells where rules are written, too.
    pub(super) fn with_sources(mut self, sources: &'a Sources) -> Self {
        self.sources = Some(sources);
        self
    }

    /// Tells all that was asked on the way.
    pub(super) fn explaining(mut self, explains: bool) -> Self {
        self.explains = explains;
        self
    }

    /// Writes the whole answer.
    pub(super) fn write(&self, out: &mut impl Write) -> Result<()> {
        match self.reply {
            Reply::One(judged) => self.write_one(judged, out)?,
            Reply::Service(behind, judged) => self.write_service(behind, judged, out)?,
        }
        for judged in self.reply.judged() {
            for remark in &judged.connection.remarks {
                writeln!(out, "\nNote: {remark}")?;
            }
        }
        Ok(())
    }

    /// Writes the answer as one line.
    pub(super) fn write_line(&self, out: &mut impl Write) -> Result<()> {
        let Question { from, to, .. } = self.question;
        let (style, word) = self.word();
        let protocol = self.question.protocol.as_ref();
        let protocol = protocol.map_or(String::new(), |protocol| format!(" {protocol}"));
        let port = self.question.port.as_ref();
        let port = port.map_or(String::new(), |port| format!(" {port}"));
        let reason = match (self.reply, self.reply.foremost()) {
            (Reply::Service(behind, _), None) => behind.nobody.clone().unwrap_or_default(),
            (Reply::Service(_, all), Some(judged)) => {
                let (direction, side) = deciding(&judged.verdict);
                let count = counted(all);
                let to = &judged.connection.to;
                format!("{count}; {to}: {direction}: {}", side.by)
            }
            (Reply::One(judged), _) if judged.is_partly_open() => openings::text(judged),
            (Reply::One(judged), _) => {
                let (direction, side) = deciding(&judged.verdict);
                format!("{direction}: {}", side.by)
            }
        };
        writeln!(
            out,
            "{style}{word:<7}{style:#}  {from} -> {to}{protocol}{port}  ({reason})"
        )?;
        Ok(())
    }

    fn word(&self) -> (Style, &'static str) {
        let is_partly = match self.reply {
            Reply::One(judged) => judged.is_partly_open(),
            Reply::Service(_, all) => {
                let mut all = all.iter();
                self.reply.outcome() == Outcome::Deny
                    && all.any(|judged| judged.outcome() == Outcome::Allow)
            }
        };
        if is_partly {
            (MIXED, "PARTLY")
        } else {
            outcome(self.reply.outcome())
        }
    }

    fn write_one(&self, judged: &Judged, out: &mut impl Write) -> Result<()> {
        let flow = &judged.connection.flow;
        let from = party(&self.question.from, &flow.source);
        let to = party(&self.question.to, &flow.destination);
        let what = match &judged.openings {
            Some(_) => openings::asked(flow),
            None => packet(flow),
        };
        let (style, word) = self.word();
        let word = if judged.is_partly_open() {
            "PARTLY ALLOWED"
        } else {
            word
        };
        writeln!(out, "{style}{word}{style:#}: {from} to {to}{what}")?;
        if judged.is_partly_open() {
            writeln!(out, "{}", openings::text(judged))?;
        }
        self.write_judged(judged, out)
    }

    fn write_service(&self, behind: &Behind, all: &[Judged], out: &mut impl Write) -> Result<()> {
        let (style, word) = self.word();
        let word = if word == "PARTLY" {
            "PARTLY ALLOWED"
        } else {
            word
        };
        let from = match all.first() {
            Some(judged) => party(&self.question.from, &judged.connection.flow.source),
            None => self.question.from.clone(),
        };
        let address = behind.address.as_deref();
        let address = address.map_or(String::new(), |address| format!(" ({address})"));
        writeln!(
            out,
            "{style}{word}{style:#}: {from} to service {}{address}, {}: {}",
            behind.service,
            behind.ports,
            behind.nobody.clone().unwrap_or_else(|| counted(all))
        )?;
        for judged in all {
            let (style, word) = outcome(judged.outcome());
            let flow = &judged.connection.flow;
            let to = party(&judged.connection.to, &flow.destination);
            let (direction, side) = deciding(&judged.verdict);
            writeln!(
                out,
                "  {style}{word:<7}{style:#} {to}{}  ({direction}: {})",
                packet(flow),
                side.by
            )?;
        }
        let shown: Vec<&Judged> = if self.explains {
            all.iter().collect()
        } else {
            self.reply.foremost().into_iter().collect()
        };
        for judged in shown {
            writeln!(out)?;
            let to = &judged.connection.to;
            writeln!(out, "{STRONG}With {to}{STRONG:#}")?;
            self.write_judged(judged, out)?;
        }
        Ok(())
    }

    /// What would have to change, what decided on each side, and all steps if they are wanted.
    fn write_judged(&self, judged: &Judged, out: &mut impl Write) -> Result<()> {
        let (from, to) = (&*self.question.from, &*judged.connection.to);
        if judged.is_partly_open() {
            writeln!(out, "{HINT}")?;
            if !self.explains {
                return Ok(());
            }
        } else {
            writeln!(out, "{}", change::line(from, to, judged))?;
        }
        writeln!(out)?;
        let verdict = &judged.verdict;
        self.write_side(("Egress", from, false), &verdict.egress, out)?;
        for stage in &verdict.on_the_way {
            let (style, word) = outcome(stage.side.verdict);
            let (node, word) = (&stage.node, word.to_ascii_lowercase());
            let place = place_on_the_way(&stage.side.by, stage.is_inbound);
            writeln!(out, "On node {node}, {place}: {style}{word}{style:#}")?;
            self.write_reason(&stage.side, stage.is_inbound, out)?;
        }
        self.write_side(("Ingress", to, true), &verdict.ingress, out)?;
        if self.explains {
            self.write_trace(("Egress", from, false), &verdict.egress, out)?;
            self.write_trace(("Ingress", to, true), &verdict.ingress, out)?;
        }
        Ok(())
    }

    fn write_side(
        &self,
        (direction, asked, is_ingress): (&str, &str, bool),
        side: &Side,
        out: &mut impl Write,
    ) -> Result<()> {
        let (style, word) = outcome(side.verdict);
        let who = named(asked, side);
        let word = word.to_ascii_lowercase();
        writeln!(out, "{direction} of {who}: {style}{word}{style:#}")?;
        self.write_reason(side, is_ingress, out)
    }

    /// What decided, with the rule, or with those rules that could have.
    fn write_reason(&self, side: &Side, is_ingress: bool, out: &mut impl Write) -> Result<()> {
        writeln!(out, "  {}", by(&side.by))?;
        match &side.by {
            By::Rule { policy, .. } => {
                if let Some(rule) = side.deciding_rule() {
                    let place = self.place(policy, is_ingress, rule.rule);
                    writeln!(out, "    rule {}: {}{place}", rule.rule, rule.text)?;
                }
            }
            By::EndOfTier { .. } if !self.explains => self.write_misses(side, is_ingress, out)?,
            _ => {}
        }
        Ok(())
    }

    /// The rules of the deciding tier, none of which matched.
    fn write_misses(&self, side: &Side, is_ingress: bool, out: &mut impl Write) -> Result<()> {
        let Some(Step::Tier(tier)) = side.trace.last() else {
            return Ok(());
        };
        let mut left = SHOWN;
        let mut hidden = 0;
        for policy in tier.policies.iter().filter(|policy| !policy.staged) {
            if policy.rules.is_empty() && left > 0 {
                writeln!(out, "    {}: no rules", policy.policy.full_name())?;
                continue;
            }
            let shown = &policy.rules[..left.min(policy.rules.len())];
            if !shown.is_empty() {
                writeln!(out, "    {}", policy.policy.full_name())?;
            }
            for rule in shown {
                self.write_rule(Some((&policy.policy, is_ingress)), rule, "      ", out)?;
            }
            left -= shown.len();
            hidden += policy.rules.len() - shown.len();
        }
        if hidden > 0 {
            writeln!(
                out,
                "    and {hidden} more rules that do not match: see --explain"
            )?;
        }
        Ok(())
    }

    fn write_rule(
        &self,
        of: Option<(&PolicyId, bool)>,
        rule: &RuleStep,
        indent: &str,
        out: &mut impl Write,
    ) -> Result<()> {
        let RuleStep {
            rule: number,
            action,
            matched,
            reason,
            text,
        } = rule;
        let place = of.map_or(String::new(), |(policy, is_ingress)| {
            self.place(policy, is_ingress, *number)
        });
        if *matched {
            writeln!(
                out,
                "{indent}{STRONG}rule {number} {action:?}: {text}{place}: matches{STRONG:#}"
            )?;
        } else {
            let reason = reason.as_deref().unwrap_or("does not match");
            writeln!(out, "{indent}{WEAK}rule {number} {action:?}: {text}{place}")?;
            writeln!(out, "{indent}  no, {reason}{WEAK:#}")?;
        }
        Ok(())
    }

    /// ` (shop.yaml:31)`, if it is known where a rule is written.
    fn place(&self, policy: &PolicyId, is_ingress: bool, rule: usize) -> String {
        let place = self
            .sources
            .and_then(|sources| sources.place(policy, is_ingress, rule));
        place.map_or(String::new(), |place| format!(" ({place})"))
    }
}

/// Writes an error in the place of an answer.
pub(super) fn write_error(
    number: usize,
    from: Option<&Value>,
    to: Option<&Value>,
    error: &anyhow::Error,
    out: &mut impl Write,
) -> Result<()> {
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str);
        text.map_or("?".to_owned(), str::to_owned)
    };
    let (from, to) = (text(from), text(to));
    writeln!(
        out,
        "{BAD}{:<7}{BAD:#}  {from} -> {to}  (line {number}: {error})",
        "ERROR"
    )?;
    Ok(())
}

/// The side that denies, or, if none does, the one that had most to say.
fn deciding(verdict: &Verdict) -> (&'static str, &Side) {
    let egress = ("egress", &verdict.egress);
    let ingress = ("ingress", &verdict.ingress);
    let mut stages = verdict.on_the_way.iter();
    let stage = stages.find(|stage| stage.side.verdict == Outcome::Deny);
    match (verdict.egress.verdict, stage, verdict.ingress.verdict) {
        (Outcome::Deny, _, _) => egress,
        (_, Some(stage), _) => ("on the way", &stage.side),
        (_, _, Outcome::Deny) => ingress,
        _ if verdict.ingress.endpoint.is_some() => ingress,
        _ => egress,
    }
}

fn outcome(outcome: Outcome) -> (Style, &'static str) {
    match outcome {
        Outcome::Allow => (GOOD, "ALLOWED"),
        Outcome::Deny => (BAD, "DENIED"),
    }
}

/// `allowed by 1 of 2 backends`
fn counted(all: &[Judged]) -> String {
    let allowed = all.iter().filter(|one| one.outcome() == Outcome::Allow);
    match (allowed.count(), all.len()) {
        (1, 1) => "allowed by its only backend".to_owned(),
        (0, 1) => "denied by its only backend".to_owned(),
        (0, count) => format!("denied by all {count} backends"),
        (allowed, count) if allowed == count => format!("allowed by all {count} backends"),
        (allowed, count) => format!("allowed by {allowed} of {count} backends"),
    }
}

/// `shop/web (10.0.0.1)`.
fn party(asked: &str, end: &End) -> String {
    let address = end.address;
    let placeholders = if Placeholders::is_address(address) {
        ", made up"
    } else {
        ""
    };
    match &end.endpoint {
        _ if asked != address.to_string() => format!("{asked} ({address}{placeholders})"),
        Some(endpoint) => format!("{address} ({endpoint})"),
        None => address.to_string(),
    }
}

/// `, TCP port 80 from port 1234`.
fn packet(flow: &Flow) -> String {
    // Writing to a string cannot fail.
    let mut text = String::new();
    if let Some(protocol) = &flow.protocol {
        let _ = write!(text, ", {protocol}");
    }
    if let Some(port) = flow.destination_port {
        let _ = write!(text, " port {port}");
    }
    if let Some(port) = flow.source_port {
        let _ = write!(text, " from port {port}");
    }
    if let Some(icmp) = flow.icmp {
        let _ = write!(text, " type {}", icmp.r#type);
        if let Some(code) = icmp.code {
            let _ = write!(text, " code {code}");
        }
    }
    text
}

/// What the side was asked for as, and the endpoint where that is another name.
fn named(asked: &str, side: &Side) -> String {
    match side.endpoint.as_ref().map(ToString::to_string) {
        Some(endpoint) if endpoint != asked => format!("{asked} ({endpoint})"),
        _ => asked.to_owned(),
    }
}

/// What decided. Profiles of namespaces are there whether or not anybody knows of them.
fn by(by: &By) -> String {
    let By::Profile {
        profile,
        rule,
        action,
    } = by
    else {
        return by.to_string();
    };
    match ProfileOwner::of_profile(profile) {
        Some(ProfileOwner::Namespace { name }) => format!(
            "{action:?}: no policy decides, and namespace {name} does by default (rule {rule} of profile {profile})"
        ),
        _ => by.to_string(),
    }
}

fn place_on_the_way(by: &By, is_inbound: bool) -> String {
    let direction = if is_inbound { "coming in" } else { "going out" };
    format!("{direction}{}", point(by.point()))
}

fn point(point: Point) -> &'static str {
    match point {
        Point::Normal => "",
        Point::Untracked => ", before connection tracking",
        Point::PreDnat => ", before destination NAT",
        Point::Forward => ", for forwarded packets",
    }
}
