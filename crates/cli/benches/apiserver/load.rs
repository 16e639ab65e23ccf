//! A steady rate of writes, while many watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::histogram::Histogram;
use crate::process::Server;

const NAMESPACES: u32 = 100;

/// How many connections write at once.
const WRITERS: u32 = 64;

/// How long watches may take to be told of the last writes.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long nothing may come before all has come.
const QUIET: Duration = Duration::from_millis(500);

/// What is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) watches: u32,
    pub(crate) rate: u32,
    pub(crate) time: Duration,
}

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// One namespace each.
    Namespaces,
    /// All objects of the kind.
    One,
}

impl Load {
    pub(crate) async fn run(&self, server: &Server, spread: Spread) {
        let name = match spread {
            Spread::Namespaces => "apiserver_spread",
            Spread::One => "apiserver_one",
        };
        fill(server).await;
        let before = server.memory("VmRSS:");
        let start = Instant::now();
        let is_over = Arc::new(AtomicBool::new(false));
        let mut watches = JoinSet::new();
        for number in 0..self.watches {
            let path = match spread {
                Spread::Namespaces => objects(number % NAMESPACES),
                Spread::One => "/api/v1/configmaps".to_owned(),
            };
            let mut connection = Connection::open(&server.socket()).await;
            connection.watch(&path).await;
            watches.spawn(follow(connection, start, Arc::clone(&is_over)));
        }
        let with_all = server.memory("VmRSS:");
        let per_watch = 1024.0 * (with_all - before) / f64::from(self.watches.max(1));
        println!("{name}_watch_memory {per_watch:.0} KB");

        let cpu = server.cpu();
        let (writes, seconds) = self.write(server, start).await;
        is_over.store(true, Ordering::Release);
        let mut deliveries = Histogram::default();
        let mut cut_off = 0;
        let told = async {
            while let Some(watch) = watches.join_next().await {
                let (histogram, is_cut_off) = watch.unwrap();
                deliveries.join(&histogram);
                cut_off += u32::from(is_cut_off);
            }
        };
        tokio::time::timeout(PATIENCE, told)
            .await
            .expect("watches have been told everything");
        let each = match spread {
            Spread::Namespaces => u64::from(self.watches) / u64::from(NAMESPACES),
            Spread::One => self.watches.into(),
        };
        println!(
            "{name}_writes {:.0} writes/s",
            rate(writes.count(), seconds)
        );
        print_times(&format!("{name}_write"), &writes);
        println!(
            "{name}_deliveries {:.0} events/s",
            rate(deliveries.count(), seconds)
        );
        print_times(&format!("{name}_delivery"), &deliveries);
        println!("{name}_expected {} events", writes.count() * each);
        println!("{name}_delivered {} events", deliveries.count());
        println!("{name}_cut_off {cut_off} watches");
        println!("{name}_resident {:.0} MB", server.memory("VmRSS:"));
        println!("{name}_resident_peak {:.0} MB", server.memory("VmHWM:"));
        println!("{name}_cpu {:.2} cores", (server.cpu() - cpu) / seconds);
    }

    /// Writes at the rate, each from the moment at which it is due.
    async fn write(&self, server: &Server, start: Instant) -> (Histogram, f64) {
        let next = Arc::new(AtomicU32::new(0));
        let begin = Instant::now();
        let mut writers = JoinSet::new();
        for _ in 0..WRITERS {
            let mut connection = Connection::open(&server.socket()).await;
            let (next, load) = (Arc::clone(&next), *self);
            writers.spawn(async move {
                let mut times = Histogram::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let due = Duration::from_secs(1) * number / load.rate;
                    if due >= load.time || begin.elapsed() >= load.time + PATIENCE {
                        return times;
                    }
                    tokio::time::sleep_until((begin + due).into()).await;
                    let namespace = number % NAMESPACES;
                    let object = object(namespace, (begin + due - start).as_nanos());
                    let path = format!("{}/one", objects(namespace));
                    connection.send("PUT", &path, &object).await;
                    times.add(begin.elapsed().saturating_sub(due).as_secs_f64() * 1e6);
                }
            });
        }
        let mut times = Histogram::default();
        while let Some(writer) = writers.join_next().await {
            times.join(&writer.unwrap());
        }
        (times, begin.elapsed().as_secs_f64())
    }
}

/// Makes the namespaces, with an object each.
pub(crate) async fn fill(server: &Server) {
    let mut connection = Connection::open(&server.socket()).await;
    for number in 0..NAMESPACES {
        let namespace = json!({"metadata": {"name": format!("n{number}")}});
        connection
            .send("POST", "/api/v1/namespaces", &namespace)
            .await;
        let path = objects(number);
        connection.send("POST", &path, &object(number, 0)).await;
    }
}

pub(crate) fn objects(namespace: u32) -> String {
    format!("/api/v1/namespaces/n{namespace}/configmaps")
}

fn object(namespace: u32, at: u128) -> Value {
    json!({
        "metadata": {"name": "one", "namespace": format!("n{namespace}")},
        "data": {"at": at.to_string(), "padding": "x".repeat(500)},
    })
}

/// Notes how long after it was due each write is told. Says also whether the server ended the watch.
async fn follow(
    mut connection: Connection,
    start: Instant,
    is_over: Arc<AtomicBool>,
) -> (Histogram, bool) {
    let mut times = Histogram::default();
    let mut line = Vec::new();
    loop {
        let next = tokio::time::timeout(QUIET, connection.line(&mut line)).await;
        match next {
            Ok(None) => return (times, true),
            Ok(Some(line)) => {
                if let Some(at) = written_at(line) {
                    let passed = start.elapsed().as_secs_f64() - at;
                    times.add(passed * 1e6);
                }
            }
            Err(_) if is_over.load(Ordering::Acquire) => return (times, false),
            // What was read of a line so far stays in it only if it is complete, which lines of a quiet watch are.
            Err(_) => {}
        }
    }
}

/// When the object of an event was due to be written, in seconds.
fn written_at(line: &[u8]) -> Option<f64> {
    const FIELD: &[u8] = b"\"data\":{\"at\":\"";
    let position = line.windows(FIELD.len()).position(|part| part == FIELD)?;
    let digits = &line[position + FIELD.len()..];
    let end = digits.iter().position(|byte| *byte == b'"')?;
    let nanos: f64 = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    Some(nanos / 1e9)
}

fn print_times(name: &str, times: &Histogram) {
    println!("{name}_p50 {:.2} ms", times.quantile(500));
    println!("{name}_p99 {:.2} ms", times.quantile(990));
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}
