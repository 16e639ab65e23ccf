//! From a snapshot of the datastore to the messages for a node: time, memory, messages and sets for each workload, and
//! the cost of single updates in a large world.
//!
//! `cargo bench -p tortie-engine --bench workloads [-- NAME…]` prints `name value unit` lines. Updates are in memory
//! beforehand; `time` is that until the last message, on one thread, `heap` what the engine holds afterwards,
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

/// How many times a snapshot is measured.
const RUNS: usize = 5;

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

/// All updates, in sync, flush; then the deletions and another flush. The fastest of a few runs counts: the first pays for
/// memory that the process does not have yet.
fn snapshot(name: &str, world: &World) -> io::Result<()> {
    let runs = (0..RUNS).map(|_| snapshot_once(world));
    let Some(best) = runs.min_by_key(|run| run.time) else {
        return Ok(());
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{name}/time {:.4} s", best.time.as_secs_f64())?;
    writeln!(out, "{name}/heap {:.1} MB", megabytes(best.heap))?;
    writeln!(out, "{name}/peak {:.1} MB", megabytes(best.peak))?;
    writeln!(out, "{name}/messages {} messages", best.messages)?;
    writeln!(out, "{name}/sets {} sets", best.sets)
}

/// What one run took and gave.
struct Run {
    time: Duration,
    heap: usize,
    peak: usize,
    messages: usize,
    sets: usize,
}

fn snapshot_once(world: &World) -> Run {
    let before = HEAP.live();
    HEAP.reset_peak();
    let (mut messages, mut sets) = (0, 0);
    let mut count = |message: Message| {
        messages += 1;
        sets += usize::from(matches!(message, Message::IpSetUpdate(_)));
    };
    let start = Instant::now();
    let mut engine = Engine::new(Config::for_node(worlds::LOCAL));
    for update in &world.updates {
        engine.on_update(update);
    }
    engine.on_in_sync();
    engine.flush_to(&mut count);
    if !world.deletions.is_empty() {
        for update in &world.deletions {
            engine.on_update(update);
        }
        engine.flush_to(&mut count);
    }
    let time = start.elapsed();
    let (heap, peak) = (HEAP.live() - before, HEAP.peak() - before);
    drop(black_box(engine));
    Run {
        time,
        heap,
        peak,
        messages,
        sets,
    }
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

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
