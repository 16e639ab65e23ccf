//! The last changes, all of them and by namespace.
//!
//! Changes are counted from 0, and a watcher's place is the number of the next one. Who watches one namespace looks only
//! at the numbers of its changes, and sleeps while others change.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;

use super::event::HubEvent;

/// How many changes are kept for watchers that come back or are behind.
pub(super) const MAX_CHANGES: usize = 4096;

/// The same by size, for large objects.
const MAX_BYTES: usize = 32 << 20;

/// Up to so many namespaces are kept whether needed or not.
const FEWEST_LANES: usize = 64;

#[derive(Default)]
pub(super) struct Recent {
    events: VecDeque<Arc<HubEvent>>,
    /// How many changes came before those.
    forgotten: usize,
    bytes: usize,
    /// Told whenever something was added, and at the end.
    changed: Arc<Notify>,
    lanes: HashMap<String, Lane>,
    /// With so many, those that nobody needs are dropped.
    lanes_wanted: usize,
    /// Namespaces with changes that have not been told yet.
    untold: HashSet<String>,
}

/// The changes of one namespace.
#[derive(Default)]
struct Lane {
    numbers: VecDeque<usize>,
    /// Changes with lower numbers may be forgotten.
    complete_from: usize,
    changed: Arc<Notify>,
}

impl Lane {
    /// Whether changes are kept or somebody watches. Who comes later begins after all that is forgotten, so such a one
    /// needs nothing of a lane that is not.
    fn is_needed(&self) -> bool {
        !self.numbers.is_empty() || Arc::strong_count(&self.changed) > 1
    }
}

/// The changes after a place.
pub(super) struct After {
    pub(super) events: Vec<Arc<HubEvent>>,
    /// Where to go on.
    pub(super) next: usize,
    /// Whether these are all that there are.
    pub(super) is_all: bool,
}

impl Recent {
    /// Where changes begin that are still to come.
    pub(super) fn end(&self) -> usize {
        self.forgotten + self.events.len()
    }

    /// Where changes after a revision begin.
    pub(super) fn place_after(&self, revision: u64) -> usize {
        let seen = self
            .events
            .partition_point(|event| event.revision <= revision);
        self.forgotten + seen
    }

    /// What is told of changes of one namespace, or of all.
    pub(super) fn subscribe(&mut self, namespace: Option<&str>) -> Arc<Notify> {
        let Some(namespace) = namespace else {
            return Arc::clone(&self.changed);
        };
        Arc::clone(&self.lane(namespace).changed)
    }

    /// Keeps a change, and gives the revision of the newest one that is forgotten for it.
    pub(super) fn push(&mut self, event: HubEvent) -> Option<u64> {
        let number = self.end();
        if !event.namespace().is_empty() {
            self.lane(event.namespace()).numbers.push_back(number);
            self.untold.insert(event.namespace().to_owned());
        }
        self.bytes += event.size;
        self.events.push_back(Arc::new(event));
        let mut forgotten = None;
        while self.events.len() > MAX_CHANGES || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            forgotten = self.forget_oldest().or(forgotten);
        }
        forgotten
    }

    /// Wakes those whom the changes since the last call concern.
    pub(super) fn tell(&mut self) {
        self.changed.notify_waiters();
        for namespace in self.untold.drain() {
            if let Some(lane) = self.lanes.get(&namespace) {
                lane.changed.notify_waiters();
            }
        }
    }

    /// Wakes all, because nothing more will come.
    pub(super) fn tell_all(&self) {
        self.changed.notify_waiters();
        for lane in self.lanes.values() {
            lane.changed.notify_waiters();
        }
    }

    /// At most so many changes from a place on; none if some of them are forgotten.
    pub(super) fn after(
        &self,
        place: usize,
        namespace: Option<&str>,
        most: usize,
    ) -> Option<After> {
        let Some(namespace) = namespace else {
            let first = place.checked_sub(self.forgotten)?;
            let events: Vec<_> = self.events.iter().skip(first).take(most).cloned().collect();
            let next = place + events.len();
            return Some(After {
                events,
                next,
                is_all: next >= self.end(),
            });
        };
        let lane = self.lanes.get(namespace)?;
        if place < lane.complete_from {
            return None;
        }
        let first = lane.numbers.partition_point(|number| *number < place);
        let numbers = lane.numbers.iter().skip(first).take(most);
        let events = numbers.map(|number| Arc::clone(&self.events[number - self.forgotten]));
        let events: Vec<_> = events.collect();
        let is_all = first + events.len() >= lane.numbers.len();
        let next = match lane.numbers.get(first + events.len()) {
            Some(next) => *next,
            None => self.end(),
        };
        Some(After {
            events,
            next,
            is_all,
        })
    }

    fn forget_oldest(&mut self) -> Option<u64> {
        let oldest = self.events.pop_front()?;
        self.forgotten += 1;
        self.bytes -= oldest.size;
        if let Some(lane) = self.lanes.get_mut(oldest.namespace()) {
            lane.numbers.pop_front();
            lane.complete_from = self.forgotten;
        }
        Some(oldest.revision)
    }

    fn lane(&mut self, namespace: &str) -> &mut Lane {
        if self.lanes.len() >= self.lanes_wanted.max(FEWEST_LANES) {
            self.lanes.retain(|_, lane| lane.is_needed());
            self.lanes_wanted = 2 * self.lanes.len();
        }
        self.lanes.entry(namespace.to_owned()).or_default()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    #[cfg(test)]
    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }
}
