//! Watches that nobody reads.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::load::{Load, fill, objects};
use crate::process::Server;

/// How many there are at most.
const STALLED: u32 = 100;

/// How much each write holds.
const BYTES: usize = 10_000;

/// How long a watch that goes on is read before it counts as one that does.
const QUIET: Duration = Duration::from_secs(2);

pub(crate) async fn run(server: &Server, load: &Load) {
    fill(server).await;
    let count = load.watches.clamp(1, STALLED);
    let mut watches = Vec::new();
    for _ in 0..count {
        let mut connection = Connection::open(&server.socket()).await;
        connection.watch("/api/v1/configmaps").await;
        watches.push(connection);
    }
    let before = server.memory("VmRSS:");
    let mut writer = Connection::open(&server.socket()).await;
    let path = format!("{}/one", objects(0));
    let start = Instant::now();
    let mut written = 0_u64;
    while start.elapsed() < load.time {
        let padding = "x".repeat(BYTES);
        let object = json!({"metadata": {"name": "one"}, "data": {"number": written.to_string(), "padding": padding}});
        writer.send("PUT", &path, &object).await;
        written += 1;
    }
    let more = 1024.0 * (server.memory("VmRSS:") - before);
    println!("apiserver_stalled_writes {written} writes");
    println!("apiserver_stalled_memory {:.0} KB", more / f64::from(count));
    println!(
        "apiserver_stalled_resident {:.0} MB",
        server.memory("VmRSS:")
    );

    let mut readers = JoinSet::new();
    for watch in watches {
        readers.spawn(read(watch));
    }
    let (mut events, mut ended) = (0, 0);
    while let Some(reader) = readers.join_next().await {
        let (count, is_over) = reader.unwrap();
        events += count;
        ended += u32::from(is_over);
    }
    println!(
        "apiserver_stalled_buffered {} events",
        events / u64::from(count)
    );
    println!("apiserver_stalled_cut_off {ended} watches");
}

/// Reads what a watch still has. Says how many events that were, and whether it was then over.
async fn read(mut watch: Connection) -> (u64, bool) {
    let mut events = 0;
    let mut line = Vec::new();
    loop {
        match tokio::time::timeout(QUIET, watch.line(&mut line)).await {
            Err(_) => return (events, false),
            Ok(None) => return (events, true),
            Ok(Some(line)) if contains(line, b"\"type\":\"ERROR\"") => return (events, true),
            Ok(Some(line)) => events += u64::from(contains(line, b"\"type\":\"MODIFIED\"")),
        }
    }
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}
