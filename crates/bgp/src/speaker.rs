//! Follows the datastore, and keeps BIRD doing what follows from it.
//!
//! ```text
//! datastore, secrets, workloads ─▶ Feed ─▶ Inputs ─▶ Plan ─▶ text ─▶ Writer: checked, in place, in force
//!                                                      └─▶ Report: what was left out, what BIRD refused
//! ```
//!
//! # Invariants
//! - Nothing is written before everything has been read once.
//! - What BIRD refuses never takes the place of what it has: the last good configuration stays.
//! - Changes that come while BIRD reads its configuration are one change afterwards.

pub mod departure;
mod feed;
mod handover;
mod node_status;
mod own_blocks;
mod report;
mod secrets;
mod workloads;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_store::Store;

pub use self::report::{Outcome, Report};
pub use self::writer::Syntax;

use self::feed::Feed;
use self::handover::Handover;
use self::writer::Writer;
use crate::bird::daemon::{Order, Running};
use crate::bird::{self, Daemon, daemon};
use crate::{Identity, Inputs, Plan};

/// Changes that come together are planned together.
const SETTLE: Duration = Duration::from_millis(20);

/// After a configuration was refused or could not be written.
const RETRY: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_mins(5),
    jitter: 0.1,
};

/// Where things are, and who runs BIRD.
#[derive(Debug, Clone)]
pub struct Options {
    pub identity: Identity,
    pub syntax: Syntax,
    /// The folder of BIRD's configuration.
    pub config_folder: PathBuf,
    /// The folder of BIRD's control sockets, and of the report.
    pub run_folder: PathBuf,
    pub bird: Bird,
    /// The folder in which the agent has a file for each workload.
    pub workloads: PathBuf,
    /// Where secrets with passwords are.
    pub secret_namespace: String,
}

/// Who runs BIRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bird {
    /// This process starts it and watches it.
    Supervised(PathBuf),
    /// Somebody else. The program, if there is one here, checks configurations.
    External(Option<PathBuf>),
}

/// What the speaker does with the node's routes when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// BIRD goes on, for whoever comes next.
    Stay,
    /// Peers are told at once that nothing is to be had here any more.
    Withdraw,
}

/// Follows a datastore for one node.
pub struct Speaker {
    options: Options,
    store: Arc<dyn Store>,
    cluster: Option<kube::Client>,
    report: Arc<Mutex<Report>>,
}

impl Speaker {
    /// `cluster` has services, and secrets with passwords; without it there are none.
    pub fn new(options: Options, store: Arc<dyn Store>, cluster: Option<kube::Client>) -> Self {
        let report = Report::new(&options.identity.node);
        Self {
            options,
            store,
            cluster,
            report: Arc::new(Mutex::new(report)),
        }
    }

