//! Compares renderings.

use std::collections::BTreeMap;

use serde_json::Value;
use tortie_rules::VerdictMap;

use super::Chains;

/// A rule as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) rule: String,
    pub(crate) comment: String,
}

impl Rendered {
    pub(crate) fn line(rule: String) -> Self {
        Self {
            rule,
            comment: String::new(),
        }
    }
}

/// All chains and rules are the same, letter by letter.
pub(crate) fn exact(index: usize, case: &Value, expected: &Chains, actual: &Chains) -> Vec<String> {
    let mut failures = names(index, case, expected, actual);
    for (key, expected) in expected {
        let Some(actual) = actual.get(key) else {
            continue;
        };
        let is_exception = is_third_block(expected, actual)
            || (key.0 != "filter" && is_refusal_elsewhere(expected, actual));
        if expected != actual && !is_exception {
            failures.push(difference(index, case, key, expected, actual));
        }
    }
    failures
}

/// Calico refuses packets in all tables, and the kernel takes that in the filter table alone. Ours drops them there,
/// and is otherwise the same.
fn is_refusal_elsewhere(expected: &[Rendered], actual: &[Rendered]) -> bool {
    let dropped = |rule: &Rendered| {
        without_hash(rule)
            .replace("--jump REJECT", "--jump DROP")
            .replace("Reject if no", "Drop if no")
    };
    let actual: Vec<String> = actual.iter().map(without_hash).collect();
    expected.iter().map(dropped).collect::<Vec<_>>() == actual
}

fn without_hash(rule: &Rendered) -> String {
    let end = rule.rule.find("\" ").map_or(0, |at| at + 2);
    rule.rule[end..].to_owned()
}

/// Calico forgets to clear a bit between the second and later blocks of alternatives, so that those count for nothing.
/// Ours clears it, and is otherwise the same.
fn is_third_block(expected: &[Rendered], actual: &[Rendered]) -> bool {
    let expected: Vec<String> = expected.iter().map(without_hash).collect();
    let (cleared, rest): (Vec<String>, Vec<String>) = actual
        .iter()
        .map(without_hash)
        .partition(|rule| rule == "--jump MARK --set-mark 0/0x100000");
    !cleared.is_empty() && expected == rest
}

fn names(index: usize, case: &Value, expected: &Chains, actual: &Chains) -> Vec<String> {
    let missing = expected.keys().filter(|key| !actual.contains_key(key));
    let extra = actual.keys().filter(|key| !expected.contains_key(key));
    let kind = &case["input"]["type"];
    missing
        .map(|key| format!("case {index} {kind}: {key:?} is missing"))
        .chain(extra.map(|key| format!("case {index} {kind}: {key:?} should not be there")))
        .collect()
}

fn difference(
    index: usize,
    case: &Value,
    key: &(String, String),
    expected: &[Rendered],
    actual: &[Rendered],
) -> String {
    let lines = |rules: &[Rendered]| {
        let lines: Vec<String> = rules
            .iter()
            .map(|rule| format!("    {}  # {}", rule.rule, rule.comment))
            .collect();
        lines.join("\n")
    };
    let same = expected
        .iter()
        .zip(actual)
        .take_while(|(a, b)| a == b)
        .count();
    format!(
        "case {index} {} {key:?}: from rule {same} on, not\n{}\n  but\n{}",
        case["input"]["type"],
        lines(&expected[same..]),
        lines(&actual[same..])
    )
}

/// The same names; the same rules where nothing is fused, and the fused form of Calico's elsewhere.
pub(crate) fn nftables(
    index: usize,
    case: &Value,
    expected: &Chains,
    actual: &Chains,
) -> Vec<String> {
    // The rules at the end of FORWARD are compared in the iptables cases; their place is different here.
    let mut expected = expected.clone();
    expected.retain(|(_, name), _| name != "filter-FORWARD" && name != "FORWARD");
    let mut failures = names(index, case, &expected, actual);
    let is_policy = matches!(
        super::input::text(&case["input"]["type"]),
        "policy" | "profile"
    );
    for (key, expected) in &expected {
        let Some(actual) = actual.get(key) else {
            continue;
        };
        if expected == actual {
            continue;
        }
        let is_filter = key.1.starts_with("filter-");
        let expected = corrected(expected, is_filter);
        let same = if is_policy {
            // Blocks of alternatives are different by design; the kernel tests hold them to the verdict.
            let has_blocks = expected
                .iter()
                .any(|rule| rule.rule.contains("mark & 0xff"));
            has_blocks || rules_of(&fused(&expected)) == rules_of(actual)
        } else {
            rules_of(&expected) == rules_of(actual)
        };
        if !same {
            let expected = if is_policy {
                fused(&expected)
            } else {
                expected
            };
            failures.push(difference(index, case, key, &expected, actual));
        }
    }
    failures
}

