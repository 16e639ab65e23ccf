//! Many processes share the addresses of a small pool and are stopped anywhere between two operations of the datastore;
//! others take their place. Whatever the order: no address is given to two, none is lost, and in the end all are free.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

pub(crate) mod crowd;
pub(crate) mod gate;
mod memory;
mod real;
mod round_trips;
pub(crate) mod script;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use futures::FutureExt;
use tortie_ipam::Ipam;
use tortie_store::Store;

use gate::Gate;
use memory::MemoryStore;
use script::{Ledger, Random, check_end, process, set_up};

const PROCESSES: usize = 8;

type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One order of events, which the seed decides.
fn interleaving(seed: u64) {
    let mut random = Random::new(seed);
    let together = seed.is_multiple_of(2);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    set_up(&*store, true).now_or_never().unwrap();
    let ledger = Arc::new(Ledger::default());
    let start = |number: usize, life: usize, random: &mut Random| -> Running {
        let gate = Arc::new(Gate::new(Arc::clone(&store), together, usize::MAX));
        let ipam = Ipam::with_clock(gate, ledger.clock());
        let own = Random::new(seed * 1000 + u64::try_from(random.below(1000)).unwrap());
        Box::pin(process(
            ipam,
            Arc::clone(&ledger),
            number,
            life,
            1 + number % 2,
            own,
        ))
    };
    let mut running: Vec<Option<Running>> = (0..PROCESSES)
        .map(|number| Some(start(number, 0, &mut random)))
        .collect();
    let mut crashes = 4;
    let mut context = Context::from_waker(Waker::noop());
    while running.iter().any(Option::is_some) {
        let number = random.below(PROCESSES);
        let Some(one) = &mut running[number] else {
            continue;
        };
        if one.as_mut().poll(&mut context).is_ready() {
            running[number] = None;
        } else if crashes > 0 && random.below(25) == 0 {
            crashes -= 1;
            // Some come back, some do not.
            let life = 4 - crashes;
            running[number] = None;
            running[number] = (random.below(3) > 0).then(|| start(number, life, &mut random));
        }
    }
    drop(running);
    let gate = Arc::new(Gate::new(store, together, usize::MAX));
    let mut end = Box::pin(check_end(gate, &ledger));
    while end.as_mut().poll(&mut context).is_pending() {}
}

fn interleavings(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let result = std::panic::catch_unwind(|| interleaving(seed));
        assert!(result.is_ok(), "seed {seed}: see above");
    }
}

macro_rules! shards {
    ($($name:ident: $seeds:expr),*) => {
        $(#[test]
        fn $name() {
            interleavings($seeds);
        })*
    };
}

shards! {
    no_order_of_events_breaks_anything_1: 0..2500,
    no_order_of_events_breaks_anything_2: 2500..5000,
    no_order_of_events_breaks_anything_3: 5000..7500,
    no_order_of_events_breaks_anything_4: 7500..10_000
}
