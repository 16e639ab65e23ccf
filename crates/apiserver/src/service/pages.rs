//! The rest of long lists, for clients that read them in pages.
//!
//! All pages of a list show the state of its first one: a watch from there tells each later change once. So what the
//! first page has left over is kept for a while. A client that comes too late is told to begin anew.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Reason, Result};
use crate::hub::Object;
use crate::options::ListOptions;
use crate::registry::ResourceType;
use crate::selector::{FieldSelector, LabelSelector};

/// How many lists are kept.
const MAX_LISTS: usize = 64;

/// How much memory they take together, beyond objects that are as they were, which others have too.
const MAX_BYTES: usize = 64 << 20;

/// How long they are kept, as in Kubernetes.
const LIFETIME: Duration = Duration::from_mins(5);

/// Lists that somebody is reading.
#[derive(Default)]
pub(super) struct Pages {
    lists: Mutex<VecDeque<Arc<Kept>>>,
}

struct Kept {
    id: uuid::Uuid,
    scope: Scope,
    items: Vec<Object>,
    revision: u64,
    bytes: usize,
    end: Instant,
}

/// What a list is of, and whose it is: nobody else may go on with it, nor as if it were another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    of: (&'static str, &'static str),
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    tiers: Option<BTreeSet<String>>,
    reader: String,
}

/// A part of a kept list.
pub(super) struct Part {
    pub(super) items: Vec<Object>,
    pub(super) revision: u64,
    /// What asks for the next part; empty after the last.
    pub(super) continuation: String,
    /// How many objects are left.
    pub(super) remaining: usize,
}

impl Scope {
    pub(super) fn new(
        of: &ResourceType,
        namespace: Option<&str>,
        options: &ListOptions,
        reader: &str,
    ) -> Self {
        Self {
            of: (of.group, of.plural),
            namespace: namespace.map(ToOwned::to_owned),
            labels: options.labels.clone(),
            fields: options.fields.clone(),
            tiers: options.tiers.clone(),
            reader: reader.to_owned(),
        }
    }
}

impl Pages {
    /// Keeps a list, and gives the first part of it.
    pub(super) fn begin(
        &self,
        items: Vec<Object>,
        revision: u64,
        limit: usize,
        scope: Scope,
    ) -> Part {
        let own = items.iter().filter(|item| !item.is_shared());
        let kept = Kept {
            id: uuid::Uuid::new_v4(),
            scope,
            bytes: own.map(Object::size).sum(),
            items,
            revision,
            end: Instant::now() + LIFETIME,
        };
        let kept = Arc::new(kept);
        let mut lists = self.lists();
        lists.push_back(Arc::clone(&kept));
        let mut bytes: usize = lists.iter().map(|list| list.bytes).sum();
        while lists.len() > MAX_LISTS || (bytes > MAX_BYTES && lists.len() > 1) {
            bytes -= lists.pop_front().map_or(0, |oldest| oldest.bytes);
        }
        drop(lists);
        kept.part(0, limit)
    }

    /// Gives the part that a continuation asks for.
    pub(super) fn proceed(&self, continuation: &str, limit: usize, scope: &Scope) -> Result<Part> {
        let parsed = continuation.split_once('/');
        let parsed = parsed.and_then(|(id, start)| {
            Some((
                uuid::Uuid::parse_str(id).ok()?,
                start.parse::<usize>().ok()?,
            ))
        });
        let Some((id, start)) = parsed else {
            let message = "continue: must be a token that the page before gave";
            return Err(Failure::bad_request(message));
        };
        let kept = self.lists().iter().find(|list| list.id == id).cloned();
        if kept.as_ref().is_some_and(|kept| kept.scope != *scope) {
            let message = "continue: the token is of another list; the next page has the path and the selectors of the first";
            return Err(Failure::bad_request(message));
        }
        let kept = kept.filter(|kept| start <= kept.items.len());
        let part = kept.map(|kept| kept.part(start, limit));
        part.ok_or_else(|| {
            let message = "The provided continue parameter is too old to display a consistent list result. You must \
                           start a new list without the continue parameter.";
            Failure::new(Reason::Expired, message)
        })
    }
}

impl Pages {
    /// Those whose time is not over; they are in the order in which it will be.
    fn lists(&self) -> MutexGuard<'_, VecDeque<Arc<Kept>>> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut lists, Instant::now());
        lists
    }
}

