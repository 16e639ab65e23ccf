//! Serves webhooks over TLS.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request as HttpRequest, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::FutureExt as _;
use tokio::net::TcpListener;
use tortie_serve::{Acceptor, Authorities, Certificate, Clients, Limits, TlsListener};

use super::review::{API_VERSION, KIND, Question, Refusal, Reply};
use super::{Handler, WebhookServer};
use crate::error::{Error, Result};
use crate::metrics::Metrics;

/// A server whose address is taken and whose certificate is good.
#[derive(Debug)]
pub(crate) struct BoundWebhooks {
    listener: TlsListener,
    certificate: Arc<Certificate>,
    router: Router,
}

struct Handlers {
    by_path: BTreeMap<String, Handler>,
    most_bytes: usize,
    patience: Duration,
    metrics: Arc<Metrics>,
}

impl WebhookServer {
    pub(crate) async fn bind(self, metrics: Arc<Metrics>) -> Result<BoundWebhooks> {
        let certificate = Arc::new(Certificate::load(self.certificate, self.key)?);
        let clients = match self.client_authorities {
            Some(path) => Clients::Required(Arc::new(Authorities::load(&path)?)),
            None => Clients::Unknown,
        };
        let acceptor = Acceptor::new(&certificate, clients)?;
        let tcp = TcpListener::bind(self.address)
            .await
            .map_err(|source| Error::Listen {
                purpose: "webhooks",
                address: self.address,
                source,
            })?;
        let mut router = Router::new();
        for path in self.handlers.keys() {
            router = router.route(path, post(answer));
        }
        let handlers = Handlers {
            by_path: self.handlers,
            most_bytes: self.most_bytes,
            patience: self.patience,
            metrics,
        };
        // The limit is checked where the body is read, which gives a better answer.
        let router = router
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::new(handlers));
        // After the layers: it has no body.
        let router = match self.ready {
            Some(path) => router.route(&path, get(async || "ok")),
            None => router,
        };
        Ok(BoundWebhooks {
            listener: TlsListener { tcp, acceptor },
            certificate,
            router,
        })
    }
}

impl BoundWebhooks {
    /// Serves until it is dropped.
    pub(crate) async fn serve(self) -> std::io::Result<()> {
        let limits = Limits::default();
        let forever = std::future::pending();
        tokio::select! {
            () = self.certificate.follow() => Ok(()),
            () = tortie_serve::serve(self.listener, self.router, &limits, forever) => Ok(()),
        }
    }
}

async fn answer(State(handlers): State<Arc<Handlers>>, request: HttpRequest) -> Response {
    let start = Instant::now();
    let path = request.uri().path().to_owned();
    let response = handlers.answer(&path, request).await;
    let code = match &response {
        Ok(reply) => reply.code(),
        Err((code, _)) => code.as_u16(),
    };
    handlers
        .metrics
        .webhook(&path, code, start.elapsed().as_secs_f64());
    match response {
        Ok(reply) => reply.into_response(),
        Err((code, text)) => (code, text).into_response(),
    }
}

impl Handlers {
    async fn answer(
        &self,
        path: &str,
        request: HttpRequest,
    ) -> Result<Reply, (StatusCode, String)> {
        let bad = |text: String| (StatusCode::BAD_REQUEST, text);
        let handler = self.by_path.get(path).ok_or_else(|| {
            let text = format!("there is no webhook at {path}");
            (StatusCode::NOT_FOUND, text)
        })?;
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            let text = format!("content type `{kind}` is not `application/json`");
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        let read = axum::body::to_bytes(request.into_body(), self.most_bytes);
        let body: Bytes = tokio::time::timeout(self.patience, read)
            .await
            .map_err(|_| {
                (
                    StatusCode::REQUEST_TIMEOUT,
                    "the request took too long".to_owned(),
                )
            })?
            .map_err(|error| {
                let text = format!("cannot read {} bytes at most: {error}", self.most_bytes);
                (StatusCode::PAYLOAD_TOO_LARGE, text)
            })?;
        let question: Question =
            serde_json::from_slice(&body).map_err(|error| bad(format!("not a review: {error}")))?;
        drop(body);
        if question.api_version != API_VERSION || question.kind != KIND {
            let Question {
                api_version, kind, ..
            } = question;
            return Err(bad(format!(
                "{api_version} {kind} is not {API_VERSION} {KIND}"
            )));
        }
        let request = question
            .request
            .ok_or_else(|| bad("the review asks nothing".to_owned()))?;
        let uid = request.uid.clone();
        let work = AssertUnwindSafe(async { handler(request).await }).catch_unwind();
        let outcome = match tokio::time::timeout(self.patience, work).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => {
                tracing::error!(path, "A webhook's handler panicked");
                Err(Refusal::internal("it panicked"))
            }
            Err(_) => Err(Refusal::internal("it took too long")),
        };
        Ok(Reply::new(uid, outcome))
    }
}
