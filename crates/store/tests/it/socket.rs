//! The datastore through a socket: the contract, restarts of the server, and the socket's file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Barrier, oneshot};
use tokio::task::JoinHandle;
use tortie_api::network_set::NetworkSetSpec;
use tortie_api::{NetworkSet, Resource};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::socket::{SocketStore, bind, serve};
use tortie_store::{
    Change, Error, Key, Kind, List, Precondition, Query, Result, Revision, Store, Watch,
};
use tortie_store_contract::Subject;

/// A served store in a folder of its own.
struct Server {
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    folder: Arc<TempDir>,
}

impl Server {
    fn start(folder: Arc<TempDir>) -> Self {
        let store = EmbeddedStore::open(folder.path().join("store.redb")).unwrap();
        let listener = bind(socket(&folder)).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(Arc::new(store), listener, async {
            let _ = stopped.await;
        }));
        Self {
            stop: Some(stop),
            task: Some(task),
            folder,
        }
    }

    fn path(&self) -> PathBuf {
        socket(&self.folder)
    }

    async fn stop(mut self) -> Arc<TempDir> {
        drop(self.stop.take());
        self.task.take().unwrap().await.unwrap();
        Arc::clone(&self.folder)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}

fn socket(folder: &TempDir) -> PathBuf {
    folder.path().join("run/socket")
}

async fn start() -> (SocketStore, Server) {
    let server = Server::start(Arc::new(tempfile::tempdir().unwrap()));
    let store = SocketStore::connect(server.path()).await.unwrap();
    (store, server)
}

async fn setup(case: &str) -> (Subject, Server) {
    let (store, server) = start().await;
    (Subject::new(store, case), server)
}

mod contract {
    tortie_store_contract::store_contract!(super::setup);
}

fn set(name: &str, nets: usize) -> Resource {
    let nets = vec!["10.0.0.0/8".to_owned(); nets];
    NetworkSet::new("ns", name, NetworkSetSpec { nets }).into()
}

fn key(name: &str) -> Key {
    Key::namespaced(Kind::NetworkSet, "ns", name)
}

#[tokio::test]
async fn a_server_that_was_restarted_is_found_again() {
    let (store, server) = start().await;
    let created = store.create(set("a", 1)).await.unwrap();
    let from = Revision(created.metadata().resource_version.clone());
    let query = Query::all(Kind::NetworkSet);
    let mut watch = store.watch(&query, &from).await.unwrap();

    let folder = server.stop().await;
    let end = watch.next().await;
    assert!(
        matches!(end, Some(Err(Error::Unavailable { .. }))),
        "{end:?}"
    );
    assert!(watch.next().await.is_none());
    let error = store.get(&key("a")).await.unwrap_err();
    let expected = format!(
        "the socket {} of a running tortie cannot be reached: ",
        socket(&folder).display()
    );
    assert!(error.is_retryable());
    assert!(error.to_string().contains(&expected), "{error}");
    assert!(store.create(set("b", 1)).await.unwrap_err().is_retryable());

    let _server = Server::start(folder);
    assert_eq!(store.get(&key("a")).await.unwrap(), created);
    let updated = store.update(created).await.unwrap();
    let mut watch = store.watch(&query, &from).await.unwrap();
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(event.change, Change::Put(updated));
}