    /// What is to be said of it, also while it runs.
    pub fn report(&self) -> impl Fn() -> Report + Send + Sync + 'static {
        let report = Arc::clone(&self.report);
        move || {
            report
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        }
    }

    /// Runs until somebody says farewell, and not while the node has left. Fails only where it could never succeed.
    pub async fn run(self, farewell: mpsc::Receiver<Farewell>) -> Result<(), bird::Error> {
        let Options {
            identity,
            run_folder,
            ..
        } = &self.options;
        tokio::select! {
            ended = self.come_and_go(farewell) => ended,
            never = node_status::keep(&identity.node, run_folder, &self.store) => never,
        }
    }

    async fn come_and_go(&self, mut farewell: mpsc::Receiver<Farewell>) -> Result<(), bird::Error> {
        let folder = &self.options.run_folder;
        loop {
            tokio::select! {
                biased;
                () = departure::until(folder, true) => {}
                ended = self.serve(&mut farewell) => return ended,
            }
            tokio::select! {
                () = self.stay_away() => {}
                _ = farewell.recv() => return Ok(()),
            }
        }
    }

    /// Has BIRD withdraw everything, until the node is back.
    async fn stay_away(&self) {
        tracing::info!("The node leaves: BIRD withdraws its routes");
        while let Err(error) = self.withdraw().await {
            tracing::error!(error = %Causes(&error), "BIRD's routes could not be withdrawn; it is tried again");
            sleep(RETRY.first).await;
        }
        self.note(|report| report.has_left = true);
        departure::until(&self.options.run_folder, false).await;
        tracing::info!("The node is back");
        self.note(|report| report.has_left = false);
        if matches!(self.options.bird, Bird::External(_))
            && let Err(error) = self.begin_sessions().await
        {
            tracing::error!(error = %Causes(&error), "BIRD's sessions could not be enabled again");
        }
    }

    async fn withdraw(&self) -> Result<(), bird::Error> {
        let writer = Writer::new(&self.options)?;
        match self.daemon(&writer) {
            Some(daemon) => daemon.end().await.map(drop),
            None => writer.withdraw().await,
        }
    }

    /// Who runs BIRD, if it is this process.
    fn daemon(&self, writer: &Writer) -> Option<Daemon> {
        match &self.options.bird {
            Bird::Supervised(program) => {
                let socket = writer.main_socket();
                let options = daemon::Options::new(program, &writer.main_file(), socket.path());
                Some(Daemon::new(options))
            }
            Bird::External(_) => None,
        }
    }

    async fn begin_sessions(&self) -> Result<(), bird::Error> {
        Writer::new(&self.options)?.begin_sessions().await
    }

    /// Keeps BIRD doing what the datastore says until somebody says farewell.
    async fn serve(&self, farewell: &mut mpsc::Receiver<Farewell>) -> Result<(), bird::Error> {
        let (orders, received) = mpsc::channel(4);
        let (running, birds) = watch::channel(None);
        let mut writer = Writer::new(&self.options)?;
        let daemon = self.daemon(&writer);
        let (written, is_written) = watch::channel(writer.exists());
        let supervised = supervise(daemon, is_written, received, running);
        tokio::pin!(supervised);
        let followed = self.follow(&mut writer, &written, birds);
        let how = tokio::select! {
            ended = &mut supervised => return ended,
            () = followed => Farewell::Stay,
            how = farewell.recv() => how.unwrap_or(Farewell::Stay),
        };
        if how == Farewell::Withdraw {
            match &self.options.bird {
                Bird::Supervised(_) => {
                    // It ends when BIRD has, which tells its peers first.
                    let _ = orders.send(Order::Down).await;
                    supervised.await?;
                }
                Bird::External(_) => writer.withdraw().await?,
            }
        }
        Ok(())
    }

    /// Plans and writes, whenever something changed that concerns this node.
    async fn follow(
        &self,
        writer: &mut Writer,
        written: &watch::Sender<bool>,
        mut birds: watch::Receiver<Option<Running>>,
    ) {
        let mut inputs = Inputs::new(self.options.identity.clone());
        let mut feed = Feed::start(&self.options, &self.store, self.cluster.as_ref());
        let mut retries = Retries::new(RETRY);
        let mut retry_at: Option<Instant> = None;
        let mut handover = Handover::new();
        let mut is_due = false;
        loop {
            tokio::select! {
                () = feed.changed() => sleep(SETTLE).await,
                () = until(retry_at) => {
                    retry_at = None;
                    is_due = true;
                }
                () = until(handover.next_look) => is_due |= handover.look_again().await,
                Ok(()) = birds.changed() => {
                    let running = birds.borrow_and_update().clone();
                    self.note(|report| report.bird = running.map(|bird| bird.version));
                    continue;
                }
            }
            is_due |= feed.take(&mut inputs);
            feed.follow_secrets(inputs.secrets());
            is_due |= feed.follow_workloads(inputs.has_workload_peers(), &mut inputs);
            self.note(|report| report.take_feed(&feed));
            if !feed.is_complete() || !is_due {
                continue;
            }
            let mut plan = Plan::new(&inputs);
            handover.adjust(&mut plan).await;
            let problems = writer.problems(&plan);
            self.note(|report| report.take_problems(&problems));
            match writer.write(&plan).await {
                Ok(outcome) => {
                    retries.reset();
                    retry_at = None;
                    self.note(|report| report.take_outcome(&plan, outcome));
                    let _ = written.send(true);
                }
                Err(error) => {
                    let delay = retries.failed();
                    tracing::error!(error = %Causes(&error), ?delay, "BIRD's configuration stays as it was; it is tried again");
                    self.note(|report| report.take_failure(&error));
                    retry_at = Some(Instant::now() + delay);
                }
            }
            is_due = false;
        }
    }

    /// Changes the report, and the file that has it.
    fn note(&self, change: impl FnOnce(&mut Report)) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let before = report.clone();
        change(&mut report);
        if *report != before {
            report.write(&self.options.run_folder);
        }
    }
}

/// Runs BIRD once there is a configuration for it.
async fn supervise(
    daemon: Option<Daemon>,
    mut is_written: watch::Receiver<bool>,
    mut orders: mpsc::Receiver<Order>,
    running: watch::Sender<Option<Running>>,
) -> Result<(), bird::Error> {
    let Some(daemon) = daemon else {
        return std::future::pending().await;
    };
    tokio::select! {
        Ok(_) = is_written.wait_for(|is_written| *is_written) => {}
        // Nothing runs that could be told to end.
        _ = orders.recv() => return Ok(()),
    }
    daemon.run(orders, running).await
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
