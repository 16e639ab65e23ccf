//! `/readiness` and `/liveness` over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tortie_serve::Answers;

use super::Status;

/// Answers on a port of all addresses until it is dropped.
pub(crate) async fn serve(port: u16, status: Arc<Status>) -> std::io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await?;
    let ready = Arc::clone(&status);
    Answers::new()
        .check(&["/readiness"], move || {
            let report = ready.report();
            if ready.is_ready() {
                Ok(report)
            } else {
                Err(report)
            }
        })
        // Whoever answers is alive.
        .check(&["/liveness"], move || Ok(status.report()))
        .serve(listener)
        .await;
    Ok(())
}
