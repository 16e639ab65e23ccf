//! Carries out requests where they hold up nobody.
//!
//! Reading, checking and changing a large object takes longer than others should wait, and the threads of the runtime are
//! few. So a request has a thread of its own while it is carried out; the system shares the processors among all of them.

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::failure::{Failure, Reason, Result};

/// Carries out work on a thread that may be kept busy. When the future that this gives is dropped, because the client has
/// left or its time is over, the work ends where it waits next; nothing of it comes after that.
pub(super) async fn carry_out<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    // Never sent: that it is dropped is what counts.
    let (_waiting, abandoned) = oneshot::channel::<()>();
    let runtime = Handle::current();
    let carried_out = tokio::task::spawn_blocking(move || {
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = abandoned => Err(Failure::new(Reason::Timeout, "nobody waits for the answer")),
                done = work => done,
            }
        })
    });
    carried_out.await.unwrap_or_else(|error| {
        let message = format!("the request could not be carried out: {error}");
        Err(Failure::new(Reason::Internal, message))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_ends_between_its_steps() {
        let (started, mut has_started) = tokio::sync::mpsc::unbounded_channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let (told, steps) = mpsc::channel();
        let work = async move {
            started.send(()).unwrap();
            // A computation, which nothing interrupts.
            may_go_on.recv().unwrap();
            told.send("computed").unwrap();
            tokio::task::yield_now().await;
            told.send("stored").unwrap();
            Ok(())
        };
        let request = tokio::spawn(carry_out(work));
        has_started.recv().await.unwrap();
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        go_on.send(()).unwrap();
        let steps = tokio::task::spawn_blocking(move || steps.iter().collect::<Vec<_>>());
        assert_eq!(steps.await.unwrap(), ["computed"]);
    }

    /// On a runtime with one thread.
    #[tokio::test]
    async fn others_go_on_while_somebody_computes() {
        let (go_on, may_go_on) = mpsc::channel();
        let request = tokio::spawn(carry_out(async move {
            may_go_on.recv().unwrap();
            Ok("done")
        }));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!request.is_finished());
        go_on.send(()).unwrap();
        assert_eq!(request.await.unwrap().unwrap(), "done");
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_of_the_request_alone() {
        let failure = carry_out::<()>(async { panic!("as a test") }).await;
        assert_eq!(failure.unwrap_err().reason, Reason::Internal);
    }
}
