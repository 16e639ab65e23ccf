//! Figures of the embedded store, also through a socket, as lines of `name value unit`.
//!
//! Writes are durable: each is on disk before it is answered. The file is in the folder for
//! temporary files, so `TMPDIR` says which disk is measured. Arguments select figures by the start of
//! their names: `writes_1_`, `watch_`, `list`, `socket`.
#![expect(clippy::print_stdout, reason = "the figures are the output")]
#![expect(clippy::cast_precision_loss, reason = "figures need few digits")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tortie_api::NetworkSet;
use tortie_api::network_set::NetworkSetSpec;
use tortie_store::embedded::{DocumentKey, EmbeddedStore};
use tortie_store::socket::{SocketStore, bind, serve};
use tortie_store::{Change, Key, Kind, Query, Resource, Store, Watch};

/// How long each rate is measured.
const PERIOD: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| {
        let mut wanted_names = wanted.iter();
        wanted.is_empty() || wanted_names.any(|wanted| name.starts_with(wanted.as_str()))
    };
    for (size, nets) in [("200B", 4), ("2kB", 100), ("20kB", 1100)] {
        for writers in [1, 64] {
            let name = format!("writes_{writers}_writers_{size}");
            if is_wanted(&name) {
                let rate = writes_per_second(writers, nets).await;
                println!("store_embedded_{name} {rate:.0} writes/s");
            }
        }
    }
    for writers in [1, 64, 512] {
        let name = format!("document_writes_{writers}_writers_2kB");
        if is_wanted(&name) {
            let rate = document_writes_per_second(writers).await;
            println!("store_embedded_{name} {rate:.0} writes/s");
        }
    }
    for watches in [1, 1000] {
        if !is_wanted(&format!("watch_{watches}_watches")) {
            continue;
        }
        let mut delays = watch_delays(watches).await;
        delays.sort_unstable();
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            let delay = percentile(&delays, part).as_secs_f64() * 1e3;
            println!("store_embedded_watch_{watches}_watches_{name} {delay:.3} ms");
        }
    }
    if is_wanted("list") {
        list(100_000).await;
    }
    if is_wanted("socket") {
        through_socket().await;
    }
}

/// A get of one caller, and writes of one and of many, of another process's store.
async fn through_socket() {
    const GETS: u32 = 20_000;
    let (store, folder) = open();
    let path = folder.path().join("run/socket");
    let listener = bind(&path).expect("the folder is new");
    let server = tokio::spawn(serve(store, listener, std::future::pending()));
    let store = Arc::new(SocketStore::connect(&path).await.expect("it is served"));
    let created = store.create(set("get", 4)).await.expect("it is new");
    let key = Key::of(&created);
    let start = Instant::now();
    for _ in 0..GETS {
        store.get(&key).await.expect("it is there");
    }
    let get = start.elapsed().as_secs_f64() * 1e3 / f64::from(GETS);
    println!("store_socket_get {get:.3} ms");
    for writers in [1, 64] {
        let rate = rate_of_writes(&store, writers, 4).await;
        println!("store_socket_writes_{writers}_writers_200B {rate:.0} writes/s");
    }
    server.abort();
}

async fn writes_per_second(writers: usize, nets: usize) -> f64 {
    let (store, _folder) = open();
    rate_of_writes(&store, writers, nets).await
}

async fn rate_of_writes<S: Store + 'static>(store: &Arc<S>, writers: usize, nets: usize) -> f64 {
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let mut resource = store
                .create(set(&format!("set-{writers}-{writer}"), nets))
                .await
                .expect("it is new");
            let mut count = 1;
            while start.elapsed() < PERIOD {
                resource = store.update(resource).await.expect("it is ours alone");
                count += 1;
            }
            count
        });
    }
    let total: usize = tasks.join_all().await.into_iter().sum();
    total as f64 / start.elapsed().as_secs_f64()
}

