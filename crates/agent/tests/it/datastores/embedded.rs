//! On the embedded store, with consumers of all sorts.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Handle;
use tortie_agent::inputs::{Config, Syncer};
use tortie_store::Store;
use tortie_store::embedded::EmbeddedStore;
use tortie_sync::Status;

use crate::datastores::scenario;
use crate::datastores::world::{World, config, set};

pub(crate) fn store() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
    (Arc::new(store), folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_consumer_is_told_all_there_is_and_every_change() {
    let (store, _folder) = store();
    scenario::follow(&store, &config()).await;
}

/// A thread that blocks, and has other things to wait for.
fn engine_thread(mut syncer: Syncer, wakes: &Receiver<()>) -> World {
    let mut world = World::default();
    loop {
        wakes.recv().unwrap();
        while let Some(batch) = syncer.try_recv() {
            world.apply(&batch.updates);
            if batch.status == Status::InSync && world.has("last") {
                return world;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_without_a_runtime_is_woken() {
    let (store, _folder) = store();
    store.create(set("first", "192.0.2.0/24")).await.unwrap();
    let (sender, wakes) = channel();
    let wake = move || {
        // The thread may have ended already.
        let _ = sender.send(());
    };
    let config = Config {
        wake: Some(Arc::new(wake)),
        ..config()
    };
    let syncer = Syncer::start(&store, &config, &Handle::current());
    let thread = std::thread::spawn(move || engine_thread(syncer, &wakes));
    store.create(set("last", "198.51.100.0/24")).await.unwrap();
    let world = tokio::task::spawn_blocking(|| thread.join().unwrap());
    let expected = World::of(&*store, &config.kinds).await;
    world.await.unwrap().assert_is(&expected, "the thread");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_waits_for_changes_alone_may_block() {
    let (store, _folder) = store();
    store.create(set("first", "192.0.2.0/24")).await.unwrap();
    let mut syncer = Syncer::start(&store, &config(), &Handle::current());
    let world = tokio::task::spawn_blocking(move || {
        let mut world = World::default();
        while let Some(batch) = syncer.recv_timeout(Duration::from_secs(30)) {
            world.apply(&batch.updates);
            if batch.status == Status::InSync {
                assert!(syncer.recv_timeout(Duration::from_millis(20)).is_none());
                return world;
            }
        }
        panic!("not in sync: {world:?}");
    });
    let expected = World::of(&*store, &config().kinds).await;
    world.await.unwrap().assert_is(&expected, "the thread");
}