fn rules_of(rules: &[Rendered]) -> Vec<(String, String)> {
    let notes = |rule: &Rendered| match rule.comment.split_once("; ") {
        Some((_, notes)) => notes.to_owned(),
        None => String::new(),
    };
    rules
        .iter()
        .map(|rule| (rule.rule.clone(), notes(rule)))
        .collect()
}

/// What Calico's text would be if it said what is meant.
fn corrected(rules: &[Rendered], is_filter: bool) -> Vec<Rendered> {
    // The kernel takes a refusal in the filter layer alone.
    let dropped = |text: &str| {
        if is_filter {
            return text.to_owned();
        }
        let text = text.replace("Reject if no", "Drop if no");
        match text.strip_suffix(" reject") {
            Some(start) => format!("{start} drop"),
            None => text,
        }
    };
    let correct = |rule: &Rendered| Rendered {
        rule: dropped(&limited_last(&rule.rule))
            // Any other bit of the status makes the comparison true.
            .replace("ct status != dnat", "ct status & dnat != dnat")
            // The wildcard of iptables means nothing here.
            .replace("oifname eth+", "oifname eth*"),
        comment: dropped(&rule.comment),
    };
    rules.iter().map(correct).collect()
}

/// Only packets that match count towards a limit.
fn limited_last(rule: &str) -> String {
    let limited = rule.strip_prefix("limit rate ");
    let parts = limited.and_then(|rest| rest.split_once(" packets "));
    let Some((limit, (matches, action))) =
        parts.and_then(|(limit, rest)| Some((limit, rest.split_once("counter ")?)))
    else {
        return rule.to_owned();
    };
    format!("{matches}limit rate {limit} packets counter {action}")
}

/// A rule that marks, and those that act on the mark, as one.
fn fused(rules: &[Rendered]) -> Vec<Rendered> {
    let mut out: Vec<Rendered> = Vec::new();
    for rule in rules {
        let consequence = rule
            .rule
            .strip_prefix("meta mark & ")
            .and_then(|rest| rest.split_once(" counter "))
            .filter(|(condition, _)| {
                condition
                    .split_once(" == ")
                    .is_some_and(|(mask, value)| mask == value)
            });
        match (consequence, out.last_mut()) {
            (Some((_, action)), Some(last)) if last.rule.contains(" mark set mark or ") => {
                last.rule.push(' ');
                last.rule.push_str(action);
            }
            _ => out.push(rule.clone()),
        }
    }
    for rule in &mut out {
        // At the end of a chain the packet returns anyway, and Calico says so there by nothing.
        let marks = rule.rule.contains("meta mark set mark or ");
        let is_drop = [" drop", " reject"]
            .iter()
            .any(|verdict| rule.rule.ends_with(verdict));
        if marks && is_drop {
            let start = rule.rule.find("meta mark set mark or ").unwrap_or_default();
            let end = rule.rule[start + 22..]
                .find(' ')
                .map_or(rule.rule.len(), |at| start + 23 + at);
            rule.rule.replace_range(start..end, "");
        } else if marks && !rule.rule.ends_with(" return") {
            rule.rule.push_str(" return");
        }
    }
    out
}

/// The maps have the same elements.
pub(crate) fn maps(index: usize, expected: &Value, actual: &[VerdictMap]) -> Vec<String> {
    let Some(expected) = expected.as_object() else {
        return Vec::new();
    };
    let actual: BTreeMap<String, BTreeMap<&str, String>> = actual
        .iter()
        .map(|map| {
            let layer = map.table.name();
            let elements = map.elements.iter();
            let elements = elements
                .map(|(interface, chain)| (interface.as_str(), format!("goto {layer}-{chain}")));
            (format!("{layer}-{}", map.name), elements.collect())
        })
        .collect();
    let mut failures = Vec::new();
    for (name, elements) in expected {
        let expected: BTreeMap<&str, String> = elements
            .as_object()
            .into_iter()
            .flatten()
            .map(|(interface, verdict)| {
                let verdict = super::input::text(&verdict[0]).to_owned();
                (interface.as_str(), verdict)
            })
            .collect();
        if actual.get(name) != Some(&expected) {
            failures.push(format!("case {index}: map {name} should be {expected:?}"));
        }
    }
    failures
}

/// Fails with all failures, if there are any.
#[track_caller]
pub(crate) fn report(failures: &[String]) {
    let shown: Vec<&String> = failures.iter().take(20).collect();
    assert!(
        failures.is_empty(),
        "{} failures, the first of them:\n{}",
        failures.len(),
        shown
            .iter()
            .map(|failure| failure.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    );
}
