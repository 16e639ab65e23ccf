//! HTTP/1.1 and HTTP/2 on connections, however they came about, with limits.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming as IncomingBody;
use hyper::service::Service as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tortie_error::Causes;

use crate::Peer;
use crate::places::{Place, Places};

/// How many requests a client may have under way on one connection.
const MOST_STREAMS: u32 = 250;

/// How often a silent client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// How long it may take to answer that.
const PING_PATIENCE: Duration = Duration::from_secs(20);

/// What clients may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many may be connected over the network at a time. When these are taken, the oldest that have not shown who they
    /// are give way. Processes of this machine that come through a socket always get in.
    pub connections: usize,
    /// How long a client may be idle that has not shown who it is. No limit where clients never do.
    pub unknown_idle: Option<Duration>,
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
            unknown_idle: None,
            handshake: Duration::from_secs(10),
            header_time: Duration::from_mins(1),
            header_bytes: 128 << 10,
            end: Duration::from_secs(10),
        }
    }
}

/// Says of an answer, as an extension of it, that the client has shown who it is.
#[derive(Debug, Clone, Copy)]
pub struct Identified;

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

    /// Where it is, if it comes over the network.
    fn address(raw: &Self::Raw) -> Option<IpAddr>;

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
    let places = Places::new(limits.connections);
    let graceful = GracefulShutdown::new();
    let closing = watch::Sender::new(());
    // Dropped with this future, and with them all connections.
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let raw = tokio::select! {
            () = &mut shutdown => break,
            raw = incoming.accept() => raw,
        };
        while connections.try_join_next().is_some() {}
        match raw {
            Ok(raw) => {
                let place = match I::address(&raw) {
                    None => None,
                    Some(address) => match places.enter(address) {
                        None => continue,
                        place => place,
                    },
                };
                let connection = Connection {
                    incoming: Arc::clone(&incoming),
                    builder: builder.clone(),
                    router: router.clone(),
                    handshake: limits.handshake,
                    watcher: graceful.watcher(),
                    closing: closing.subscribe(),
                    unknown_idle: limits.unknown_idle,
                };
                connections.spawn(connection.run_in(place, raw));
            }
            Err(error) => {
                // Mostly a lack of file descriptors, which passes.
                tracing::warn!(error = %Causes(&error), "Cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop((incoming, closing));
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
    /// Fails when the server ends.
    closing: watch::Receiver<()>,
    unknown_idle: Option<Duration>,
}

/// What a connection is doing.
struct Activity {
    /// Requests without an answer.
    under_way: usize,
    /// Since when nothing happens.
    since: Instant,
}

impl<I: Incoming> Connection<I> {
    /// Serves a client in its place, if it needs one, until it leaves or has to.
    async fn run_in(self, place: Option<(Place, oneshot::Receiver<()>)>, raw: I::Raw) {
        let Some((place, cut)) = place else {
            return self.run(None, raw).await;
        };
        tokio::select! {
            () = self.run(Some(place), raw) => {}
            // Not told to those who are known.
            Ok(()) = cut => tracing::debug!("A client that has not shown who it is gave way to others"),
        }
    }

    async fn run(mut self, place: Option<Place>, raw: I::Raw) {
        let established = tokio::time::timeout(self.handshake, self.incoming.establish(raw));
        let established = tokio::select! {
            established = established => established,
            // Who has asked for nothing yet is not waited for.
            _ = self.closing.changed() => return,
        };
        let Established { io, peer, protocol } = match established {
            Ok(Ok(established)) => established,
            Ok(Err(error)) => {
                return tracing::debug!(error = %Causes(&error), "A connection failed");
            }
            Err(_) => return tracing::debug!("A TLS handshake took too long"),
        };
        // So that the address is free as soon as nobody accepts any more.
        drop(self.incoming);
        let builder = match protocol {
            Protocol::Http1 => self.builder.http1_only(),
            Protocol::Http2 => self.builder.http2_only(),
            Protocol::Either => self.builder,
        };
        // What it shows when keys are agreed on was checked then.
        if let (Some(place), Some(_)) = (&place, peer.certificate()) {
            place.set_known();
        }
        let place = Arc::new(place);
        let activity = Arc::new(Mutex::new(Activity {
            under_way: 0,
            since: Instant::now(),
        }));
        let router = TowerToHyperService::new(self.router);
        let (seat, doing) = (Arc::clone(&place), Arc::clone(&activity));
        let service =
            hyper::service::service_fn(move |mut request: hyper::Request<IncomingBody>| {
                request.extensions_mut().insert(peer.clone());
                let under_way = UnderWay::new(&doing);
                let (seat, answer) = (Arc::clone(&seat), router.call(request));
                async move {
                    let answer = answer.await?;
                    if let (Some(place), Some(_)) =
                        (seat.as_ref(), answer.extensions().get::<Identified>())
                    {
                        place.set_known();
                    }
                    drop(under_way);
                    Ok::<_, std::convert::Infallible>(answer)
                }
            });
        let connection = builder.serve_connection(TokioIo::new(io), service);
        let idle = async {
            match (self.unknown_idle, place.as_ref()) {
                (Some(longest), Some(place)) => idle(&activity, longest, place).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = self.watcher.watch(connection) => {
                if let Err(error) = ended {
                    tracing::debug!(error = %Causes(&*error), "A connection ended early");
                }
            }
            () = idle => tracing::debug!("A client that has not shown who it is said nothing for too long"),
        }
    }
}

/// Ends when a client that has not shown who it is has been idle for so long.
async fn idle(activity: &Mutex<Activity>, longest: Duration, place: &Place) {
    loop {
        let end = {
            let activity = activity.lock().unwrap_or_else(PoisonError::into_inner);
            let since = match activity.under_way {
                0 => activity.since,
                _ => Instant::now(),
            };
            since + longest
        };
        if end <= Instant::now() && !place.known() {
            return;
        }
        let next = end.max(Instant::now() + longest / 4);
        tokio::time::sleep_until(next).await;
    }
}

/// A request without an answer.
struct UnderWay(Arc<Mutex<Activity>>);

impl UnderWay {
    fn new(activity: &Arc<Mutex<Activity>>) -> Self {
        let mut doing = activity.lock().unwrap_or_else(PoisonError::into_inner);
        doing.under_way += 1;
        drop(doing);
        Self(Arc::clone(activity))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut doing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        doing.under_way -= 1;
        doing.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::DuplexStream;
    use tokio::sync::Notify;

    use super::*;

    /// One client, which never says anything.
    struct Silent {
        has_come: AtomicBool,
        is_met: Arc<Notify>,
    }

    impl Incoming for Silent {
        type Raw = ();
        type Io = DuplexStream;

        async fn accept(&self) -> io::Result<()> {
            if self.has_come.swap(true, Ordering::Relaxed) {
                return std::future::pending().await;
            }
            Ok(())
        }

        fn address((): &()) -> Option<IpAddr> {
            None
        }

        async fn establish(&self, (): ()) -> io::Result<Established<DuplexStream>> {
            self.is_met.notify_one();
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn who_has_asked_for_nothing_does_not_hold_up_the_end() {
        const NEVER: Duration = Duration::from_hours(1);
        let is_met = Arc::new(Notify::new());
        let silent = Silent {
            has_come: AtomicBool::new(false),
            is_met: Arc::clone(&is_met),
        };
        let limits = Limits {
            handshake: NEVER,
            end: NEVER,
            ..Limits::default()
        };
        serve(silent, Router::new(), &limits, is_met.notified()).await;
    }
}
