//! Health, readiness and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use tokio::net::TcpListener;
use tortie_serve::Answers;

use super::{Check, Shared, lock};
use crate::error::{Error, Result};

/// Addresses that are bound, and what is served there.
pub(super) struct Endpoints(Vec<(TcpListener, Answers)>);

impl Endpoints {
    pub(super) async fn bind(
        shared: &Arc<Shared>,
        health: Option<SocketAddr>,
        metrics: Option<SocketAddr>,
    ) -> Result<Self> {
        let [healthy, ready, shown] = [(); 3].map(|()| Arc::clone(shared));
        let health_paths = Answers::new()
            .check(&["/healthz", "/liveness"], move || {
                report(&problems(&lock(&healthy.health)))
            })
            .check(&["/readyz", "/readiness"], move || readiness(&ready));
        let metrics_path = Answers::new().metrics(move || figures(&shown));
        let wanted = match (health, metrics) {
            (Some(health), Some(metrics)) if health == metrics => {
                let paths = health_paths.and(metrics_path);
                vec![("health and metrics", health, paths)]
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
            bound.push((listener, paths));
        }
        Ok(Self(bound))
    }

    /// Serves until it is dropped.
    pub(super) async fn serve(self) {
        let all = self
            .0
            .into_iter()
            .map(|(listener, paths)| paths.serve(listener));
        futures::future::join_all(all).await;
    }
}

fn readiness(shared: &Shared) -> Result<String, String> {
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

fn report(problems: &[String]) -> Result<String, String> {
    if problems.is_empty() {
        Ok("ok".to_owned())
    } else {
        Err(problems.join("\n"))
    }
}

fn figures(shared: &Shared) -> String {
    for measure in lock(&shared.before_metrics).iter() {
        measure();
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &lock(&shared.registry));
    text
}
