//! Fills a cache with what a follower tells.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use kube::{Client, Resource as _};
use tortie_sync::kubernetes::{Endpoint, KubernetesSource, Selection};
use tortie_sync::{Change, Follower, Item, Keeper, Name, Pace, State, Status};

use super::kept::Place;
use super::{CacheOptions, Shared};
use crate::key::ObjectKey;
use crate::object::Object;

/// Tells a cache, until it is gone.
struct Filler<K>(Weak<Shared<K>>);

/// Follows all that the options select.
pub(super) fn follower<K: Object>(
    client: Client,
    options: CacheOptions<K>,
    cache: Weak<Shared<K>>,
) -> Follower<K, impl Keeper<K>> {
    let trim = options.trim;
    let read = move |object: &str| {
        let mut object: K = serde_json::from_str(object)?;
        object.trim();
        if let Some(trim) = trim {
            trim(&mut object);
        }
        Ok(Item {
            name: Name::new(object.namespace().unwrap_or_default(), object.name()),
            version: object.version().into(),
            state: State::Present(object),
        })
    };
    let selection = Selection {
        namespace: options.namespace.unwrap_or_default(),
        labels: options.labels.unwrap_or_default(),
        fields: options.fields.unwrap_or_default(),
        ..Selection::default()
    };
    let source = KubernetesSource::new(client, vec![Endpoint::of::<K::Kind>()], read)
        .selecting(selection)
        .in_pages_of(options.page_size);
    let topic = K::Kind::kind(&()).into_owned();
    Follower::new(topic, Arc::new(source), Filler(cache), Pace::default())
}

#[async_trait]
impl<K: Object> Keeper<K> for Filler<K> {
    fn is_empty(&self) -> bool {
        let cache = self.0.upgrade();
        cache.is_none_or(|cache| cache.read().objects.is_empty())
    }

    fn has(&self, name: &Name) -> bool {
        let cache = self.0.upgrade();
        cache.is_some_and(|cache| cache.read().objects.contains(name as &dyn Place))
    }

    async fn take(&mut self, changes: Vec<Change<K>>, _: Status) -> usize {
        let count = changes.len();
        let Some(cache) = self.0.upgrade() else {
            return 0;
        };
        let mut state = cache.write();
        for change in changes {
            let (name, object) = match change {
                Change::Set(item) => (item.name, item.state),
                Change::Remove(name) => (name, State::Absent),
            };
            match object {
                State::Present(object) => state.apply(object),
                State::Absent => state.delete(&name),
                State::Unreadable(error, _) => {
                    let key = ObjectKey::from(&name);
                    tracing::error!(%key, error, "Object cannot be read; it counts as absent");
                    state.delete(&name);
                }
            }
        }
        count
    }

    fn begin_list(&mut self) {
        if let Some(cache) = self.0.upgrade() {
            cache.write().begin_list();
        }
    }

    async fn end_list(&mut self) -> usize {
        let Some(cache) = self.0.upgrade() else {
            return 0;
        };
        let gone = cache.write().end_list();
        cache.synced.send_replace(true);
        gone
    }
}