#[tokio::test]
async fn a_write_under_way_when_the_server_vanishes_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let listener = bind(socket(&folder)).unwrap();
    // Greets as the server does, reads whatever comes, and hangs up without an answer.
    let served = tokio::spawn(async move {
        let mut connections = 0;
        while let Ok(Ok((mut stream, _))) =
            tokio::time::timeout(Duration::from_secs(2), listener.accept()).await
        {
            connections += 1;
            let body = br#"{"protocol":1,"refusal":null,"readsManyAtOnce":true}"#;
            let mut greeting = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
            greeting.extend([0; 9]);
            greeting.extend(body);
            stream.write_all(&greeting).await.unwrap();
            let mut seen = Vec::new();
            let is_request = |seen: &[u8]| {
                seen.windows(9).any(|part| part == br#""nets":[""#)
                    || seen.windows(5).any(|part| part == br#""get""#)
            };
            while !is_request(&seen) && stream.read_buf(&mut seen).await.unwrap() > 0 {}
        }
        connections
    });
    let store = SocketStore::connect(socket(&folder)).await.unwrap();
    let error = store.create(set("a", 1)).await.unwrap_err();
    assert!(error.is_retryable());
    assert!(
        error.to_string().contains("may have been made or not"),
        "{error}"
    );
    let error = store.get(&key("a")).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    // One for the write, two for the read.
    assert_eq!(served.await.unwrap(), 3);
}

#[tokio::test]
async fn long_lists_come_whole_and_in_order() {
    let (store, _server) = start().await;
    for index in 0..40 {
        store
            .create(set(&format!("set-{index:02}"), 8000))
            .await
            .unwrap();
    }
    let list = store.list(&Query::all(Kind::NetworkSet)).await.unwrap();
    let size: usize = list
        .items
        .iter()
        .map(|item| item.to_value().to_string().len())
        .sum();
    assert!(size > 3 << 20, "the list must need several frames: {size}");
    let names: Vec<_> = list
        .items
        .iter()
        .map(|item| &item.metadata().name)
        .collect();
    assert!(names.len() == 40 && names.is_sorted());
    assert_eq!(list.revision, Revision("40".to_owned()));
}

#[tokio::test]
async fn a_request_that_is_too_long_is_refused_before_it_is_sent() {
    let (store, _server) = start().await;
    let error = store.create(set("a", 1_000_000)).await.unwrap_err();
    assert!(error.to_string().contains("cannot be sent"), "{error}");
    store.create(set("a", 1)).await.unwrap();
}

#[tokio::test]
async fn a_watch_that_is_not_read_holds_up_nobody() {
    let (store, _server) = start().await;
    let query = Query::all(Kind::NetworkSet);
    let mut watch = store
        .watch(&query, &Revision("0".to_owned()))
        .await
        .unwrap();
    let mut resource = store.create(set("a", 2000)).await.unwrap();
    for _ in 1..200 {
        resource = store.update(resource).await.unwrap();
    }
    for expected in 1..=200 {
        let event = watch.next().await.unwrap().unwrap();
        assert_eq!(event.revision, Revision(expected.to_string()));
    }
}

#[tokio::test]
async fn too_many_connections_are_refused_with_a_reason() {
    let (store, server) = start().await;
    let mut others = Vec::new();
    for _ in 1..256 {
        others.push(SocketStore::connect(server.path()).await.unwrap());
    }
    let error = SocketStore::connect(server.path()).await.unwrap_err();
    assert!(error.to_string().contains("256 connections"), "{error}");
    store.create(set("a", 1)).await.unwrap();
    drop(others);
    let start = Instant::now();
    while SocketStore::connect(server.path()).await.is_err() {
        assert!(start.elapsed() < Duration::from_mins(1));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_socket_is_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/socket");
    let _listener = bind(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let message = bind(folder.path().join("socket")).unwrap_err().to_string();
    assert!(message.contains("has mode 755"), "{message}");
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = socket(&folder);
    let listener = bind(&path).unwrap();
    let message = bind(&path).unwrap_err().to_string();
    assert!(message.contains("another process listens"), "{message}");
    drop(listener);
    assert!(path.exists(), "nobody has removed it");
    let error = SocketStore::connect(&path).await.unwrap_err();
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    drop(bind(&path).unwrap());

    fs::remove_file(&path).unwrap();
    fs::write(&path, "precious").unwrap();
    let message = bind(&path).unwrap_err().to_string();
    assert!(message.contains("is not a socket"), "{message}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[tokio::test]
async fn a_server_that_ends_takes_its_socket_along() {
    let (_store, server) = start().await;
    let path = server.path();
    assert!(path.exists());
    let _folder = server.stop().await;
    assert!(!path.exists());
}

/// A store whose reads of one object wait for each other, to see what is under way at the same time.
struct Gate {
    store: EmbeddedStore,
    reads: Barrier,
}

#[async_trait]
impl Store for Gate {
    async fn get(&self, key: &Key) -> Result<Resource> {
        self.reads.wait().await;
        self.store.get(key).await
    }

    async fn list(&self, query: &Query) -> Result<List> {
        self.store.list(query).await
    }

    async fn create(&self, resource: Resource) -> Result<Resource> {
        self.store.create(resource).await
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        self.store.update(resource).await
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.store.delete(key, precondition).await
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        self.store.watch(query, from).await
    }
}

#[tokio::test]
async fn requests_of_one_client_are_under_way_together_and_overtake_each_other() {
    const READS: usize = 500;
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate {
        store: EmbeddedStore::open(folder.path().join("store")).unwrap(),
        reads: Barrier::new(READS),
    };
    let listener = bind(socket(&folder)).unwrap();
    tokio::spawn(serve(Arc::new(gate), listener, std::future::pending()));
    let store = SocketStore::connect(socket(&folder)).await.unwrap();
    assert!(!store.reads_many_at_once());
    let created = store.create(set("a", 1)).await.unwrap();

    let name = key("a");
    let mut reads: FuturesUnordered<_> = (1..READS).map(|_| store.get(&name)).collect();
    let query = Query::all(Kind::NetworkSet);
    tokio::select! {
        read = reads.next() => panic!("it did not wait: {read:?}"),
        list = store.list(&query) => assert_eq!(list.unwrap().items, std::slice::from_ref(&created)),
    }
    reads.push(store.get(&name));
    while let Some(read) = reads.next().await {
        assert_eq!(read.unwrap(), created);
    }
}
