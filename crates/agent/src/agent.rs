//! The agent from start to end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::runtime::Handle;
use tortie_kernel::poll::Waker;
use tortie_store::Store;

use crate::claim;
use crate::health::Health;
use crate::last_good::LastGood;
use crate::metrics::Metrics;
use crate::node_status::Report;
use crate::recording::Recording;
use crate::running::{End, Running};
use tortie_config::WithoutEffect;
use tortie_rules::TooFewMarks;

/// What an agent is started with.
pub struct Options {
    /// The node that it works for.
    pub node: String,
    /// Parameters of the environment.
    pub environment: BTreeMap<String, String>,
    /// Parameters of the file.
    pub file: BTreeMap<String, String>,
    /// The datastore.
    pub store: Arc<dyn Store>,
    /// The cluster that is the datastore, if one is.
    pub cluster: Option<kube::Client>,
    /// What others are told who find that the kernel is taken: the program and the datastore.
    pub about: String,
    /// Whether an agent that has the kernel is told to end.
    pub take_over: bool,
    /// Where tasks that talk to the datastore run.
    pub runtime: Handle,
    /// Where endpoints that are up are told, in place of what the configuration says.
    pub status_folder: Option<PathBuf>,
    /// Where CNI plugins read how large packets of pods may be; none: they are not told.
    pub mtu_file: Option<PathBuf>,
    /// Where CNI plugins read that policy is in force since this start of the machine; none: they are not told.
    pub ready_file: Option<PathBuf>,
    /// Whether packets to other nodes may go in clear text where the configuration says that they are encrypted.
    pub allow_cleartext: bool,
}

/// Ends an agent.
#[derive(Debug, Clone)]
pub struct Stop {
    is_stopped: Arc<AtomicBool>,
    waker: Waker,
}

/// Enforces on one machine what the datastore says. Runs on one thread, in the network namespace of that thread.
pub struct Agent {
    pub(crate) options: Options,
    pub(crate) waker: Waker,
    is_stopped: Arc<AtomicBool>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) report: Arc<Report>,
    pub(crate) recording: Recording,
    pub(crate) started: Instant,
    /// Called once, when everything is in force.
    pub(crate) on_ready: Option<Box<dyn Fn() + Send>>,
}

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter that it cannot do without is wrong.
    #[error("{0}")]
    Configuration(String),
    /// Another agent works in this network namespace.
    #[error(
        "another agent enforces policy here: {holder}; end it first, or start this one with --take-over"
    )]
    Taken {
        /// Who that is.
        holder: String,
    },
    /// Another agent was told to end, and has not.
    #[error("another agent was told to end, and still works here: {holder}")]
    Stays {
        /// Who that is.
        holder: String,
    },
    /// The packet mark has too few bits.
    #[error(transparent)]
    Marks(#[from] TooFewMarks),
    /// The data plane cannot be reached at all.
    #[error(transparent)]
    Dataplane(#[from] tortie_dataplane::Error),
    /// Routes and interfaces cannot be reached at all.
    #[error("routes and interfaces cannot be read")]
    Routes(#[from] tortie_kernel::route::Error),
    /// The kernel does not tell of changes, or the thread cannot wait for them.
    #[error("changes cannot be waited for")]
    Waiting(#[from] std::io::Error),
}

// === impl Stop ===

impl Stop {
    /// Ends the agent. The kernel keeps what it has.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.waker.wake();
    }
}

// === impl Agent ===

impl Agent {
    /// An agent that has not started.
    pub fn new(options: Options) -> Result<Self, Error> {
        let health = Arc::new(Health::new());
        let waker = Waker::new()?;
        Ok(Self {
            report: Arc::new(Report::new(&options.node, &health)),
            options,
            recording: Recording::new(waker.clone()),
            waker,
            is_stopped: Arc::new(AtomicBool::new(false)),
            health,
            metrics: Arc::new(Metrics::new()),
            started: Instant::now(),
            on_ready: None,
        })
    }

    /// What ends it.
    pub fn stop(&self) -> Stop {
        Stop {
            is_stopped: Arc::clone(&self.is_stopped),
            waker: self.waker.clone(),
        }
    }

    /// What starts and ends recordings of what its engine is told.
    pub fn recording(&self) -> Recording {
        self.recording.clone()
    }

    /// Whether it is alive and ready.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// What it counts and measures.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// What it says about the node.
    pub fn report(&self) -> &Arc<Report> {
        &self.report
    }

    /// Calls this once everything is in force.
    pub fn on_ready(&mut self, call: impl Fn() + Send + 'static) {
        self.on_ready = Some(Box::new(call));
    }

    /// Runs until it is stopped, on the calling thread.
    pub fn run(self) -> Result<(), Error> {
        let _claim = claim::take(&self)?;
        let options = &self.options;
        let mut last_good = LastGood::new(
            options.environment.clone(),
            options.file.clone(),
            options.allow_cleartext,
        )?;
        loop {
            self.recording.settle();
            self.tell_without_effect(last_good.without_effect());
            let node = match Running::start(&self, last_good.config().clone()) {
                Ok(node) => node,
                Err(error) => {
                    last_good.revert(error)?;
                    continue;
                }
            };
            match node.run(&self, &mut last_good)? {
                End::Stopped => {
                    self.recording.end();
                    return Ok(());
                }
                End::Restart => {
                    tracing::info!("The configuration changed; starting again with the new one");
                }
                End::Record => tracing::info!("Everything is read again for a recording"),
            }
        }
    }

    /// These parameters are set to something that the agent does not do.
    pub(crate) fn tell_without_effect(&self, parameters: &[WithoutEffect]) {
        self.metrics.set_parameters_without_effect(parameters);
        self.report.set_parameters_without_effect(parameters);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}
