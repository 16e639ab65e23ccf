//! Lets etcd forget its history, so that it does not grow without end.

use std::time::Duration;

use tokio::time::sleep;
use tortie_error::Causes;
use tortie_store::etcd::EtcdStore;

/// How long to wait after a failure.
const RETRY: Duration = Duration::from_mins(1);

/// Forgets, once in a period, what is older than the period. Runs until it is dropped.
///
/// Several processes may do this at a time: what is forgotten already is no failure.
pub(crate) async fn run(etcd: EtcdStore, period: Duration) {
    tracing::info!(?period, "Starting periodic etcdv3 compaction");
    let mut last = None;
    loop {
        let pause = match compact(&etcd, last).await {
            Ok(revision) => {
                last = Some(revision);
                period
            }
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "History of etcd could not be compacted; trying again");
                RETRY.min(period)
            }
        };
        sleep(pause).await;
    }
}

/// Forgets what is before `revision`, and gives the state of now.
async fn compact(etcd: &EtcdStore, revision: Option<i64>) -> tortie_store::Result<i64> {
    if let Some(revision) = revision {
        etcd.compact(revision).await?;
        tracing::debug!(revision, "Compacted the history of etcd");
    }
    etcd.current_revision().await
}
