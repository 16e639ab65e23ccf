//! Runs a controller: sources fill the queue, workers empty it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::join_all;
use tokio::task::JoinSet;
use tortie_error::Causes;
use tracing::Instrument as _;

use super::source::Source;
use super::{Running, Settings};
use crate::metrics::ControllerMetrics;
use crate::queue::{Key, Queue};
use crate::reconcile::{Action, Failure, Reconciler};

/// Runs until it is told to stop and the keys under way are done. Dropping the future ends everything at once.
pub(super) async fn run<Q: Key, R: Reconciler<Key = Q>>(
    settings: Settings,
    sources: Vec<Box<dyn Source<Q>>>,
    queue: Queue<Q>,
    reconciler: Arc<R>,
    metrics: ControllerMetrics,
    mut running: Running,
) {
    let synced = join_all(sources.iter().map(|source| source.wait_synced()));
    tokio::select! {
        _ = synced => {}
        _ = running.stop.wait_for(|stop| *stop) => return,
    }
    tracing::info!(
        controller = settings.name,
        workers = settings.workers,
        "Controller starts"
    );
    let mut feeders = JoinSet::new();
    let resyncs: Vec<_> = sources
        .iter()
        .filter_map(|source| source.resync())
        .collect();
    for source in sources {
        feeders.spawn(source.run(queue.clone()));
    }
    if let Some(every) = settings.resync {
        let queue = queue.clone();
        feeders.spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                for resync in &resyncs {
                    resync(&queue);
                }
            }
        });
    }
    let workers = i64::try_from(settings.workers).unwrap_or(i64::MAX);
    metrics.workers.set(workers);
    let mut pool = JoinSet::new();
    for _ in 0..settings.workers {
        let worker = Worker {
            name: settings.name.clone(),
            max_retries: settings.max_retries,
            queue: queue.clone(),
            reconciler: Arc::clone(&reconciler),
            metrics: metrics.clone(),
            running: running.clone(),
        };
        pool.spawn(worker.run());
    }
    // The sender is gone only when the manager is, which stops as well.
    let _ = running.stop.wait_for(|stop| *stop).await;
    feeders.shutdown().await;
    queue.close();
    while pool.join_next().await.is_some() {}
    tracing::info!(controller = settings.name, "Controller ended");
}

struct Worker<Q: Key, R> {
    name: String,
    max_retries: Option<u32>,
    queue: Queue<Q>,
    reconciler: Arc<R>,
    metrics: ControllerMetrics,
    running: Running,
}

impl<Q: Key, R: Reconciler<Key = Q>> Worker<Q, R> {
    async fn run(self) {
        while let Some(key) = self.queue.next().await {
            if !self.running.leadership.is_held() {
                return;
            }
            self.metrics.active.inc();
            let start = Instant::now();
            let span = tracing::error_span!("reconcile", controller = self.name, ?key);
            let work = AssertUnwindSafe(self.reconciler.reconcile(&key)).catch_unwind();
            let work = self.running.leadership.guard(work);
            let outcome = work.instrument(span.clone()).await;
            let _entered = span.enter();
            self.metrics.time.observe(start.elapsed().as_secs_f64());
            self.metrics.active.dec();
            match outcome {
                Ok(Ok(result)) => self.conclude(&key, result),
                Ok(Err(panic)) => {
                    self.metrics.panics.inc();
                    let text = format!("the reconciler panicked: {}", text_of(panic.as_ref()));
                    self.conclude(&key, Err(Failure::retry(text)));
                }
                Err(_) => {
                    tracing::warn!("Leadership was lost; work was dropped");
                    return;
                }
            }
            self.queue.done(&key);
        }
    }

    fn conclude(&self, key: &Q, result: Result<Action, Failure>) {
        match result {
            Ok(Action::Done) => {
                self.metrics.success.inc();
                self.queue.forget(key);
            }
            Ok(Action::After(delay)) => {
                self.metrics.requeue_after.inc();
                self.queue.forget(key);
                self.queue.add_after(key.clone(), delay);
            }
            Err(Failure::Never(error)) => {
                self.metrics.error.inc();
                self.metrics.errors.inc();
                self.metrics.terminal_errors.inc();
                self.queue.forget(key);
                tracing::error!(error = %Causes(error.as_ref()), "Cannot be reconciled as it is");
            }
            Err(Failure::Retry(error)) => {
                self.metrics.error.inc();
                self.metrics.errors.inc();
                let retries = self.queue.retries(key);
                if self.max_retries.is_some_and(|most| retries >= most) {
                    self.queue.forget(key);
                    tracing::error!(error = %Causes(error.as_ref()), retries, "Given up");
                } else {
                    tracing::warn!(error = %Causes(error.as_ref()), retries, "Will be tried again");
                    self.queue.retry(key.clone());
                }
            }
        }
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}
