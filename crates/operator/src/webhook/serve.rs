//! Serves webhooks over TLS.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request as HttpRequest, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::FutureExt as _;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificate::Certificate;
use super::review::{API_VERSION, KIND, Question, Refusal, Reply};
use super::{Handler, WebhookServer};
use crate::error::{Error, Result};
use crate::metrics::Metrics;

/// How long a client may take to agree on keys.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);

/// How many clients may be at it at a time.
const MOST_HANDSHAKES: usize = 256;

/// A server whose address is taken and whose certificate is good.
#[derive(Debug)]
pub(crate) struct BoundWebhooks {
    listener: TcpListener,
    certificate: Arc<Certificate>,
    acceptor: Acceptor,
    router: Router,
}

#[derive(Clone)]
struct Acceptor(TlsAcceptor);

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acceptor")
    }
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
        let settings = |error: rustls::Error| Error::Settings(format!("TLS: {error}"));
        let mut config = ServerConfig::builder_with_provider(certificate.provider())
            .with_safe_default_protocol_versions()
            .map_err(settings)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificate) as Arc<_>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let listener = TcpListener::bind(self.address)
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
        Ok(BoundWebhooks {
            listener,
            certificate,
            acceptor: Acceptor(TlsAcceptor::from(Arc::new(config))),
            router,
        })
    }
}

impl BoundWebhooks {
    /// Serves until it is dropped.
    pub(crate) async fn serve(self) -> std::io::Result<()> {
        let local = self.listener.local_addr()?;
        let (ready, connections) = mpsc::channel(16);
        let incoming = Incoming { connections, local };
        tokio::select! {
            () = self.certificate.follow() => Ok(()),
            () = accept(self.listener, self.acceptor, ready) => Ok(()),
            served = axum::serve(incoming, self.router) => served,
        }
    }
}

/// Agrees on keys with each client beside the others, so that a slow one holds up nobody.
async fn accept(
    listener: TcpListener,
    acceptor: Acceptor,
    ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let places = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Mostly a lack of file descriptors, which passes.
                tracing::warn!(%error, "Cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (acceptor, ready) = (acceptor.0.clone(), ready.clone());
        tokio::spawn(async move {
            match tokio::time::timeout(HANDSHAKE_PATIENCE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    // Nobody takes it if the server ended meanwhile.
                    let _ = ready.send((stream, peer)).await;
                }
                Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS failed"),
                Err(_) => tracing::debug!(%peer, "TLS took too long"),
            }
            drop(place);
        });
    }
}

/// Connections with keys agreed on.
struct Incoming {
    connections: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    local: SocketAddr,
}

impl axum::serve::Listener for Incoming {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The other side ends together with this one.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.local)
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
