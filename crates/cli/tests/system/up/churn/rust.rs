//! kube-rs follows objects.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::runtime::watcher::{self, Event as WatchEvent};
use kube::runtime::{reflector, watcher as watch};

use super::history::{END, Event, Seen};
use crate::up::objects::{Written, revision};

const PAGE: u32 = 50;

/// How often a watch ends, and the next goes on from there.
const TURN: Duration = Duration::from_secs(3);

fn config(turn: Duration) -> watcher::Config {
    let seconds = u32::try_from(turn.as_secs()).unwrap();
    watcher::Config::default().page_size(PAGE).timeout(seconds)
}

/// Notes all that a watch tells, until the end.
pub(super) async fn follow(api: Api<DynamicObject>, time: Duration) -> Seen {
    let turn = TURN.max(time / 40);
    let mut events = std::pin::pin!(watch(api, config(turn)));
    let mut seen = Seen::default();
    let mut is_listed = false;
    loop {
        let event = events.next().await.expect("a watch has no end");
        let (what, object) = match event.unwrap_or_else(|error| panic!("{error}")) {
            WatchEvent::Init => {
                assert!(!is_listed, "everything had to be listed again");
                continue;
            }
            WatchEvent::InitApply(object) => {
                seen.items.insert(name(&object), revision(&object));
                continue;
            }
            WatchEvent::InitDone => {
                is_listed = true;
                continue;
            }
            WatchEvent::Apply(object) => (Event::Put, object),
            WatchEvent::Delete(object) => (Event::Delete, object),
        };
        let name = name(&object);
        let is_end = name == END;
        seen.events.push((what, name, revision(&object)));
        if is_end {
            return seen;
        }
    }
}

/// What a reflector keeps in the end, by name and revision.
pub(super) async fn reflect(api: Api<DynamicObject>) -> BTreeMap<String, u64> {
    let resource = Written::ALL.map(Written::resource);
    let resource = resource
        .into_iter()
        .find(|one| api.resource_url().contains(&one.plural));
    let writer = reflector::store::Writer::new(resource.unwrap());
    let reader = writer.as_reader();
    let mut events = std::pin::pin!(reflector(writer, watch(api, config(TURN))));
    while let Some(event) = events.try_next().await.unwrap() {
        if let WatchEvent::Apply(object) = event
            && name(&object) == END
        {
            break;
        }
    }
    let kept = reader.state();
    kept.iter()
        .map(|object| (name(object), revision(object)))
        .collect()
}

/// What is there, by name and revision.
pub(super) async fn list(api: Api<DynamicObject>) -> BTreeMap<String, u64> {
    let listed = api.list(&ListParams::default()).await.unwrap();
    let items = listed.items.iter();
    items
        .map(|object| (name(object), revision(object)))
        .collect()
}

fn name(object: &DynamicObject) -> String {
    object.metadata.name.clone().unwrap()
}
