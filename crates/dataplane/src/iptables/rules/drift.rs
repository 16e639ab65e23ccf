//! How rules in the kernel differ from what they should be, in words.

use tortie_rules::Table;

use super::super::input::HookEdit;
use super::super::saved::{Chains, RuleHash};
use crate::Drift;

/// Differences of the chains of ours in a table.
pub(super) fn of_chains(table: Table, wanted: &Chains, found: &Chains, drift: &mut Vec<Drift>) {
    for (name, wanted) in wanted {
        let what = match found.get(name) {
            None => "is missing".to_owned(),
            Some(found) if found == wanted => continue,
            Some(found) => rules_differ(wanted, found),
        };
        drift.push(of_chain(table, name, what));
    }
    for name in found.keys().filter(|name| !wanted.contains_key(*name)) {
        drift.push(of_chain(table, name, "is left over".to_owned()));
    }
}

/// Differences of our rules in chains of others.
pub(super) fn of_hooks(table: Table, hooks: &[HookEdit<'_>], drift: &mut Vec<Drift>) {
    for hook in hooks.iter().filter(|hook| !hook.is_done()) {
        let found = hook.found.map_or(&[][..], |found| &found.hashes);
        let wanted = hook.first.iter().chain(hook.last);
        let mut wanted = wanted.map(|line| RuleHash::new(&line.hash));
        let what = if hook.first.is_empty() && hook.last.is_empty() {
            "has rules of ours that are left over"
        } else if wanted.all(|hash| found.contains(&hash)) {
            "has rules of ours in the wrong place"
        } else {
            "lacks rules of ours"
        };
        drift.push(of_chain(table, hook.chain, what.to_owned()));
    }
}

fn of_chain(table: Table, name: &str, what: String) -> Drift {
    Drift {
        object: format!("chain {}-{name}", table.name()),
        what,
    }
}

fn rules_differ(wanted: &[RuleHash], found: &[RuleHash]) -> String {
    if let Some(index) = found.iter().position(|hash| *hash == RuleHash::FOREIGN) {
        return format!("rule {} is not ours", index + 1);
    }
    let pairs = wanted.iter().zip(found);
    let same = pairs.take_while(|(wanted, found)| wanted == found).count();
    if same == wanted.len() || same == found.len() {
        format!("has {} rules instead of {}", found.len(), wanted.len())
    } else {
        format!("differs from rule {} on", same + 1)
    }
}
