//! What a process answers about itself: whether it is well, figures, documents.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::{Acceptor, Certificate, Limits, PlainListener, TlsListener, serve};

/// The media type of figures.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a process answers about itself, by path.
#[derive(Debug, Clone, Default)]
pub struct Answers(Router);

impl Answers {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says under several paths whether something is well: 200 with a text if it is, or 503 with what is wrong.
    #[must_use]
    pub fn check<F>(mut self, paths: &[&str], check: F) -> Self
    where
        F: Fn() -> Result<String, String> + Send + Sync + 'static,
    {
        let check = Arc::new(check);
        for path in paths {
            let check = Arc::clone(&check);
            let answer = async move || match check() {
                Ok(text) => (StatusCode::OK, text),
                Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem),
            };
            self.0 = self.0.route(path, get(answer));
        }
        self
    }

    /// Shows figures in the text form of `OpenMetrics` under `/metrics`.
    #[must_use]
    pub fn metrics<F>(self, text: F) -> Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.document("/metrics", OPENMETRICS, text)
    }

    /// Shows a document.
    #[must_use]
    pub fn document<F>(self, path: &str, media_type: &'static str, text: F) -> Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        let text = Arc::new(text);
        let answer = async move || ([(header::CONTENT_TYPE, media_type)], text());
        Self(self.0.route(path, get(answer)))
    }

    /// All of both, which have no path in common.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0.merge(others.0))
    }

    /// Gives them to everybody, until this is dropped.
    pub async fn serve(self, listener: TcpListener) {
        let (limits, forever) = (Limits::default(), std::future::pending());
        serve(PlainListener(listener), self.0, &limits, forever).await;
    }

    /// Gives them over TLS with a certificate that is followed, until this is dropped.
    pub async fn serve_tls(self, tcp: TcpListener, acceptor: Acceptor, certificate: &Certificate) {
        let (limits, forever) = (Limits::default(), std::future::pending());
        tokio::select! {
            () = certificate.follow() => {}
            () = serve(TlsListener { tcp, acceptor }, self.0, &limits, forever) => {}
        }
    }
}