async fn document_writes_per_second(writers: usize) -> f64 {
    let (store, _folder) = open();
    let json: Arc<[u8]> = vec![b'x'; 2000].into();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let (documents, json) = (store.documents(), Arc::clone(&json));
        tasks.spawn(async move {
            let key = DocumentKey::new("pods", "default", format!("pod-{writer}"));
            let created = documents.create(key.clone(), Arc::clone(&json)).await;
            let mut revision = created.expect("it is new");
            let mut count = 1;
            while start.elapsed() < PERIOD {
                let updated = documents.update(key.clone(), Arc::clone(&json), revision);
                revision = updated.await.expect("it is ours alone");
                count += 1;
            }
            count
        });
    }
    let total: usize = tasks.join_all().await.into_iter().sum();
    total as f64 / start.elapsed().as_secs_f64()
}

/// Times from the answer to a write to its arrival in each watch; zero where it arrived before.
async fn watch_delays(watches: usize) -> Vec<Duration> {
    const WRITES: usize = 200;
    let (store, _folder) = open();
    let query = Query::all(Kind::NetworkSet);
    let from = store.list(&query).await.expect("a list works").revision;
    let mut tasks = JoinSet::new();
    for _ in 0..watches {
        let watch = store.watch(&query, &from).await.expect("a watch works");
        tasks.spawn(arrivals(watch, WRITES));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut resource = store.create(set("set", 4)).await.expect("it is new");
    let mut answered = vec![Instant::now()];
    for _ in 1..WRITES {
        tokio::time::sleep(Duration::from_millis(20)).await;
        resource = store.update(resource).await.expect("it is ours alone");
        answered.push(Instant::now());
    }
    let arrived = tasks.join_all().await;
    let delays = arrived
        .iter()
        .flat_map(|arrived| arrived.iter().zip(&answered));
    delays
        .map(|(arrived, answered)| arrived.saturating_duration_since(*answered))
        .collect()
}

async fn arrivals(mut watch: Watch, number: usize) -> Vec<Instant> {
    let mut arrived = Vec::with_capacity(number);
    while arrived.len() < number {
        let event = watch
            .next()
            .await
            .expect("it goes on")
            .expect("it does not fail");
        if matches!(event.change, Change::Put(_)) {
            arrived.push(Instant::now());
        }
    }
    arrived
}

async fn list(objects: usize) {
    let (store, _folder) = open();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..100 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for index in (writer..objects).step_by(100) {
                store
                    .create(set(&format!("set-{index}"), 4))
                    .await
                    .expect("it is new");
            }
        });
    }
    tasks.join_all().await;
    let created = objects as f64 / start.elapsed().as_secs_f64();
    println!("store_embedded_creates_100_writers {created:.0} writes/s");
    println!("store_embedded_rss_before_list {:.0} MB", peak_rss());
    let start = Instant::now();
    let list = store
        .list(&Query::all(Kind::NetworkSet))
        .await
        .expect("a list works");
    println!(
        "store_embedded_list_{} {:.3} s",
        list.items.len(),
        start.elapsed().as_secs_f64()
    );
    println!("store_embedded_list_peak_rss {:.0} MB", peak_rss());
}

fn open() -> (Arc<EmbeddedStore>, TempDir) {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let store = EmbeddedStore::open(folder.path().join("store.redb")).expect("the folder is new");
    (Arc::new(store), folder)
}

fn set(name: &str, nets: usize) -> Resource {
    let nets = (0..nets)
        .map(|index| format!("10.{}.{}.0/24", index / 256, index % 256))
        .collect();
    NetworkSet::new("default", name, NetworkSetSpec { nets }).into()
}

fn percentile(sorted: &[Duration], part: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is an index"
    )]
    let index = (sorted.len() as f64 * part) as usize;
    sorted[index.min(sorted.len() - 1)]
}

/// The largest resident size so far.
fn peak_rss() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or("0 kB");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    kilobytes / 1e3
}
