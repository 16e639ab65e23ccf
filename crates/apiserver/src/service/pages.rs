//! The rest of long lists, for clients that read them in pages.
//!
//! All pages of a list show the state of its first one: a watch from there tells each later change once. So what the
//! first page has left over is kept for a while. A client that comes too late is told to begin anew.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::failure::{Failure, Reason, Result};
use crate::hub::size_of;

/// How many lists are kept.
const MAX_LISTS: usize = 64;

/// How much memory they take together.
const MAX_BYTES: usize = 128 << 20;

/// Lists that somebody is reading.
#[derive(Default)]
pub(super) struct Pages {
    lists: Mutex<VecDeque<Arc<Kept>>>,
}

struct Kept {
    id: uuid::Uuid,
    items: Vec<Value>,
    revision: u64,
    bytes: usize,
}

/// A part of a kept list.
pub(super) struct Part {
    pub(super) items: Vec<Value>,
    pub(super) revision: u64,
    /// What asks for the next part; empty after the last.
    pub(super) continuation: String,
    /// How many objects are left.
    pub(super) remaining: usize,
}

impl Pages {
    /// Keeps a list, and gives the first part of it.
    pub(super) fn begin(&self, items: Vec<Value>, revision: u64, limit: usize) -> Part {
        let kept = Kept {
            id: uuid::Uuid::new_v4(),
            bytes: items.iter().map(size_of).sum(),
            items,
            revision,
        };
        let kept = Arc::new(kept);
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.push_back(Arc::clone(&kept));
        let mut bytes: usize = lists.iter().map(|list| list.bytes).sum();
        while lists.len() > MAX_LISTS || (bytes > MAX_BYTES && lists.len() > 1) {
            bytes -= lists.pop_front().map_or(0, |oldest| oldest.bytes);
        }
        drop(lists);
        kept.part(0, limit)
    }

    /// Gives the part that a continuation asks for.
    pub(super) fn proceed(&self, continuation: &str, limit: usize) -> Result<Part> {
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
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lists.iter().find(|list| list.id == id).cloned();
        drop(lists);
        let kept = kept.filter(|kept| start <= kept.items.len());
        let part = kept.map(|kept| kept.part(start, limit));
        part.ok_or_else(|| {
            let message = "The provided continue parameter is too old to display a consistent list result. You must \
                           start a new list without the continue parameter.";
            Failure::new(Reason::Expired, message)
        })
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

    fn numbers(count: usize) -> Vec<Value> {
        (0..count).map(|number| json!(number)).collect()
    }

    #[test]
    fn parts_make_up_the_list() {
        let pages = Pages::default();
        let mut part = pages.begin(numbers(7), 42, 3);
        let mut all = part.items.clone();
        assert_eq!(part.remaining, 4);
        while !part.continuation.is_empty() {
            part = pages.proceed(&part.continuation, 3).unwrap();
            assert_eq!(part.revision, 42);
            all.extend(part.items.clone());
        }
        assert_eq!(all, numbers(7));
    }

    #[test]
    fn who_comes_too_late_begins_anew() {
        let pages = Pages::default();
        let first = pages.begin(numbers(7), 42, 3);
        for _ in 0..MAX_LISTS {
            pages.begin(numbers(7), 42, 3);
        }
        let failure = pages.proceed(&first.continuation, 3).err().unwrap();
        assert_eq!(failure.reason, Reason::Expired);
        for wrong in ["", "x", "x/1", "67e55044-10b1-426f-9247-bb680e5fe0c8/-1"] {
            let failure = pages.proceed(wrong, 3).err().unwrap();
            assert_eq!(failure.reason, Reason::BadRequest, "{wrong}");
        }
    }
}
