//! The process: its start, the controllers that are on, and their start anew when the settings change.

mod controllers;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tortie_client::Client;
use tortie_client::connect::Backend;
use tortie_error::Causes;
use tortie_operator::{LeaderElection, Manager};

use crate::configuration::Configuration;
use crate::health::{self, Status};
use crate::settings::{LogLevel, Refused, Settings};

/// How long the datastore may be unusable at the start.
const START_PATIENCE: Duration = Duration::from_mins(1);
const START_RETRY: Duration = Duration::from_secs(2);

/// How long writes that are under way may take when the process ends or starts its controllers anew.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// What the process is given.
pub struct Options {
    /// The datastore.
    pub client: Client,
    /// What kind of datastore that is.
    pub backend: Backend,
    pub cluster: kube::Client,
    /// Whether it is an API server without Kubernetes' own controllers, so that what those do is done here.
    pub stands_alone: bool,
    /// The variables of the process.
    pub variables: BTreeMap<String, String>,
    /// The file that says how the process is.
    pub status_file: PathBuf,
    /// The port that says the same, if it is wanted.
    pub health_port: Option<u16>,
    /// The lease that one of several processes holds; without it this one takes itself for the only one.
    pub leader_election: Option<LeaderElection>,
    /// Changes what is logged.
    pub set_log_level: Box<dyn Fn(LogLevel) + Send + Sync>,
}

