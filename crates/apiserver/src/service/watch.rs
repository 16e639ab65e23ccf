//! Watches: what changes, as the client that asked would see it.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::{Value, json};

use super::Service;
use crate::failure::Result;
use crate::hub::{Hub, HubEvent, Meaning, Object, Position};
use crate::options::{ListOptions, Revision};
use crate::registry::ResourceType;

/// How many changes are taken from a hub at once.
const BATCH: usize = 64;

/// One change, for one client.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// What happened.
    pub kind: WatchKind,
    /// The object, or what stands for it.
    pub object: Object,
    /// The change, if others may see the same.
    origin: Option<Arc<HubEvent>>,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchKind {
    /// It came into the selection.
    Added,
    /// It changed.
    Modified,
    /// It left the selection.
    Deleted,
    /// Nothing happened; the revision can be used to resume.
    Bookmark,
}

/// The watch of one client.
pub struct Watching {
    hub: Arc<Hub>,
    of: ResourceType,
    options: ListOptions,
    position: Position,
    pending: VecDeque<WatchEvent>,
}

impl WatchEvent {
    fn own(kind: WatchKind, object: Object) -> Self {
        Self {
            kind,
            object,
            origin: None,
        }
    }

    /// What `make` gives: once for all clients that are to see the whole object.
    pub fn text(&self, make: impl FnOnce() -> Bytes) -> Bytes {
        let meaning = match self.kind {
            WatchKind::Added => Meaning::Added,
            WatchKind::Modified => Meaning::Modified,
            WatchKind::Deleted => Meaning::Deleted,
            WatchKind::Bookmark => return make(),
        };
        match &self.origin {
            Some(origin) => origin.text(meaning, make),
            None => make(),
        }
    }
}

impl WatchKind {
    /// The word that clients look at.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

impl Service {
    /// Follows the objects that the options select: after a revision, or beginning with those that are there.
    pub async fn watch(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Watching> {
        let initial = options.sends_initial;
        let since = match options.revision {
            Revision::At(revision) if initial != Some(true) => self.snapshots.before(revision),
            _ => None,
        };
        let hub = self.hubs.of(of, &self.storage, since).await?;
        let (objects, position) = match options.revision {
            Revision::At(revision) if initial != Some(true) => {
                (Vec::new(), hub.from_revision(revision, namespace)?)
            }
            _ => hub.from_now(namespace),
        };
        let mut watching = Watching {
            hub,
            of: of.clone(),
            options: options.clone(),
            position,
            pending: VecDeque::new(),
        };
        if initial != Some(false) {
            for object in objects {
                if watching.selects(object.head()) {
                    let event = WatchEvent::own(WatchKind::Added, object);
                    watching.pending.push_back(event);
                }
            }
        }
        if initial == Some(true) && options.has_bookmarks {
            let mut object = watching.bookmark_object();
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            let bookmark = WatchEvent::own(WatchKind::Bookmark, Object::new(object));
            watching.pending.push_back(bookmark);
        }
        Ok(watching)
    }
}

impl Watching {
    /// The next change. Dropping the future loses none.
    pub async fn next(&mut self) -> Result<WatchEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            let events = self.hub.next(&mut self.position, BATCH).await?;
            for event in events {
                if let Some(event) = self.seen(&event) {
                    self.pending.push_back(event);
                }
            }
        }
    }

    /// A change that was taken with those before it.
    pub fn next_ready(&mut self) -> Option<WatchEvent> {
        self.pending.pop_front()
    }

    /// Says how far the watch has come. Only right when nothing is pending, which is so while [`Watching::next`] waits.
    pub fn bookmark(&self) -> WatchEvent {
        WatchEvent::own(WatchKind::Bookmark, Object::new(self.bookmark_object()))
    }

    fn bookmark_object(&self) -> Value {
        json!({
            "kind": self.of.kind,
            "apiVersion": self.of.api_version(),
            "metadata": {
                "resourceVersion": self.hub.reached(&self.position).to_string(),
                "creationTimestamp": null,
            },
        })
    }

    /// The type of the objects.
    pub fn of(&self) -> &ResourceType {
        &self.of
    }

    /// Whether the client wants bookmarks.
    pub fn wants_bookmarks(&self) -> bool {
        self.options.has_bookmarks && self.pending.is_empty()
    }

    fn selects(&self, object: &Value) -> bool {
        self.options.selects(object)
    }

    /// A change as it looks to who sees only selected objects.
    fn seen(&self, event: &Arc<HubEvent>) -> Option<WatchEvent> {
        let before = event.before.as_ref();
        let before = before.filter(|object| self.selects(object.head()));
        let after = event.after.as_ref();
        let after = after.filter(|object| self.selects(object.head()));
        let (kind, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => (WatchKind::Added, after.clone()),
            (Some(_), Some(after)) => (WatchKind::Modified, after.clone()),
            (Some(_), None) => (WatchKind::Deleted, event.last()?),
        };
        Some(WatchEvent {
            kind,
            object,
            origin: Some(Arc::clone(event)),
        })
    }
}
