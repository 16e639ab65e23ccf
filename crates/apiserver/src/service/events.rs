//! Events are news: they are forgotten after an hour, as in Kubernetes.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{DeleteOptions, Service, Unguarded};
use crate::failure::{Reason, Result};
use crate::registry::Native;

/// How long an event is kept after it was last seen.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// How often it is looked for old ones.
const PERIOD: Duration = Duration::from_mins(1);

impl Service {
    /// Forgets old events, for ever.
    pub async fn forget_events(self: Arc<Self>) {
        loop {
            tokio::time::sleep(PERIOD).await;
            if let Err(failure) = self.forget_events_before(Timestamp::now() - KEPT).await {
                tracing::warn!(%failure, "Old events are not forgotten yet");
            }
        }
    }

    /// Forgets the events that were last seen before a time.
    pub(crate) async fn forget_events_before(&self, time: Timestamp) -> Result<()> {
        let Some(of) = self.native(Native::Event) else {
            return Ok(());
        };
        let mut old = Vec::new();
        let mut take = |event: Value| {
            if last_seen(&event).is_some_and(|seen| seen < time) {
                let text = |field: &str| event["metadata"][field].as_str().map(str::to_owned);
                old.push((text("namespace"), text("name"), text("resourceVersion")));
            }
        };
        self.storage.list_each(of, None, &mut take).await?;
        for (namespace, name, revision) in old {
            // One that was seen again meanwhile is another state.
            let options = DeleteOptions {
                revision,
                ..DeleteOptions::default()
            };
            let (namespace, name) = (namespace.as_deref(), name.unwrap_or_default());
            match self
                .delete(of, namespace, &name, &options, &Unguarded)
                .await
            {
                Err(failure) if !matches!(failure.reason, Reason::NotFound | Reason::Conflict) => {
                    return Err(failure);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// When an event of the core group was last seen.
fn last_seen(event: &Value) -> Option<Timestamp> {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    times
        .into_iter()
        .find_map(|time| time.as_str()?.parse().ok())
}
