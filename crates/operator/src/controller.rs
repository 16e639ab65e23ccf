//! A controller: sources of keys, a queue, and workers that reconcile.

mod builder;
mod predicate;
mod source;
mod worker;

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};

pub use self::builder::{Builder, Start, Watching};
pub use self::predicate::{annotations_changed, generation_changed, labels_changed};

use crate::leadership::Leadership;
use crate::manager::Manager;
use crate::queue::Key;

/// A controller, ready to be [added](Manager::add) to its manager.
pub struct Controller {
    name: String,
    /// Why it cannot run.
    problem: Option<String>,
    run: Box<dyn FnOnce(Running) -> BoxFuture<'static, ()> + Send>,
}

/// What a controller runs under.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) leadership: Leadership,
    /// Becomes true when no more work is to begin.
    pub(crate) stop: watch::Receiver<bool>,
    /// Held by everyone who may still be at work: the other end learns when the last one is gone.
    #[expect(dead_code, reason = "it is held, never used")]
    pub(crate) at_work: mpsc::Sender<Infallible>,
}

impl Controller {
    /// Begins the description of a controller. Its name is that of its queue and in its metrics.
    pub fn builder<K: Key>(name: impl Into<String>, manager: &Manager) -> Builder<K, Start> {
        Builder::new(name.into(), manager.shared())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    pub(crate) fn run(self, running: Running) -> BoxFuture<'static, ()> {
        (self.run)(running)
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// How a controller's workers behave.
#[derive(Clone, Debug)]
struct Settings {
    name: String,
    workers: usize,
    max_retries: Option<u32>,
    resync: Option<Duration>,
}
