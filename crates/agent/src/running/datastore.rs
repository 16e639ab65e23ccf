//! Whether what the datastore says may be brought into the kernel.
//!
//! Two things must hold: all that it held at the start is known, and it says itself that it is ready. It does not while
//! somebody moves its contents to another one, and an empty one never did: what it holds then is not what anybody wants to
//! be enforced. So nothing in the kernel is touched meanwhile, and somebody is told about it again and again.

use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::health::Part;

/// How often it is said that the datastore is not ready.
const REMINDER: Duration = Duration::from_mins(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Datastore {
    is_read: bool,
    is_ready: Option<bool>,
    /// Kinds that it does not let us read; what was known of them stays in force.
    refusals: Option<String>,
    /// Objects of which no version could be read, and for want of which something may be open.
    unprotected: Option<String>,
    /// When it was last said that it is not ready.
    said: Option<Instant>,
}

impl Datastore {
    /// All is known that it held at the start; whether that is news.
    pub(super) fn set_read(&mut self) -> bool {
        !std::mem::replace(&mut self.is_read, true)
    }

    /// It does not let us read these kinds.
    pub(super) fn set_refusals(&mut self, refusals: &[String]) {
        self.refusals = (!refusals.is_empty()).then(|| refusals.join("; "));
    }

    /// These objects cannot be read, and something may be open for want of them.
    pub(super) fn set_unprotected(&mut self, objects: &[String]) {
        self.unprotected = (!objects.is_empty()).then(|| objects.join(", "));
    }

    /// It is ready; whether it was not before.
    pub(super) fn set_ready(&mut self) -> bool {
        let was_not_ready = self.is_ready == Some(false);
        if was_not_ready {
            tracing::info!("The datastore is ready again; everything is compared with it");
        }
        self.is_ready = Some(true);
        was_not_ready
    }

    /// It is not ready.
    pub(super) fn set_not_ready(&mut self) {
        self.is_ready = Some(false);
    }

    /// Whether the kernel may be changed. Tells people if not.
    pub(super) fn permits(&mut self, agent: &Agent) -> bool {
        let is_ready = self.is_ready == Some(true);
        agent.metrics.datastore_ready.set(i64::from(is_ready));
        agent.report.set_datastore_ready(is_ready);
        let (permits, mut problem) = match (self.is_read, self.is_ready) {
            (true, Some(true)) => (true, None),
            (true, Some(false)) => (
                false,
                Some(
                    "the datastore is not ready: `datastoreReady` of ClusterInformation `default` is not true; \
                     what is enforced stays as it is"
                        .to_owned(),
                ),
            ),
            _ => (
                false,
                Some("the datastore has not been read completely".to_owned()),
            ),
        };
        let refused = self.refusals.as_ref().map(|refusals| {
            format!(
                "the datastore does not let us read {refusals}; what was known of it stays in force"
            )
        });
        let unprotected = self.unprotected.as_ref().map(|objects| {
            format!("what these close may be open, since they cannot be read: {objects}")
        });
        for more in [refused, unprotected].into_iter().flatten() {
            problem = Some(match problem {
                Some(problem) => format!("{problem}; {more}"),
                None => more,
            });
        }
        let is_known = self.is_ready.is_some() || self.refusals.is_some();
        if let Some(problem) = problem.as_ref().filter(|_| is_known)
            && self.said.is_none_or(|said| said.elapsed() >= REMINDER)
        {
            self.said = Some(Instant::now());
            tracing::warn!(%problem, "The node is not ready");
        }
        if problem.is_none() {
            self.said = None;
        }
        agent.health.set(Part::Datastore, problem);
        permits
    }
}
