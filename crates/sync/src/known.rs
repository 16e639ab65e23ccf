//! What has been told of the objects of one topic: which there are, and in which version.

use std::collections::HashMap;

use crate::object::{Delta, Item, Name, State};

/// The objects that are there, as far as was told.
#[derive(Debug, Default)]
pub(crate) struct Known {
    objects: HashMap<Name, Seen>,
    /// Counts the readings of everything.
    reading: u64,
}

#[derive(Debug)]
struct Seen {
    version: Box<str>,
    /// The last reading that it was found in, or that was over or under way when it came.
    reading: u64,
}

impl Known {
    /// All there are begin to be told.
    pub(crate) fn begin(&mut self) {
        self.reading += 1;
    }

    /// All there are have been told: gives what is gone.
    pub(crate) fn end<V>(&mut self) -> Vec<Delta<V>> {
        let gone = self
            .objects
            .extract_if(|_, seen| seen.reading != self.reading);
        gone.map(|(name, _)| removal(name)).collect()
    }

    /// Whether there are no objects, as far as was told.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether there is an object of this name, as far as was told.
    pub(crate) fn has(&self, name: &Name) -> bool {
        self.objects.contains_key(name)
    }

    /// There is this object; nothing to tell if that is known.
    pub(crate) fn set<V>(&mut self, item: Item<V>) -> Option<Delta<V>> {
        let Item {
            name,
            version,
            state,
        } = item;
        let reading = self.reading;
        let is_new = if let Some(seen) = self.objects.get_mut(&name) {
            seen.reading = reading;
            if seen.version == version {
                return None;
            }
            seen.version = version;
            false
        } else {
            let seen = Seen { version, reading };
            self.objects.insert(name.clone(), seen);
            true
        };
        Some(Delta {
            name,
            is_new,
            state,
        })
    }

    /// This object is gone; nothing to tell if it never was there.
    pub(crate) fn remove<V>(&mut self, name: Name) -> Option<Delta<V>> {
        self.objects.remove(&name).map(|_| removal(name))
    }
}

fn removal<V>(name: Name) -> Delta<V> {
    Delta {
        name,
        is_new: false,
        state: State::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, version: &str) -> Item<()> {
        Item {
            version: version.into(),
            ..Item::unreadable(Name::new("ns", name), String::new(), None)
        }
    }

    /// `+a` for a new object, `=a` for a changed one, `-a` for one that is gone.
    fn told(deltas: impl IntoIterator<Item = Delta<()>>) -> Vec<String> {
        let mut told: Vec<String> = deltas
            .into_iter()
            .map(|delta| {
                assert_eq!(delta.name.namespace(), "ns");
                let sign = match delta.state {
                    State::Absent => '-',
                    _ if delta.is_new => '+',
                    _ => '=',
                };
                format!("{sign}{}", delta.name.name())
            })
            .collect();
        told.sort();
        told
    }

    fn replace(known: &mut Known, items: Vec<Item<()>>) -> Vec<Delta<()>> {
        known.begin();
        let mut deltas: Vec<_> = items
            .into_iter()
            .filter_map(|item| known.set(item))
            .collect();
        deltas.extend(known.end());
        deltas
    }

    #[test]
    fn only_what_differs_from_the_reading_before_is_told() {
        let mut known = Known::default();
        let first = vec![item("a", "1"), item("b", "1"), item("c", "1")];
        assert_eq!(told(replace(&mut known, first)), ["+a", "+b", "+c"]);
        let second = vec![item("a", "1"), item("b", "2"), item("d", "1")];
        assert_eq!(told(replace(&mut known, second)), ["+d", "-c", "=b"]);
        assert_eq!(told(replace(&mut known, Vec::new())), ["-a", "-b", "-d"]);
    }

    #[test]
    fn repeated_changes_are_told_once() {
        let mut known = Known::default();
        assert_eq!(told(known.set(item("a", "1"))), ["+a"]);
        assert_eq!(told(known.set(item("a", "1"))), [""; 0]);
        assert_eq!(told(known.set(item("a", "2"))), ["=a"]);
        assert_eq!(told(known.remove::<()>(Name::new("ns", "a"))), ["-a"]);
        assert_eq!(told(known.remove::<()>(Name::new("ns", "a"))), [""; 0]);
        assert_eq!(told(known.set(item("a", "2"))), ["+a"]);
    }

    #[test]
    fn what_came_after_a_reading_is_not_gone_at_the_next_if_that_has_it() {
        let mut known = Known::default();
        replace(&mut known, vec![item("a", "1")]);
        known.set(item("b", "2"));
        assert_eq!(
            told(replace(&mut known, vec![item("a", "1"), item("b", "2")])),
            [""; 0]
        );
    }

    #[test]
    fn a_reading_that_was_broken_off_takes_nothing_away() {
        let mut known = Known::default();
        let both = || vec![item("a", "1"), item("b", "1")];
        replace(&mut known, both());
        known.begin();
        assert_eq!(told(known.set(item("a", "2"))), ["=a"]);
        assert_eq!(told(replace(&mut known, both())), ["=a"]);
    }
}