/// Why the process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Variables of the process cannot be used.
    #[error("{}", lines(.0))]
    Refused(Vec<Refused>),
    /// The port of the health probes is taken, say.
    #[error("health cannot be served on port {port}")]
    Health {
        port: u16,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The datastore was not usable for too long.
    #[error("Failed to initialize Calico datastore")]
    Datastore(#[source] tortie_store::Error),
    /// The controllers ended.
    #[error("the controllers cannot run")]
    Controllers(#[source] tortie_operator::Error),
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("backend", &self.backend)
            .field("status_file", &self.status_file)
            .field("health_port", &self.health_port)
            .field("leader_election", &self.leader_election)
            .finish_non_exhaustive()
    }
}

/// Runs until `shutdown` ends, or until something fails that a new start might cure.
pub async fn run(options: Options, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let configuration = Configuration {
        client: options.client.clone(),
        variables: options.variables.clone(),
        datastore: options.backend.datastore_type(),
    };
    configuration.check().map_err(Error::Refused)?;
    let status = Arc::new(Status::new(options.status_file.clone()));
    status.set(health::STARTUP, false, "initialized to false");
    // Dropped with all its tasks at the end.
    let mut tasks: JoinSet<Result<(), Error>> = JoinSet::new();
    if let Some(port) = options.health_port {
        let served = health::serve(port, Arc::clone(&status));
        tasks.spawn(async move {
            served
                .await
                .map_err(|source| Error::Health { port, source })
        });
    }
    let mut shutdown = pin!(shutdown);
    tokio::select! {
        outcome = initialize(&options.client, &status) => outcome?,
        error = failure(&mut tasks) => return Err(error),
        () = shutdown.as_mut() => return Ok(()),
    }
    let (sender, mut settings) = watch::channel(None);
    tasks.spawn(async move {
        configuration.follow(sender).await;
        Ok(())
    });
    let restart = Arc::new(Notify::new());
    loop {
        let current = tokio::select! {
            current = next_settings(&mut settings) => current,
            error = failure(&mut tasks) => return Err(error),
            () = shutdown.as_mut() => return Ok(()),
        };
        (options.set_log_level)(current.log_level);
        let mut is_over = false;
        let mut failed = None;
        let stop = async {
            tokio::select! {
                () = shutdown.as_mut() => is_over = true,
                () = restart.notified() => is_over = true,
                error = failure(&mut tasks) => failed = Some(error),
                () = changed(&mut settings, &current, &options.set_log_level) => {
                    tracing::warn!("The configuration changed; restarting the controllers");
                }
            }
        };
        let outcome = Box::pin(run_controllers(&options, &current, &status, &restart, stop)).await;
        match (failed, outcome) {
            (Some(error), _) => return Err(error),
            (None, Err(tortie_operator::Error::LeadershipLost)) => {
                tracing::warn!("Leadership was lost; waiting for it again");
            }
            (None, Err(error)) => return Err(Error::Controllers(error)),
            (None, Ok(())) if is_over => return Ok(()),
            (None, Ok(())) => {}
        }
    }
}

/// Makes sure that the datastore holds what is always there.
async fn initialize(client: &Client, status: &Status) -> Result<(), Error> {
    tracing::info!("Ensuring Calico datastore is initialized");
    let due = Instant::now() + START_PATIENCE;
    loop {
        match client.ensure_initialized("", health::CLUSTER_TYPE).await {
            Ok(()) => break,
            Err(error) if Instant::now() >= due => return Err(Error::Datastore(error)),
            Err(error) => {
                tracing::info!(error = %Causes(&error), "Failed to initialize datastore");
                let reason = format!("Error initializing datastore: {error}");
                status.set(health::STARTUP, false, &reason);
            }
        }
        sleep(START_RETRY).await;
    }
    tracing::info!("Calico datastore is initialized");
    status.set(health::STARTUP, true, "");
    Ok(())
}

/// Runs the controllers that are on until `stop` ends.
async fn run_controllers(
    options: &Options,
    settings: &Settings,
    status: &Status,
    restart: &Arc<Notify>,
    stop: impl Future<Output = ()>,
) -> Result<(), tortie_operator::Error> {
    let mut builder = Manager::builder(options.cluster.clone()).shutdown_patience(STOP_PATIENCE);
    if let Some(port) = settings.profile_port {
        tracing::warn!(
            port,
            "Profiles are not served at debugProfilePort; use `perf record -g -p` with this process's id"
        );
    }
    if let Some(port) = settings.metrics_port {
        builder = builder.metrics(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    }
    if let Some(election) = &options.leader_election {
        builder = builder.leader_election(election.clone());
    }
    let manager = builder.build();
    controllers::add(&manager, options, settings, restart);
    let health = async {
        if settings.health_checks {
            tracing::info!("Starting status report routine");
            health::check(&options.client, &options.cluster, status).await;
        } else {
            status.forget(health::DATASTORE);
            status.forget(health::API_SERVER);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcome = manager.run(stop) => outcome,
        () = health => Ok(()),
    }
}

/// The settings, once they are known.
async fn next_settings(settings: &mut watch::Receiver<Option<Settings>>) -> Settings {
    loop {
        if let Some(current) = settings.borrow_and_update().clone() {
            return current;
        }
        if settings.changed().await.is_err() {
            // Whoever told them has ended, as all does at the end.
            std::future::pending::<()>().await;
        }
    }
}

/// Waits for settings that the controllers must be started anew for.
async fn changed(
    settings: &mut watch::Receiver<Option<Settings>>,
    current: &Settings,
    set_log_level: &(dyn Fn(LogLevel) + Send + Sync),
) {
    loop {
        if settings.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        let Some(new) = settings.borrow_and_update().clone() else {
            continue;
        };
        set_log_level(new.log_level);
        let log_level = current.log_level;
        if (Settings { log_level, ..new }) != *current {
            return;
        }
    }
}

/// Waits until a task fails.
async fn failure(tasks: &mut JoinSet<Result<(), Error>>) -> Error {
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(Err(error)) => return error,
            Ok(Ok(())) => {}
            Err(panic) => {
                let error = format!("a task ended unexpectedly: {panic}");
                return Error::Controllers(tortie_operator::Error::Settings(error));
            }
        }
    }
    std::future::pending().await
}

fn lines(refused: &[Refused]) -> String {
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
