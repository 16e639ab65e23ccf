//! HTTP/1.1 and HTTP/2 on connections, however they came about, with limits.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming as IncomingBody;
use hyper::service::Service as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::Peer;

/// How many requests a client may have under way on one connection.
const MOST_STREAMS: u32 = 250;

/// How often a silent client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// How long it may take to answer that.
const PING_PATIENCE: Duration = Duration::from_secs(20);

/// What clients may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many may be connected at a time. Others wait.
    pub connections: usize,
    /// How long agreeing on keys may take.
    pub handshake: Duration,
    /// How long the headers of a request may take; also how long a connection of HTTP/1.1 may be idle.
    pub header_time: Duration,
    /// How large the headers of a request may be. One that comes in few large pieces may have twice as much in HTTP/1.1.
    pub header_bytes: u32,
    /// How long requests that are under way may take once the server ends.
    pub end: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            handshake: Duration::from_secs(10),
            header_time: Duration::from_mins(1),
            header_bytes: 128 << 10,
            end: Duration::from_secs(10),
        }
    }
}

/// A connection that is ready for HTTP.
#[derive(Debug)]
pub struct Established<Io> {
    /// Its bytes.
    pub io: Io,
    /// Who is at the other end.
    pub peer: Peer,
    /// What is spoken.
    pub protocol: Protocol,
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// What the client begins with.
    Either,
}

/// Where clients come from.
pub trait Incoming: Send + Sync + 'static {
    /// A connection that nothing has been agreed on yet.
    type Raw: Send + 'static;
    /// The bytes of a connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next client.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Raw>> + Send;

    /// Agrees with it on what is needed before requests are sent.
    fn establish(
        &self,
        raw: Self::Raw,
    ) -> impl Future<Output = io::Result<Established<Self::Io>>> + Send;
}

/// Serves clients until `shutdown`, and then those requests that are under way, for a while. Each request carries its
/// [`Peer`] as an extension.
pub async fn serve<I: Incoming>(
    incoming: I,
    router: Router,
    limits: &Limits,
    shutdown: impl Future<Output = ()>,
) {
    let incoming = Arc::new(incoming);
    let builder = builder(limits);
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    // Dropped with this future, and with them all connections.
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, incoming.accept().await)
        };
        let (place, raw) = tokio::select! {
            () = &mut shutdown => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        let (Ok(place), raw) = (place, raw) else {
            break;
        };
        match raw {
            Ok(raw) => {
                let connection = Connection {
                    incoming: Arc::clone(&incoming),
                    builder: builder.clone(),
                    router: router.clone(),
                    handshake: limits.handshake,
                    watcher: graceful.watcher(),
                    place,
                };
                connections.spawn(connection.run(raw));
            }
            Err(error) => {
                // Mostly a lack of file descriptors, which passes.
                tracing::warn!(%error, "Cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(incoming);
    if tokio::time::timeout(limits.end, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("Requests that did not end in time were cut off");
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        // It cannot be less.
        .max_buf_size((limits.header_bytes as usize).max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits.header_bytes)
        .max_concurrent_streams(MOST_STREAMS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_PATIENCE);
    builder
}

struct Connection<I> {
    incoming: Arc<I>,
    builder: Builder<TokioExecutor>,
    router: Router,
    handshake: Duration,
    watcher: Watcher,
    place: OwnedSemaphorePermit,
}

impl<I: Incoming> Connection<I> {
    async fn run(self, raw: I::Raw) {
        let established = self.incoming.establish(raw);
        let Established { io, peer, protocol } =
            match tokio::time::timeout(self.handshake, established).await {
                Ok(Ok(established)) => established,
                Ok(Err(error)) => return tracing::debug!(%error, "A connection failed"),
                Err(_) => return tracing::debug!("A client took too long to agree on keys"),
            };
        // So that the address is free as soon as nobody accepts any more.
        drop(self.incoming);
        let builder = match protocol {
            Protocol::Http1 => self.builder.http1_only(),
            Protocol::Http2 => self.builder.http2_only(),
            Protocol::Either => self.builder,
        };
        let router = TowerToHyperService::new(self.router);
        let service =
            hyper::service::service_fn(move |mut request: hyper::Request<IncomingBody>| {
                request.extensions_mut().insert(peer.clone());
                router.call(request)
            });
        let connection = builder.serve_connection(TokioIo::new(io), service);
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "A connection ended early");
        }
        drop(self.place);
    }
}
