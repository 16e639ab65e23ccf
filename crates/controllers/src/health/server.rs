//! `/readiness` and `/liveness` over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

use super::Status;

/// Answers on a port of all addresses until it is dropped.
pub(crate) async fn serve(port: u16, status: Arc<Status>) -> std::io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await?;
    let routes = Router::new()
        .route("/readiness", get(readiness))
        .route("/liveness", get(liveness))
        .with_state(status);
    axum::serve(listener, routes).await
}

async fn readiness(State(status): State<Arc<Status>>) -> (StatusCode, String) {
    let code = if status.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, status.report())
}

/// Whoever answers is alive.
async fn liveness(State(status): State<Arc<Status>>) -> (StatusCode, String) {
    (StatusCode::OK, status.report())
}
