//! A list while it is being read: what comes next is looked at first, and then read one by one, so that who reads knows what
//! that takes and need not have all of it.
//!
//! All of it is of one state. Where the storage can show a state for a while, objects are read from there when their turn
//! comes; elsewhere all of them were read at the beginning.

use std::collections::VecDeque;
use std::sync::Arc;

use tortie_store::embedded::{Most, Snapshot, Stored};

use super::decoded::{Decoded, Id};
use super::pages::{Pages, Scope, too_late};
use super::shared_read::Objects;
use crate::failure::{Failure, Reason, Result};
use crate::hub::{Hub, Object};
use crate::options::ListOptions;
use crate::registry::ResourceType;
use crate::storage::Storage;

/// How much is read together, in bytes of JSON, unless one object has more.
const PIECE: usize = 128 << 10;

/// How much is looked at together: to find the place of an object costs as much as to look at some.
const AHEAD: Most = Most {
    objects: 512,
    bytes: 64 << 20,
};

/// Up to how many bytes of JSON, what is left after a page is counted.
const COUNTED: usize = 4 << 20;

/// How much more memory than its JSON an object takes while it is read.
const WIDTH: usize = 12;

/// A list, or a page of one, while it is being read. Its methods block.
pub struct Listing {
    pub(super) of: ResourceType,
    pub(super) options: ListOptions,
    pub(super) scope: Scope,
    pub(super) source: Source,
    /// After what to go on.
    pub(super) position: Position,
    /// How many objects the page may still have.
    pub(super) left: usize,
    pub(super) upcoming: VecDeque<Upcoming>,
    /// How many of them are to be read next.
    pub(super) piece: usize,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) hub: Option<Arc<Hub>>,
    pub(super) decoded: Arc<Decoded>,
    pub(super) pages: Arc<Pages>,
    /// Of the pages before.
    pub(super) id: Option<uuid::Uuid>,
}

/// Where the objects of a list come from.
#[derive(Clone)]
pub(super) enum Source {
    /// Read when their turn comes.
    Snapshot(Snapshot),
    /// Those that are selected.
    Objects(Arc<Objects>),
}

/// How far a list has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// So many of the objects that were read at the beginning.
    Index(usize),
    /// After this namespace and name.
    After(String, String),
}

/// What comes next.
pub(super) enum Upcoming {
    Stored(Stored),
    Object(Object),
}

/// What stands at the end of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// Where the next page begins; empty on the last one.
    pub continuation: String,
    /// How many objects are left, where that is known.
    pub remaining: Option<usize>,
}

impl Listing {
    /// The state that a watch may continue from.
    pub fn revision(&self) -> u64 {
        self.source.revision()
    }

    /// The type of the objects.
    pub fn of(&self) -> &ResourceType {
        &self.of
    }

