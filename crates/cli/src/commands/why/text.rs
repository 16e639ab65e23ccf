//! Answers for people: the verdict, what decided it, and all that was asked on the way.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::Result;
use clap::builder::styling::{AnsiColor, Style};
use serde_json::Value;
use tortie_engine::input::DefaultAction;
use tortie_engine::verdict::{
    By, End, Flow, Outcome, Point, PolicyStep, RuleStep, Side, Step, Verdict,
};

use super::flow::Question;
use super::made_up::MadeUp;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const STRONG: Style = Style::new().bold();
const WEAK: Style = Style::new().dimmed();

/// Writes the whole answer.
pub(super) fn write(
    question: &Question,
    flow: &Flow,
    verdict: &Verdict,
    out: &mut impl Write,
) -> Result<()> {
    let from = party(&question.from, &flow.source);
    let to = party(&question.to, &flow.destination);
    let what = packet(flow);
    let (style, word) = outcome(verdict.verdict);
    writeln!(out, "{style}{word}{style:#}: {from} to {to}{what}")?;
    writeln!(out)?;
    write_side("Egress", &question.from, &verdict.egress, out)?;
    write_side("Ingress", &question.to, &verdict.ingress, out)?;
    if verdict.egress.trace.is_empty() && verdict.ingress.trace.is_empty() {
        return Ok(());
    }
    write_trace("Egress", &question.from, &verdict.egress, out)?;
    write_trace("Ingress", &question.to, &verdict.ingress, out)
}

/// Writes an answer as one line.
pub(super) fn write_line(
    question: &Question,
    verdict: &Verdict,
    out: &mut impl Write,
) -> Result<()> {
    let (style, word) = outcome(verdict.verdict);
    let Question { from, to, .. } = question;
    let protocol = question.protocol.as_ref();
    let protocol = protocol.map_or(String::new(), |protocol| format!(" {protocol}"));
    let port = question
        .port
        .map_or(String::new(), |port| format!(" {port}"));
    let (direction, side) = deciding(verdict);
    writeln!(
        out,
        "{style}{word:<7}{style:#}  {from} -> {to}{protocol}{port}  ({direction}: {})",
        side.by
    )?;
    Ok(())
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
    match (verdict.egress.verdict, verdict.ingress.verdict) {
        (Outcome::Deny, _) => egress,
        (_, Outcome::Deny) => ingress,
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

/// `shop/web (10.0.0.1)`.
fn party(asked: &str, end: &End) -> String {
    let address = end.address;
    let made_up = if MadeUp::is_address(address) {
        ", made up"
    } else {
        ""
    };
    match &end.endpoint {
        _ if asked != address.to_string() => format!("{asked} ({address}{made_up})"),
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

fn write_side(direction: &str, asked: &str, side: &Side, out: &mut impl Write) -> Result<()> {
    let (style, word) = outcome(side.verdict);
    let who = named(asked, side);
    writeln!(
        out,
        "{direction} of {who}: {style}{}{style:#}",
        word.to_ascii_lowercase()
    )?;
    writeln!(out, "  {}", side.by)?;
    Ok(())
}

/// What the side was asked for as, and the endpoint where that is another name.
fn named(asked: &str, side: &Side) -> String {
    match side.endpoint.as_ref().map(ToString::to_string) {
        Some(endpoint) if endpoint != asked => format!("{asked} ({endpoint})"),
        _ => asked.to_owned(),
    }
}

fn write_trace(direction: &str, asked: &str, side: &Side, out: &mut impl Write) -> Result<()> {
    if side.trace.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(
        out,
        "{STRONG}{direction} of {asked}, step by step{STRONG:#}"
    )?;
    for step in &side.trace {
        match step {
            Step::Tier(tier) => {
                writeln!(out, "  tier {}{}", tier.tier, point(tier.point))?;
                for policy in &tier.policies {
                    write_policy(policy, out)?;
                }
                match tier.end {
                    None => {}
                    Some(DefaultAction::Deny) => {
                        writeln!(out, "    {BAD}end of tier: Deny{BAD:#}")?;
                    }
                    Some(DefaultAction::Pass) => {
                        writeln!(out, "    end of tier: Pass")?;
                    }
                }
            }
            Step::Profile(profile) => {
                let missing = if profile.missing {
                    ": does not exist, and so denies everything"
                } else if profile.denial.is_some() {
                    ": denies, whatever its rules say"
                } else {
                    ""
                };
                writeln!(out, "  profile {}{missing}", profile.profile)?;
                write_rules(&profile.rules, "    ", out)?;
            }
        }
    }
    if let By::NoProfile { .. } = side.by {
        writeln!(out, "  {BAD}no profile is left: Deny{BAD:#}")?;
    }
    Ok(())
}

fn point(point: Point) -> &'static str {
    match point {
        Point::Normal => "",
        Point::Untracked => ", before connection tracking",
        Point::PreDnat => ", before destination NAT",
        Point::Forward => ", for forwarded packets",
    }
}

fn write_policy(policy: &PolicyStep, out: &mut impl Write) -> Result<()> {
    let staged = if policy.staged {
        " (staged: decides nothing)"
    } else {
        ""
    };
    let none = if policy.denial.is_some() {
        ": denies, whatever its rules say"
    } else if policy.rules.is_empty() {
        ": no rules"
    } else {
        ""
    };
    writeln!(out, "    {}{staged}{none}", policy.policy.full_name())?;
    write_rules(&policy.rules, "      ", out)
}

fn write_rules(rules: &[RuleStep], indent: &str, out: &mut impl Write) -> Result<()> {
    for RuleStep {
        rule,
        action,
        matched,
        reason,
        ..
    } in rules
    {
        if *matched {
            writeln!(
                out,
                "{indent}{STRONG}rule {rule} {action:?}: matches{STRONG:#}"
            )?;
        } else {
            let reason = reason.as_deref().unwrap_or("does not match");
            writeln!(
                out,
                "{indent}{WEAK}rule {rule} {action:?}: no, {reason}{WEAK:#}"
            )?;
        }
    }
    Ok(())
}
