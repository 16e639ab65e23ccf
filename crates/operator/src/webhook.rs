//! Admission webhooks: a server that the API server asks before it stores an object.
//!
//! # Invariants
//! - Every request that can be read is answered with a review, also when its handler fails or panics: then it is
//!   refused, and the text says why.
//! - A patch touches only what a handler changed. Fields that its type does not know stay as they are.

mod patch;
mod review;
mod serve;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::review::{Operation, Refusal, Review, User};

use self::patch::overlay;
use self::review::{Answer, Request};

/// What a handler does with a request.
type Handler = Arc<dyn Fn(Request) -> BoxFuture<'static, Result<Answer, Refusal>> + Send + Sync>;

/// A server of admission webhooks over TLS.
pub struct WebhookServer {
    address: SocketAddr,
    certificate: PathBuf,
    key: PathBuf,
    client_authorities: Option<PathBuf>,
    ready: Option<String>,
    handlers: BTreeMap<String, Handler>,
    most_bytes: usize,
    patience: Duration,
}

impl WebhookServer {
    /// A server on an address, with the files of a certificate chain and its key in PEM. They are read again when they
    /// change: cert-manager and the kubelet replace them.
    pub fn new(
        address: SocketAddr,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        Self {
            address,
            certificate: certificate.into(),
            key: key.into(),
            client_authorities: None,
            ready: None,
            handlers: BTreeMap::new(),
            // The API server stores nothing larger than 1.5 MB, and sends the object before and after.
            most_bytes: 7 * 1024 * 1024,
            patience: Duration::from_secs(10),
        }
    }

    /// How long a handler may take: 10 seconds, unless said otherwise. The API server waits as long unless told otherwise.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Serves only clients that show a certificate for which an authority in this file in PEM vouches.
    #[must_use]
    pub fn client_authorities(mut self, file: impl Into<PathBuf>) -> Self {
        self.client_authorities = Some(file.into());
        self
    }

    /// Answers a path with `ok` as soon as requests are served, for probes.
    #[must_use]
    pub fn ready(mut self, path: impl Into<String>) -> Self {
        self.ready = Some(path.into());
        self
    }

    /// How large a request may be: 7 MB, unless said otherwise.
    #[must_use]
    pub fn most_bytes(mut self, bytes: usize) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// Answers a path with a function that accepts an object, perhaps with warnings, or refuses it.
    #[must_use]
    pub fn validate<K, F>(
        self,
        path: impl Into<String>,
        handler: impl Fn(Review<K>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        K: DeserializeOwned + Send + 'static,
        F: Future<Output = Result<Vec<String>, Refusal>> + Send + 'static,
    {
        self.handle(path, move |request| {
            let answer = request.review::<K>().map(&handler);
            async move {
                let warnings = answer?.await?;
                Ok(Answer {
                    warnings,
                    patch: None,
                })
            }
            .boxed()
        })
    }

    /// Answers a path with a function that gives the object as it is to be stored, or refuses it. Requests without an
    /// object, such as deletions, are accepted without asking it.
    #[must_use]
    pub fn mutate<K, F>(
        self,
        path: impl Into<String>,
        handler: impl Fn(Review<K>, K) -> F + Send + Sync + 'static,
    ) -> Self
    where
        K: DeserializeOwned + Serialize + Clone + Send + 'static,
        F: Future<Output = Result<K, Refusal>> + Send + 'static,
    {
        self.handle(path, move |request| {
            let original = request.object.clone();
            let review = request.review::<K>();
            let asked = review.map(|review| {
                let object = review.object.clone()?;
                let before = serde_json::to_value(&object);
                Some((before, handler(review, object)))
            });
            async move {
                let Some((before, answer)) = asked? else {
                    return Ok(Answer::default());
                };
                let after = serde_json::to_value(answer.await?).map_err(Refusal::internal)?;
                let before = before.map_err(Refusal::internal)?;
                let original = original.unwrap_or(Value::Null);
                let wanted = overlay(&original, &before, &after);
                let changes = json_patch::diff(&original, &wanted);
                Ok(Answer {
                    warnings: Vec::new(),
                    patch: (!changes.is_empty()).then_some(changes),
                })
            }
            .boxed()
        })
    }

    fn handle(
        mut self,
        path: impl Into<String>,
        handler: impl Fn(Request) -> BoxFuture<'static, Result<Answer, Refusal>> + Send + Sync + 'static,
    ) -> Self {
        let path = format!("/{}", path.into().trim_start_matches('/'));
        self.handlers.insert(path, Arc::new(handler));
        self
    }
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer")
            .field("address", &self.address)
            .field("paths", &self.handlers.keys())
            .finish_non_exhaustive()
    }
}
