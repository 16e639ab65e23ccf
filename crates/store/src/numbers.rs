//! Revisions as numbers, which clients can compare.
//!
//! Some kinds come from several kinds of Kubernetes' objects, and their revision has a part for each, joined by `/`. All
//! parts count the changes of one cluster, but one may be ahead of another, and so changes do not come in the order of
//! their numbers. Watchers need that order:
//! - A list has the number of the part that is furthest behind: a watch from there may tell again of what the list held,
//!   but misses nothing.
//! - A change that comes late has the number after that of the change before it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tortie_api::Kind;

use crate::error::{Error, Result};
use crate::key::Revision;

/// Which parts the revisions of kinds have: for each whether there is anything to count.
#[derive(Debug, Default)]
pub struct Numbering {
    by_kind: Mutex<HashMap<Kind, Vec<bool>>>,
}

/// The numbers of the changes of one watch.
#[derive(Debug)]
pub struct ChangeNumbers {
    last: u64,
    /// The revision of the change before.
    parts: Vec<String>,
}

impl Numbering {
    /// The number of a list.
    pub fn number(&self, kind: Kind, revision: &Revision) -> Result<u64> {
        let parts: Vec<&str> = revision.0.split('/').collect();
        if let [one] = parts.as_slice() {
            return number(one);
        }
        let shape = parts.iter().map(|part| !part.is_empty()).collect();
        let mut by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        by_kind.insert(kind, shape);
        furthest_behind(&parts)
    }

    /// Where a watch after a number begins, and what numbers its changes.
    pub fn start(&self, kind: Kind, from: u64) -> (Revision, ChangeNumbers) {
        let by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        let one = vec![true];
        let shape = by_kind.get(&kind).unwrap_or(&one).iter();
        let part = |is_there: &bool| {
            if *is_there {
                from.to_string()
            } else {
                String::new()
            }
        };
        let parts: Vec<String> = shape.map(part).collect();
        let revision = Revision(parts.join("/"));
        (revision, ChangeNumbers { last: from, parts })
    }
}

impl ChangeNumbers {
    /// The number of the next change, or of how far a watch has come in which nothing changed.
    pub fn next(&mut self, revision: &Revision, is_change: bool) -> Result<u64> {
        let parts: Vec<&str> = revision.0.split('/').collect();
        if let [one] = parts.as_slice() {
            return number(one);
        }
        if is_change {
            let mut both = parts.iter().zip(&self.parts);
            let moved = both.find(|(new, old)| *new != old).map(|(new, _)| *new);
            let counted = match moved {
                None | Some("") => 0,
                Some(part) => number(part)?,
            };
            self.last = counted.max(self.last + 1);
        } else {
            self.last = furthest_behind(&parts)?.max(self.last);
        }
        self.parts = parts.into_iter().map(ToOwned::to_owned).collect();
        Ok(self.last)
    }
}

fn furthest_behind(parts: &[&str]) -> Result<u64> {
    let mut behind = None;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let part = number(part)?;
        behind = Some(behind.map_or(part, |behind: u64| behind.min(part)));
    }
    Ok(behind.unwrap_or_default())
}

fn number(text: &str) -> Result<u64> {
    text.parse()
        .map_err(|_| Error::message(format!("the datastore's revision {text:?} is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(text: &str) -> Revision {
        Revision(text.to_owned())
    }

    #[test]
    fn plain_revisions_stay_as_they_are() {
        let numbering = Numbering::default();
        assert_eq!(numbering.number(Kind::Tier, &revision("12")).unwrap(), 12);
        assert!(numbering.number(Kind::Tier, &revision("x")).is_err());
        let (from, mut numbers) = numbering.start(Kind::Tier, 12);
        assert_eq!(from, revision("12"));
        // Changes of one transaction have one revision.
        for (given, expected) in [("13", 13), ("13", 13), ("20", 20)] {
            assert_eq!(numbers.next(&revision(given), true).unwrap(), expected);
        }
    }

    #[test]
    fn combined_revisions_are_numbered_in_the_order_in_which_changes_come() {
        let numbering = Numbering::default();
        let listed = numbering.number(Kind::Profile, &revision("12/10"));
        assert_eq!(listed.unwrap(), 10);
        let (from, mut numbers) = numbering.start(Kind::Profile, 10);
        assert_eq!(from, revision("10/10"));
        for (given, is_change, expected) in [
            ("11/10", true, 11),
            ("15/10", true, 15),
            ("15/14", true, 16),
            ("15/17", true, 17),
            ("15/17", false, 17),
            ("30/40", false, 30),
            ("31/40", true, 31),
        ] {
            let numbered = numbers.next(&revision(given), is_change);
            assert_eq!(numbered.unwrap(), expected, "{given}");
        }
    }

    #[test]
    fn kinds_that_are_not_there_have_nothing_to_count() {
        let numbering = Numbering::default();
        let listed = numbering.number(Kind::GlobalNetworkPolicy, &revision("12/"));
        assert_eq!(listed.unwrap(), 12);
        let (from, mut numbers) = numbering.start(Kind::GlobalNetworkPolicy, 12);
        assert_eq!(from, revision("12/"));
        // All of it is told when it comes, before its part has a number.
        for (given, expected) in [("12/", 13), ("12/20", 20), ("21/20", 21)] {
            assert_eq!(numbers.next(&revision(given), true).unwrap(), expected);
        }
    }
}
