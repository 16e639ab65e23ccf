//! A watch that outlives its connections, for who needs the changes and nothing else.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use tortie_backoff::Retries;
use tortie_error::Causes;
use tortie_store::{Error, Event, Query, Result, Revision, Store, Watch};

use crate::pace::Pace;

struct Resumed {
    store: Arc<dyn Store>,
    query: Query,
    /// Where to go on.
    revision: Revision,
    /// The connection, if there is one.
    watch: Option<Watch>,
    retries: Retries,
    is_over: bool,
}

/// Follows the changes after a revision. What cannot work at all fails at once; after that, a connection that is lost is
/// replaced, however long it takes, and the stream ends only with an error that retries do not cure, such as
/// [`Error::Gone`].
pub async fn watch_resumed(
    store: &Arc<dyn Store>,
    query: &Query,
    from: &Revision,
) -> Result<Watch> {
    let watch = store.watch(query, from).await?;
    let resumed = Resumed {
        store: Arc::clone(store),
        query: query.clone(),
        revision: from.clone(),
        watch: Some(watch),
        retries: Retries::new(Pace::default().retry),
        is_over: false,
    };
    let events = stream::unfold(resumed, async |mut resumed| {
        let event = resumed.next().await?;
        Some((event, resumed))
    });
    Ok(events.boxed())
}

impl Resumed {
    async fn next(&mut self) -> Option<Result<Event>> {
        if self.is_over {
            return None;
        }
        loop {
            let Some(watch) = &mut self.watch else {
                tokio::time::sleep(self.retries.failed()).await;
                let opened = self.store.watch(&self.query, &self.revision).await;
                match opened {
                    Ok(watch) => self.watch = Some(watch),
                    Err(error) => {
                        if let Some(error) = self.fail(error) {
                            return Some(Err(error));
                        }
                    }
                }
                continue;
            };
            match watch.next().await {
                Some(Ok(event)) => {
                    self.retries.reset();
                    self.revision = event.revision.clone();
                    return Some(Ok(event));
                }
                Some(Err(error)) => {
                    if let Some(error) = self.fail(error) {
                        return Some(Err(error));
                    }
                }
                None => self.watch = None,
            }
        }
    }

    /// Forgets the connection. Gives the error back if retries do not cure it.
    fn fail(&mut self, error: Error) -> Option<Error> {
        self.watch = None;
        if !error.is_retryable() {
            self.is_over = true;
            return Some(error);
        }
        let kind = self.query.kind;
        tracing::warn!(%kind, error = %Causes(&error), "Watch was interrupted; will resume");
        None
    }
}
