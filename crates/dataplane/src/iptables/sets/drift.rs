//! How sets in the kernel differ from what they should be, in words.

use tortie_engine::message::Member;

use super::saved::SavedSet;
use super::{KnownSet, difference};
use crate::{Drift, SetKind};

/// How many members are named.
const NAMED: usize = 3;

/// How a set differs from these members.
pub(super) fn of_set(
    name: &str,
    kind: SetKind,
    wanted: &[Member],
    found: Option<&SavedSet>,
    drift: &mut Vec<Drift>,
) {
    let Some(found) = found else {
        drift.push(of(name, "is missing".to_owned()));
        return;
    };
    let as_known = KnownSet {
        kind: found.kind,
        capacity: found.capacity,
        members: None,
        is_wanted: true,
    };
    if as_known.kind_for(kind).is_none() {
        drift.push(of(name, "is of another type".to_owned()));
        return;
    }
    let (missing, unexpected) = difference(wanted, &found.members);
    let mut parts = Vec::new();
    parts.extend(listed("lacks", &missing));
    parts.extend(listed("should not have", &unexpected));
    if found.odd > 0 {
        parts.push(format!("has {} members that cannot be ours", found.odd));
    }
    if !parts.is_empty() {
        drift.push(of(name, parts.join("; ")));
    }
}

/// How a set differs from what was written.
pub(super) fn of_known(
    name: &str,
    known: &KnownSet,
    found: Option<&KnownSet>,
    drift: &mut Vec<Drift>,
) {
    let what = match found {
        None => "is missing".to_owned(),
        Some(found) if found.kind != known.kind => "is of another type".to_owned(),
        Some(found) if found.members == known.members => return,
        Some(found) => match (found.members, known.members) {
            (Some(found), Some(known)) if found.count != known.count => {
                format!("has {} members instead of {}", found.count, known.count)
            }
            _ => "has other members".to_owned(),
        },
    };
    drift.push(of(name, what));
}

/// A set that should not be there.
pub(super) fn left_over(name: &str) -> Drift {
    of(name, "is left over".to_owned())
}

fn of(name: &str, what: String) -> Drift {
    Drift {
        object: format!("set {name}"),
        what,
    }
}

fn listed(verb: &str, members: &[Member]) -> Option<String> {
    if members.is_empty() {
        return None;
    }
    let named: Vec<String> = members
        .iter()
        .take(NAMED)
        .map(ToString::to_string)
        .collect();
    let named = named.join(", ");
    Some(match members.len().checked_sub(NAMED) {
        None | Some(0) => format!("{verb} {named}"),
        Some(more) => format!("{verb} {named} and {more} more"),
    })
}
