//! An answer for people: the verdict, then each node with its peers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};
use tortie_bgp::Reason;
use tortie_bgp::explain::{Answer, Learnt, NodeAnswer, Told};

use super::live::Live;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const STRONG: Style = Style::new().bold();

/// How many peers with the same reason are named.
const SHOWN: usize = 5;

pub(super) fn render(answer: &Answer, live: Option<&Live>) -> String {
    let mut out = String::new();
    let differs = live.is_some_and(|live| !live.is_well());
    let style = if answer.is_well && !differs {
        GOOD
    } else {
        BAD
    };
    let _ = if answer.is_well && differs {
        let verdict = answer.verdict.replacen(" is ", " should be ", 1);
        writeln!(
            out,
            "{style}{verdict}, and on this machine it is not so:{style:#}"
        )
    } else {
        writeln!(out, "{style}{}{style:#}", answer.verdict)
    };
    if let Some(live) = live {
        for difference in &live.differences {
            let _ = writeln!(out, "  {difference}");
        }
    }
    for node in &answer.nodes {
        let _ = writeln!(out);
        of_node(&mut out, node);
    }
    if let Some(live) = live {
        of_live(&mut out, live);
    }
    for note in &answer.notes {
        let _ = writeln!(out, "\nNote: {note}");
    }
    out
}

fn of_node(out: &mut String, node: &NodeAnswer) {
    let _ = writeln!(out, "{STRONG}Node {}{STRONG:#}", node.node);
    for reason in &node.has {
        let _ = writeln!(out, "  has it: {reason}");
    }
    for reason in &node.lacks {
        because(out, "  has no route to tell: ", reason);
    }
    told(out, &node.told);
    for reason in &node.missing {
        because(out, "  no session: ", reason);
    }
    for learnt in &node.learnt {
        one_learnt(out, learnt);
    }
    if let Some(programmed) = &node.programmed {
        let word = match (programmed.is_programmed, programmed.by) {
            (Some(true), Some(by)) => format!("  programmed by {by}: "),
            (None, Some(by)) => format!("  perhaps programmed by {by}: "),
            (None, None) => "  programmed if it is learnt: ".to_owned(),
            _ => "  not programmed: ".to_owned(),
        };
        because(out, &word, &programmed.reason);
    }
}

/// Peers with the same reason are told as one.
fn told(out: &mut String, all: &[Told]) {
    let mut groups: BTreeMap<(bool, String), Vec<&Told>> = BTreeMap::new();
    for told in all {
        let key = (told.is_told, told.reason.to_string());
        groups.entry(key).or_default().push(told);
    }
    for ((is_told, _), peers) in groups {
        let first = peers[0];
        let word = if is_told { "told to" } else { "NOT told to" };
        let names: Vec<String> = peers.iter().take(SHOWN).map(|told| name(told)).collect();
        let more = match peers.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let start = format!("  {word} {}{more}: ", names.join(", "));
        because(out, &start, &first.reason);
        if !first.communities.is_empty() {
            let _ = writeln!(
                out,
                "      with communities {}",
                first.communities.join(" ")
            );
        }
    }
}

fn name(told: &Told) -> String {
    match &told.peer_node {
        Some(node) => format!("{node} ({})", told.peer),
        None => format!("{} ({})", told.peer, told.session),
    }
}

fn one_learnt(out: &mut String, learnt: &Learnt) {
    let word = match learnt.is_learnt {
        Some(true) => "learnt from",
        Some(false) => "NOT learnt from",
        None => "perhaps learnt from",
    };
    let by = learnt.session.as_ref();
    let by = by.map_or(String::new(), |session| format!(" ({session})"));
    let way = if learnt.way.len() > 1 {
        format!(", on the way {}", learnt.way.join(" → "))
    } else {
        String::new()
    };
    because(
        out,
        &format!("  {word} {}{by}{way}: ", learnt.from),
        &learnt.reason,
    );
}

fn because(out: &mut String, start: &str, reason: &Reason) {
    let _ = writeln!(out, "{start}{}", reason.text);
    if let Some(origin) = &reason.origin {
        let value = reason.value.as_ref();
        let value = value.map_or(String::new(), |value| format!(" = {value}"));
        let _ = writeln!(out, "      by {origin}{value}");
    }
    if let Some(remedy) = &reason.remedy {
        let _ = writeln!(out, "      what would change it: {remedy}");
    }
}

fn of_live(out: &mut String, live: &Live) {
    let _ = writeln!(out, "\n{STRONG}On this machine{STRONG:#}");
    for route in &live.bird {
        let hops: Vec<String> = route.next_hops.iter().map(ToString::to_string).collect();
        let via = if hops.is_empty() {
            String::new()
        } else {
            format!(" via {}", hops.join(", "))
        };
        let word = if route.is_preferred {
            ", which it prefers"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "  BIRD has it by {}{via} since {}{word}",
            route.by, route.since
        );
    }
    if !live.told.is_empty() {
        let _ = writeln!(out, "  BIRD tells it by {}", live.told.join(", "));
    }
    for down in &live.down {
        let _ = writeln!(
            out,
            "  session {}: {} since {}",
            down.session, down.info, down.since
        );
    }
    for route in &live.kernel {
        let _ = writeln!(out, "  the kernel has {route}");
    }
    if live.kernel.is_empty() {
        let _ = writeln!(out, "  the kernel has no route to it");
    }
}
