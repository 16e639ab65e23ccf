//! From a snapshot of the datastore to the messages for a node: time, memory, messages and sets for each workload, and
//! the cost of single updates in a large world.
//!
//! `cargo bench -p tortie-engine --bench workloads [-- NAME…]` prints `name value unit` lines. Updates are in memory
//! beforehand; `cpu` is the time of the working thread until the last message, `heap` what the engine holds afterwards,
//! `peak` the most that it held on the way. `NAME` picks the workloads whose names start so.

mod heap;
mod worlds;

use std::hint::black_box;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use tortie_engine::{Config, Engine, Message, Update};
use worlds::World;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting::new();

/// Makes the update of a sample.
type MakeUpdate = fn(usize) -> Update;

/// How many single updates of each kind are measured.
const SAMPLES: usize = 301;

fn main() -> io::Result<()> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.starts_with(&**w));
    for (name, world) in worlds::all() {
        if is_wanted(name) {
            snapshot(name, &world())?;
        }
    }
    for (name, world) in worlds::for_single_updates() {
        if is_wanted(name) {
            single_updates(name, &world())?;
        }
    }
    for selectors in [10, 100, 1_000, 10_000] {
        let name = format!("index({selectors})");
        if is_wanted(&name) {
            one_endpoint_many_selectors(&name, selectors)?;
        }
    }
    for endpoints in [100, 1_000, 10_000, 100_000] {
        let name = format!("scan({endpoints})");
        if is_wanted(&name) {
            one_selector_many_endpoints(&name, endpoints)?;
        }
    }
    Ok(())
}

/// All updates, in sync, flush; then the deletions and another flush.
fn snapshot(name: &str, world: &World) -> io::Result<()> {
    let before = HEAP.live();
    HEAP.reset_peak();
    let (mut messages, mut sets) = (0_usize, 0_usize);
    let mut count = |message: Message| {
        messages += 1;
        sets += usize::from(matches!(message, Message::IpSetUpdate(_)));
    };
    let start = cpu_time();
    let mut engine = Engine::new(Config::for_node(worlds::LOCAL));
    world
        .updates
        .iter()
        .for_each(|update| engine.on_update(update));
    engine.on_in_sync();
    engine.flush_to(&mut count);
    if !world.deletions.is_empty() {
        world
            .deletions
            .iter()
            .for_each(|update| engine.on_update(update));
        engine.flush_to(&mut count);
    }
    let cpu = cpu_time().saturating_sub(start);
    let mut out = io::stdout().lock();
    writeln!(out, "{name}/cpu {:.4} s", cpu.as_secs_f64())?;
    writeln!(out, "{name}/heap {:.1} MB", megabytes(HEAP.live() - before))?;
    writeln!(out, "{name}/peak {:.1} MB", megabytes(HEAP.peak() - before))?;
    writeln!(out, "{name}/messages {messages} messages")?;
    writeln!(out, "{name}/sets {sets} sets")?;
    black_box(engine);
    Ok(())
}

/// One change and its flush, in a world that is in sync.
fn single_updates(name: &str, world: &World) -> io::Result<()> {
    let mut engine = Engine::new(Config::for_node(worlds::LOCAL));
    world
        .updates
        .iter()
        .for_each(|update| engine.on_update(update));
    engine.on_in_sync();
    engine.flush_to(&mut |message| {
        black_box(message);
    });
    let kinds: [(&str, MakeUpdate); 3] = [
        ("remote-pod-relabelled", worlds::relabelled_remote_pod),
        ("local-pod-added", worlds::new_local_pod),
        ("policy-edited", worlds::edited_policy),
    ];
    for (kind, make) in kinds {
        let updates: Vec<Update> = (0..SAMPLES).map(make).collect();
        let times = updates.iter().map(|update| {
            let start = Instant::now();
            engine.on_update(update);
            engine.flush_to(&mut |message| {
                black_box(message);
            });
            start.elapsed()
        });
        report(&format!("{name}/{kind}"), times.collect())?;
    }
    Ok(())
}

/// An endpoint changes while many selectors are in use.
fn one_endpoint_many_selectors(name: &str, selectors: usize) -> io::Result<()> {
    let mut engine = Engine::new(Config::for_node(worlds::LOCAL));
    for update in &worlds::many_selectors(selectors) {
        engine.on_update(update);
    }
    engine.on_in_sync();
    engine.flush_to(&mut |message| {
        black_box(message);
    });
    let updates: Vec<Update> = (0..SAMPLES)
        .map(|sample| worlds::endpoint_with_set_label(sample, selectors))
        .collect();
    let times = updates.iter().map(|update| {
        let start = Instant::now();
        engine.on_update(update);
        start.elapsed()
    });
    report(&format!("{name}/endpoint-updated"), times.collect())
}

/// A selector comes into use while there are many endpoints, of which few match.
fn one_selector_many_endpoints(name: &str, endpoints: usize) -> io::Result<()> {
    let mut engine = Engine::new(Config::for_node(worlds::LOCAL));
    for update in &worlds::many_endpoints(endpoints) {
        engine.on_update(update);
    }
    engine.on_in_sync();
    engine.flush_to(&mut |message| {
        black_box(message);
    });
    let updates: Vec<Update> = (0..SAMPLES).map(worlds::policy_with_new_selector).collect();
    let times = updates.iter().map(|update| {
        let start = Instant::now();
        engine.on_update(update);
        engine.flush_to(&mut |message| {
            black_box(message);
        });
        start.elapsed()
    });
    report(&format!("{name}/selector-added"), times.collect())
}

fn report(name: &str, mut times: Vec<Duration>) -> io::Result<()> {
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64() * 1e6;
    let mut out = io::stdout().lock();
    writeln!(out, "{name} {median:.2} us")
}

/// The time that this thread has been running on a processor.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the kernel keeps scheduler statistics"))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