    /// Looks at what comes next: how much memory it takes to read that. Nothing if the page is over.
    pub fn look(&mut self) -> Result<Option<usize>> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.upcoming.is_empty() {
            self.upcoming = self.after(Most {
                objects: AHEAD.objects.min(self.left),
                ..AHEAD
            })?;
        }
        if self.upcoming.is_empty() {
            return Ok(None);
        }
        let mut bytes = 0;
        let piece = self.upcoming.iter().take_while(|next| {
            let is_within = bytes == 0 || bytes + next.bytes() <= PIECE;
            bytes += next.bytes();
            is_within
        });
        let widths: Vec<usize> = piece.map(|next| self.width(next)).collect();
        self.piece = widths.len();
        Ok(Some(widths.iter().sum()))
    }

    /// The next object of those that were looked at which is selected.
    pub fn next_object(&mut self) -> Result<Option<Object>> {
        while self.left > 0
            && self.piece > 0
            && let Some(next) = self.upcoming.pop_front()
        {
            self.piece -= 1;
            let object = match next {
                Upcoming::Object(object) => {
                    if let Position::Index(index) = &mut self.position {
                        *index += 1;
                    }
                    Some(object)
                }
                Upcoming::Stored(stored) => {
                    let object = self.read(&stored)?;
                    self.position = Position::After(stored.namespace, stored.name);
                    object
                }
            };
            if let Some(object) = object
                && self.options.selects(object.head())
            {
                self.left -= 1;
                return Ok(Some(object));
            }
        }
        Ok(None)
    }

    /// What there is after the page.
    pub fn end(&mut self) -> Result<End> {
        let most = Most {
            objects: usize::MAX,
            bytes: COUNTED,
        };
        let left = self.after(most)?;
        if left.is_empty() {
            return Ok(End::default());
        }
        let remaining = match &self.source {
            Source::Objects(_) => Some(left.len()),
            Source::Snapshot(_) if self.options.selects_all() => {
                let bytes: usize = left.iter().map(Upcoming::bytes).sum();
                (bytes < COUNTED).then_some(left.len())
            }
            Source::Snapshot(_) => None,
        };
        let id = match self.id {
            Some(id) => id,
            None => self.pages.keep(self.source.clone(), self.scope.clone()),
        };
        self.id = Some(id);
        let continuation = match &self.position {
            Position::Index(index) => format!("{id}/{index}"),
            Position::After(namespace, name) => format!("{id}/{namespace}/{name}"),
        };
        Ok(End {
            continuation,
            remaining,
        })
    }

    fn after(&self, most: Most) -> Result<VecDeque<Upcoming>> {
        match (&self.source, &self.position) {
            (Source::Snapshot(snapshot), position) => {
                let after = match position {
                    Position::After(namespace, name) if !name.is_empty() => {
                        Some((namespace.as_str(), name.as_str()))
                    }
                    _ => None,
                };
                let found =
                    self.storage
                        .look(snapshot, &self.of, self.scope.namespace(), after, most);
                let found = found.map_err(|failure| self.explained(failure))?;
                Ok(found.into_iter().map(Upcoming::Stored).collect())
            }
            (Source::Objects(objects), Position::Index(index)) => {
                let mut bytes = 0;
                let objects = objects.items.iter().skip(*index).take(most.objects);
                let objects = objects.take_while(|object| {
                    let is_within = bytes < most.bytes;
                    bytes += object.size();
                    is_within
                });
                Ok(objects.cloned().map(Upcoming::Object).collect())
            }
            (Source::Objects(_), Position::After(..)) => Err(too_late()),
        }
    }

    fn width(&self, next: &Upcoming) -> usize {
        match next {
            Upcoming::Object(object) => object.size(),
            Upcoming::Stored(stored) => {
                let id = self.id_of(stored);
                if self.known(stored).is_some() || self.decoded.has(&id) {
                    stored.bytes
                } else {
                    stored.bytes.saturating_mul(WIDTH)
                }
            }
        }
    }

    /// None if it cannot be read.
    fn read(&self, stored: &Stored) -> Result<Option<Object>> {
        let Source::Snapshot(snapshot) = &self.source else {
            return Err(too_late());
        };
        if let Some(known) = self.known(stored) {
            return Ok(Some(known));
        }
        let Stored {
            namespace, name, ..
        } = stored;
        self.decoded.get(self.id_of(stored), stored.bytes, || {
            let read = self.storage.read(snapshot, &self.of, namespace, name);
            let read = read.map_err(|failure| self.explained(failure))?;
            Ok(read.map(Object::new))
        })
    }

    /// The one that the hub has, if it is in this state.
    fn known(&self, stored: &Stored) -> Option<Object> {
        let hub = self.hub.as_ref()?;
        hub.at(&stored.namespace, &stored.name, stored.revision)
    }

    fn id_of(&self, stored: &Stored) -> Id {
        Id::new(&self.of, &stored.namespace, &stored.name, stored.revision)
    }

    /// A snapshot that has ended is a page that comes too late.
    fn explained(&self, failure: Failure) -> Failure {
        if failure.reason == Reason::Expired && self.id.is_some() {
            return too_late();
        }
        failure
    }
}

impl Source {
    pub(super) fn revision(&self) -> u64 {
        match self {
            Self::Snapshot(snapshot) => snapshot.revision(),
            Self::Objects(objects) => objects.revision,
        }
    }

    /// Before the first object.
    pub(super) fn start(&self) -> Position {
        match self {
            Self::Snapshot(_) => Position::After(String::new(), String::new()),
            Self::Objects(_) => Position::Index(0),
        }
    }

    /// The position that a token names.
    pub(super) fn position(&self, token: &str) -> Option<Position> {
        match self {
            Self::Snapshot(_) => {
                let (namespace, name) = token.split_once('/')?;
                Some(Position::After(namespace.to_owned(), name.to_owned()))
            }
            Self::Objects(_) => token.parse().ok().map(Position::Index),
        }
    }
}

impl Upcoming {
    fn bytes(&self) -> usize {
        match self {
            Self::Stored(stored) => stored.bytes,
            Self::Object(object) => object.size(),
        }
    }
}
