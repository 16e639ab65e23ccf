//! The blocks of one node. A cluster may have many thousands, and who follows something remembers each object's name and version.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use tortie_api::{Kind, Resource};
use tortie_store::{Query, Store, StoreSource};
use tortie_sync::{Change, Events, Failure, Item, Part, Reading, Revision, Source, State, Topic};

use super::feed::Input;

/// Claims on blocks, but for those of other nodes.
struct OwnBlocks {
    all: StoreSource,
    node: Arc<str>,
}

/// What is followed of the blocks of a datastore.
pub(super) fn topic(store: &Arc<dyn Store>, node: &str) -> Topic<Input> {
    let query = Query::all(Kind::BlockAffinity);
    Topic {
        name: query.kind.to_string(),
        source: Arc::new(OwnBlocks {
            all: StoreSource::new(Arc::clone(store), query),
            node: node.into(),
        }),
        is_optional: false,
    }
}

/// One that cannot be read may be the node's own.
fn concerns(item: &Item<Input>, node: &str) -> bool {
    match &item.state {
        State::Present(Input::Resource(Resource::BlockAffinity(affinity))) => {
            affinity.spec.node == node
        }
        _ => true,
    }
}

#[async_trait]
impl Source<Input> for OwnBlocks {
    fn list(&self, reading: Reading) -> BoxStream<'_, Result<Part<Input>, Failure>> {
        let parts = self.all.list(reading).map_ok(|mut part: Part<Input>| {
            part.items.retain(|item| concerns(item, &self.node));
            part
        });
        parts.boxed()
    }

    async fn watch(&self, from: &Revision) -> Result<Events<Input>, Failure> {
        let events: Events<Input> = self.all.watch(from).await?;
        let node = Arc::clone(&self.node);
        let own = events.map_ok(move |mut event| {
            event.change = event.change.filter(|change| match change {
                Change::Set(item) => concerns(item, &node),
                // Of others nothing is known, so that there is nothing to forget.
                Change::Remove(_) => true,
            });
            event
        });
        Ok(own.boxed())
    }
}
