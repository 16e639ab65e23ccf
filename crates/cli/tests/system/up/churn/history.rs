//! What writers were answered, and whether a client was told just that.

use std::collections::BTreeMap;

use crate::up::objects::Written;

/// The name of the object that is written last.
pub(super) const END: &str = "the-end";

/// What the writers were answered: for each object in order the revisions that it had, and none where it was deleted.
#[derive(Debug, Default)]
pub(super) struct History(BTreeMap<(Written, String), Vec<Option<u64>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Put,
    Delete,
}

/// What a client was told of one kind.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The revision of the list, if the client tells it.
    pub(super) listed: Option<u64>,
    /// What the list held, with revisions.
    pub(super) items: BTreeMap<String, u64>,
    /// What was told after that.
    pub(super) events: Vec<(Event, String, u64)>,
}

impl History {
    pub(super) fn add(&mut self, of: Written, name: &str, revision: Option<u64>) {
        self.0
            .entry((of, name.to_owned()))
            .or_default()
            .push(revision);
    }

    /// Adds what another has written, to objects of its own.
    pub(super) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl Seen {
    /// Fails unless every change after the list was told once, in order. Gives how many there were.
    #[track_caller]
    pub(super) fn check(&self, of: Written, history: &History) -> usize {
        let mut last = self.listed.unwrap_or(0);
        for (event, name, revision) in &self.events {
            assert!(
                *revision > last,
                "{event:?} of {name} at {revision} after {last}"
            );
            last = *revision;
        }
        // Whoever does not tell when the list was read has missed nothing after the first change that it was told of.
        let first = self
            .events
            .first()
            .map_or(0, |(_, _, revision)| revision - 1);
        let listed = self.listed.unwrap_or(first);
        let mut told: BTreeMap<&str, Vec<Option<u64>>> = BTreeMap::new();
        for (event, name, revision) in &self.events {
            let revision = (*event == Event::Put).then_some(*revision);
            told.entry(name).or_default().push(revision);
        }
        for ((kind, name), answered) in &history.0 {
            if *kind != of {
                continue;
            }
            let expected = after(answered, self.items.get(name).copied(), listed);
            let found = told.remove(name.as_str()).unwrap_or_default();
            assert_eq!(
                found, expected,
                "what was told of {name} after {listed}, and what was answered"
            );
        }
        assert!(told.is_empty(), "told of what nobody wrote: {told:?}");
        self.events.len()
    }
}

/// What happened to an object after a list in which it was, or was not.
fn after(answered: &[Option<u64>], item: Option<u64>, listed: u64) -> &[Option<u64>] {
    let known = if let Some(revision) = item {
        answered.iter().position(|one| *one == Some(revision))
    } else {
        // It was not there: what had been put before then had also been deleted.
        let before = |one: &Option<u64>| one.is_some_and(|revision| revision <= listed);
        answered.iter().rposition(before).map(|put| put + 1)
    };
    match (known, item) {
        (Some(position), _) => &answered[position + 1..],
        (None, None) => answered,
        (None, Some(revision)) => panic!("a list has an object at {revision}, which nobody wrote"),
    }
}
