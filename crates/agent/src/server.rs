//! Health and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::agent::Agent;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::node_status::Report;
use tortie_config::Config;
use tortie_error::Causes;

/// `/liveness`, `/readiness` and `/status`.
fn health(agent: &Agent) -> Router {
    let answers = Router::new()
        .route("/liveness", get(liveness))
        .route("/readiness", get(readiness))
        .with_state(Arc::clone(agent.health()));
    let status = Router::new()
        .route("/status", get(status))
        .with_state(Arc::clone(agent.report()));
    answers.merge(status)
}

fn metrics(agent: &Agent) -> Router {
    Router::new()
        .route("/metrics", get(figures))
        .with_state(Arc::clone(agent.metrics()))
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
            let (host, port) = (config.health.host.clone(), config.health.port);
            let task = runtime.spawn(run("health", host, port, health(agent)));
            servers.0.push(task.abort_handle());
        }
        let wants_tls = [
            &config.metrics.ca_file,
            &config.metrics.cert_file,
            &config.metrics.key_file,
        ];
        if config.metrics.enabled && wants_tls.iter().any(|file| file.is_some()) {
            tracing::error!(
                "Metrics are not served: certificates are configured, and TLS is not supported"
            );
        } else if config.metrics.enabled {
            let host = config.metrics.host.clone().unwrap_or_default();
            let task = runtime.spawn(run("metrics", host, config.metrics.port, metrics(agent)));
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

async fn run(what: &'static str, host: String, port: u16, paths: Router) {
    let result = match listen(&host, port).await {
        Ok(listener) => axum::serve(listener, paths).await,
        Err(error) => Err(error),
    };
    if let Err(error) = result {
        tracing::error!(server = what, host, port, error = %Causes(&error), "The server cannot listen");
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

async fn status(State(report): State<Arc<Report>>) -> impl IntoResponse {
    // A document of texts and numbers can always be written.
    let text = serde_json::to_string_pretty(&report.status()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text + "\n")
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
