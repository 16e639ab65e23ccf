//! What a packet carries to the collector of flows: who decided what about it.

use tortie_selector::ids::length_limited_id;

use crate::Direction;

/// The kernel's limit, less the final NUL.
const MAX_LENGTH: usize = 63;

/// So much of a prefix that is too long is kept at either end.
const KEPT: usize = 10;

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    Deny,
    Pass,
}

impl Decision {
    fn letter(self) -> char {
        match self {
            Self::Allow => 'A',
            Self::Deny => 'D',
            Self::Pass => 'P',
        }
    }
}

/// The group of the collector.
pub(crate) fn group(direction: Direction) -> u16 {
    match direction {
        Direction::Ingress => 1,
        Direction::Egress => 2,
    }
}

/// A rule of a policy or profile decided.
pub(crate) fn of_rule(
    decision: Decision,
    owner: char,
    direction: Direction,
    index: usize,
    id: &str,
) -> String {
    let (decision, direction) = (decision.letter(), letter(direction));
    limited(format!("{decision}{owner}{direction}{index}|{id}"))
}

/// The end of a tier decided.
pub(crate) fn of_tier(decision: Decision, direction: Direction, tier: &str) -> String {
    limited(format!(
        "{}P{}|{tier}",
        decision.letter(),
        letter(direction)
    ))
}

/// No profile decided, so the packet is denied.
pub(crate) fn of_no_profile(direction: Direction) -> String {
    format!("DR{}", letter(direction))
}

fn letter(direction: Direction) -> char {
    match direction {
        Direction::Ingress => 'I',
        Direction::Egress => 'E',
    }
}

/// A prefix of full length is hashed too, so that nobody can make one that looks hashed.
fn limited(prefix: String) -> String {
    if prefix.len() < MAX_LENGTH {
        return prefix;
    }
    let hash = length_limited_id("", &prefix, MAX_LENGTH - 2 * KEPT - 1);
    let start = &prefix[..prefix.floor_char_boundary(KEPT)];
    let end = &prefix[prefix.ceil_char_boundary(prefix.len() - KEPT)..];
    [start, &hash, "_", end].concat()
}
