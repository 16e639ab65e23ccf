//! Health, readiness and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use tokio::net::TcpListener;

use super::{Check, Shared, lock};
use crate::error::{Error, Result};

/// Addresses that are bound, and what is served there.
pub(super) struct Endpoints(Vec<(TcpListener, Router)>);

impl Endpoints {
    pub(super) async fn bind(
        shared: &Arc<Shared>,
        health: Option<SocketAddr>,
        metrics: Option<SocketAddr>,
    ) -> Result<Self> {
        let health_paths = Router::new()
            .route("/healthz", get(healthz))
            .route("/liveness", get(healthz))
            .route("/readyz", get(readyz))
            .route("/readiness", get(readyz));
        let metrics_path = Router::new().route("/metrics", get(figures));
        let wanted = match (health, metrics) {
            (Some(health), Some(metrics)) if health == metrics => {
                vec![(
                    "health and metrics",
                    health,
                    health_paths.merge(metrics_path),
                )]
            }
            _ => [
                health.map(|address| ("health", address, health_paths)),
                metrics.map(|address| ("metrics", address, metrics_path)),
            ]
            .into_iter()
            .flatten()
            .collect(),
        };
        let mut bound = Vec::new();
        for (purpose, address, paths) in wanted {
            let listener = TcpListener::bind(address)
                .await
                .map_err(|source| Error::Listen {
                    purpose,
                    address,
                    source,
                })?;
            bound.push((listener, paths.with_state(Arc::clone(shared))));
        }
        Ok(Self(bound))
    }

    /// Serves until it is dropped.
    pub(super) async fn serve(self) -> std::io::Result<()> {
        let all = self
            .0
            .into_iter()
            .map(|(listener, paths)| async move { axum::serve(listener, paths).await });
        futures::future::try_join_all(all).await.map(drop)
    }
}

async fn healthz(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    report(&problems(&lock(&shared.health)))
}

async fn readyz(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let mut problems = problems(&lock(&shared.readiness));
    let unsynced = shared.caches.unsynced();
    if !unsynced.is_empty() {
        problems.push(format!("caches: not filled yet: {}", unsynced.join(", ")));
    }
    report(&problems)
}

fn problems(checks: &[(String, Check)]) -> Vec<String> {
    checks
        .iter()
        .filter_map(|(name, check)| check().err().map(|problem| format!("{name}: {problem}")))
        .collect()
}

fn report(problems: &[String]) -> (StatusCode, String) {
    if problems.is_empty() {
        (StatusCode::OK, "ok".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, problems.join("\n"))
    }
}

async fn figures(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    for measure in lock(&shared.before_metrics).iter() {
        measure();
    }
    let mut text = String::new();
    match encode(&mut text, &lock(&shared.registry)) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            Ok(([(header::CONTENT_TYPE, kind)], text))
        }
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}