fn forget(lists: &mut VecDeque<Arc<Kept>>, now: Instant) {
    while lists.front().is_some_and(|oldest| oldest.end <= now) {
        lists.pop_front();
    }
}

impl Kept {
    fn part(&self, start: usize, limit: usize) -> Part {
        let end = match limit {
            0 => self.items.len(),
            limit => self.items.len().min(start.saturating_add(limit)),
        };
        let remaining = self.items.len() - end;
        Part {
            items: self.items.get(start..end).unwrap_or_default().to_vec(),
            revision: self.revision,
            continuation: if remaining == 0 {
                String::new()
            } else {
                format!("{}/{end}", self.id)
            },
            remaining,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::options::Query;
    use crate::registry::Registry;

    fn numbers(count: usize) -> Vec<Object> {
        (0..count)
            .map(|number| Object::new(json!(number)))
            .collect()
    }

    /// Of a path and a query, for a reader.
    fn scope(plural: &str, namespace: Option<&str>, query: &str, reader: &str) -> Scope {
        let registry = Registry::standalone();
        let of = registry.find("projectcalico.org", "v3", plural).unwrap();
        let options = Query::parse(query).list_options(of).unwrap();
        Scope::new(of, namespace, &options, reader)
    }

    fn tiers() -> Scope {
        scope("tiers", None, "", "ann")
    }

    #[test]
    fn parts_make_up_the_list() {
        let pages = Pages::default();
        let mut part = pages.begin(numbers(7), 42, 3, tiers());
        let mut all = part.items.clone();
        assert_eq!(part.remaining, 4);
        while !part.continuation.is_empty() {
            part = pages.proceed(&part.continuation, 3, &tiers()).unwrap();
            assert_eq!(part.revision, 42);
            all.extend(part.items.clone());
        }
        assert_eq!(all, numbers(7));
    }

    #[test]
    fn who_comes_too_late_begins_anew() {
        let pages = Pages::default();
        let first = pages.begin(numbers(7), 42, 3, tiers());
        for _ in 0..MAX_LISTS {
            pages.begin(numbers(7), 42, 3, tiers());
        }
        let failure = pages
            .proceed(&first.continuation, 3, &tiers())
            .err()
            .unwrap();
        assert_eq!(failure.reason, Reason::Expired);
        for wrong in ["", "x", "x/1", "67e55044-10b1-426f-9247-bb680e5fe0c8/-1"] {
            let failure = pages.proceed(wrong, 3, &tiers()).err().unwrap();
            assert_eq!(failure.reason, Reason::BadRequest, "{wrong}");
        }
    }

    #[test]
    fn lists_are_kept_for_a_while() {
        let pages = Pages::default();
        let before = Instant::now();
        let first = pages.begin(numbers(7), 42, 3, tiers());
        forget(&mut pages.lists(), before);
        assert!(pages.proceed(&first.continuation, 3, &tiers()).is_ok());
        forget(&mut pages.lists(), Instant::now() + LIFETIME);
        let failure = pages
            .proceed(&first.continuation, 3, &tiers())
            .err()
            .unwrap();
        assert_eq!(failure.reason, Reason::Expired);
        assert!(pages.lists().is_empty());
    }

    #[test]
    fn a_token_is_good_for_its_own_list_alone() {
        let pages = Pages::default();
        let own = || {
            scope(
                "networkpolicies",
                Some("shop"),
                "labelSelector=a%3Db",
                "ann",
            )
        };
        let first = pages.begin(numbers(7), 42, 3, own());
        for other in [
            scope("networksets", Some("shop"), "labelSelector=a%3Db", "ann"),
            scope(
                "networkpolicies",
                Some("bank"),
                "labelSelector=a%3Db",
                "ann",
            ),
            scope("networkpolicies", None, "labelSelector=a%3Db", "ann"),
            scope(
                "networkpolicies",
                Some("shop"),
                "labelSelector=a%3Dc",
                "ann",
            ),
            scope("networkpolicies", Some("shop"), "", "ann"),
            scope(
                "networkpolicies",
                Some("shop"),
                "labelSelector=a%3Db",
                "bob",
            ),
        ] {
            let failure = pages.proceed(&first.continuation, 3, &other).err().unwrap();
            assert_eq!(failure.reason, Reason::BadRequest, "{other:?}");
        }
        assert!(pages.proceed(&first.continuation, 3, &own()).is_ok());
    }
}
