//! Health and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::agent::Agent;
use crate::config::Config;
use crate::metrics::Metrics;

/// The loop must come round at least this often, or the agent is not alive.
const ALIVE_WITHIN: Duration = Duration::from_secs(90);

/// Whether the agent is alive and ready.
#[derive(Debug)]
pub struct Health {
    state: Mutex<HealthState>,
}

#[derive(Debug)]
struct HealthState {
    last_round: Instant,
    is_in_sync: bool,
    /// What is wrong with the data plane; `None` once everything is in force.
    dataplane: Option<String>,
}

impl Health {
    /// Alive and not ready.
    pub fn new() -> Self {
        Self {
            state: Mutex::new(HealthState {
                last_round: Instant::now(),
                is_in_sync: false,
                dataplane: Some("not programmed yet".to_owned()),
            }),
        }
    }

    /// The loop came round.
    pub(crate) fn round(&self) {
        self.lock().last_round = Instant::now();
    }

    /// Whether all is known that the datastore holds.
    pub(crate) fn set_in_sync(&self, is_in_sync: bool) {
        self.lock().is_in_sync = is_in_sync;
    }

    /// Whether everything is in force; what is wrong if it is not.
    pub(crate) fn set_dataplane(&self, problem: Option<String>) {
        self.lock().dataplane = problem;
    }

    /// Whether the agent works; why not, if it does not.
    pub fn liveness(&self) -> Result<(), String> {
        let since = self.lock().last_round.elapsed();
        if since <= ALIVE_WITHIN {
            return Ok(());
        }
        Err(format!("no round for {} seconds", since.as_secs()))
    }

    /// Whether policy is enforced; why not, if it is not.
    pub fn readiness(&self) -> Result<(), String> {
        self.liveness()?;
        let state = self.lock();
        if !state.is_in_sync {
            return Err("the datastore has not been read completely".to_owned());
        }
        match &state.dataplane {
            None => Ok(()),
            Some(problem) => Err(format!("data plane: {problem}")),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

/// Serves `/liveness`, `/readiness` and, if wanted, `/metrics`, until it is dropped.
pub async fn serve(
    listener: TcpListener,
    health: Option<Arc<Health>>,
    metrics: Option<Arc<Metrics>>,
) -> std::io::Result<()> {
    let mut all = Router::new();
    if let Some(health) = health {
        let paths = Router::new()
            .route("/liveness", get(liveness))
            .route("/readiness", get(readiness))
            .with_state(health);
        all = all.merge(paths);
    }
    if let Some(metrics) = metrics {
        let paths = Router::new()
            .route("/metrics", get(figures))
            .with_state(metrics);
        all = all.merge(paths);
    }
    axum::serve(listener, all).await
}

/// Servers that run until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Servers(Vec<AbortHandle>);

impl Servers {
    /// Starts those that the configuration asks for. One that cannot start is reported and left out: the agent's work
    /// is more important.
    pub(crate) fn start(agent: &Agent, config: &Config) -> Self {
        let mut servers = Self::default();
        let runtime = &agent.options.runtime;
        if config.health.enabled {
            let health = Arc::clone(agent.health());
            let (host, port) = (config.health.host.clone(), config.health.port);
            let task = runtime.spawn(run("health", host, port, Some(health), None));
            servers.0.push(task.abort_handle());
        }
        let wants_tls = [
            &config.metrics.ca_file,
            &config.metrics.cert_file,
            &config.metrics.key_file,
        ];
        if config.metrics.enabled && wants_tls.iter().any(|file| file.is_some()) {
            tracing::error!(
                "metrics are not served: certificates are configured, and TLS is not there yet"
            );
        } else if config.metrics.enabled {
            let metrics = Arc::clone(agent.metrics());
            let host = config.metrics.host.clone().unwrap_or_default();
            let task = runtime.spawn(run(
                "metrics",
                host,
                config.metrics.port,
                None,
                Some(metrics),
            ));
            servers.0.push(task.abort_handle());
        }
        servers
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

async fn run(
    what: &'static str,
    host: String,
    port: u16,
    health: Option<Arc<Health>>,
    metrics: Option<Arc<Metrics>>,
) {
    let result = match listen(&host, port).await {
        Ok(listener) => serve(listener, health, metrics).await,
        Err(error) => Err(error),
    };
    if let Err(error) = result {
        tracing::error!("{what} cannot be served on {host}:{port}: {error}");
    }
}

/// The address to listen on: a name or an address, and a port.
async fn listen(host: &str, port: u16) -> std::io::Result<TcpListener> {
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    let mut last = None;
    for address in tokio::net::lookup_host((host, port)).await? {
        match TcpListener::bind::<SocketAddr>(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::Error::other(format!("{host} has no address"))))
}

async fn liveness(State(health): State<Arc<Health>>) -> (StatusCode, String) {
    answer(health.liveness())
}

async fn readiness(State(health): State<Arc<Health>>) -> (StatusCode, String) {
    answer(health.readiness())
}

fn answer(result: Result<(), String>) -> (StatusCode, String) {
    match result {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

async fn figures(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.text())
}
