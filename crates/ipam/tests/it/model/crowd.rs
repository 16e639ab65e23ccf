//! Processes that run side by side on a real datastore and are stopped and replaced.

use std::sync::Arc;

use tokio::task::JoinSet;
use tortie_ipam::Ipam;
use tortie_store::Store;

use crate::model::gate::Gate;
use crate::model::script::{Ledger, Random, check_end, process};

/// Processes run at once; each is stopped after a number of operations that the seed decides, and another takes its place.
pub(crate) async fn run(store: &Arc<dyn Store>, seed: u64, together: bool, lives: usize) {
    let ledger = Arc::new(Ledger::default());
    let mut processes = JoinSet::new();
    for number in 0..8 {
        let (store, ledger) = (Arc::clone(store), Arc::clone(&ledger));
        processes.spawn(async move {
            let mut random = Random::new(seed * 100 + u64::try_from(number).unwrap());
            for life in 0..lives {
                let operations = if life + 1 == lives {
                    usize::MAX
                } else {
                    1 + random.below(40)
                };
                let gate = Arc::new(Gate::new(Arc::clone(&store), together, operations));
                let ipam = Ipam::with_clock(Arc::<Gate>::clone(&gate), ledger.clock());
                let own = Random::new(seed + u64::try_from(random.below(1_000_000)).unwrap());
                let work = process(ipam, Arc::clone(&ledger), number, life, 1 + number % 2, own);
                tokio::select! {
                    () = work => {}
                    () = gate.stopped() => {}
                }
            }
        });
    }
    while let Some(ended) = processes.join_next().await {
        ended.unwrap();
    }
    check_end(Arc::clone(store), &ledger).await;
}
