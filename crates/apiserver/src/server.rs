//! Serves the API: over TLS, and through a socket of this machine.

pub mod certificates;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tortie_serve::{
    Acceptor, Certificate, Clients, Established, Incoming, Limits, Peer, Protocol, TlsListener,
};

use crate::http::Api;

/// Where clients come to.
#[derive(Debug)]
pub enum Listener {
    /// Over the network, with a certificate that is read again when it changes.
    Tls {
        /// Where, and how keys are agreed on.
        listener: TlsListener,
        /// What is shown to clients.
        certificate: Arc<Certificate>,
    },
    /// Through a socket, such as one that `tortie_store::socket::bind` made.
    Socket(UnixListener),
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The certificate or the settings cannot be used.
    #[error(transparent)]
    Tls(#[from] tortie_serve::Error),
}

impl Listener {
    /// Takes an address.
    pub async fn tls(
        address: SocketAddr,
        certificate: Arc<Certificate>,
        clients: Clients,
    ) -> Result<Self, Error> {
        let tcp = TcpListener::bind(address).await;
        let tcp = tcp.map_err(|source| Error::Listen { address, source })?;
        Self::tls_on(tcp, certificate, clients)
    }

    /// Takes an address that somebody else has taken for it, such as one of another network.
    pub fn tls_on(
        tcp: TcpListener,
        certificate: Arc<Certificate>,
        clients: Clients,
    ) -> Result<Self, Error> {
        let acceptor = Acceptor::new(&certificate, clients)?;
        let listener = TlsListener { tcp, acceptor };
        Ok(Self::Tls {
            listener,
            certificate,
        })
    }

    /// The address, if it is one of the network: also where any free port was asked for.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tls { listener, .. } => listener.tcp.local_addr().ok(),
            Self::Socket(_) => None,
        }
    }
}

/// How long a client may be idle that has not shown who it is: long enough for several questions about health.
const UNKNOWN_IDLE: Duration = Duration::from_secs(10);

/// What clients of an API server may take.
pub fn limits() -> Limits {
    Limits {
        unknown_idle: Some(UNKNOWN_IDLE),
        ..Limits::default()
    }
}

/// Serves until `shutdown`. Watches end then, and other requests that are under way are answered.
pub async fn serve(
    api: Arc<Api>,
    listeners: Vec<Listener>,
    limits: &Limits,
    shutdown: impl Future<Output = ()>,
) {
    let stop = watch::Sender::new(false);
    let serving = listeners.into_iter().map(|listener| {
        let router = Arc::clone(&api).router();
        let mut stopped = stop.subscribe();
        let stopped = async move {
            // An error says that the sender is gone, which is the end as well.
            let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
        };
        async move {
            match listener {
                Listener::Tls {
                    listener,
                    certificate,
                } => tokio::select! {
                    () = tortie_serve::serve(listener, router, limits, stopped) => {}
                    () = certificate.follow() => {}
                },
                Listener::Socket(socket) => {
                    tortie_serve::serve(LocalListener(socket), router, limits, stopped).await;
                }
            }
        }
    });
    let serving = join_all(serving);
    let ending = async {
        shutdown.await;
        api.close();
        stop.send_replace(true);
    };
    tokio::join!(serving, ending);
}

/// Processes of this machine.
struct LocalListener(UnixListener);

impl Incoming for LocalListener {
    type Raw = UnixStream;
    type Io = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.0.accept().await?.0)
    }

    fn address(_: &UnixStream) -> Option<IpAddr> {
        None
    }

    async fn establish(&self, io: UnixStream) -> io::Result<Established<UnixStream>> {
        let peer = Peer::local(io.peer_cred()?.uid());
        // Here a client that sends nothing is cut off in time; waiting for what it speaks has no limit.
        let look = || Ok(recv(&io, &mut [0; 1], RecvFlags::PEEK).map(drop)?);
        io.async_io(Interest::READABLE, look).await?;
        Ok(Established {
            io,
            peer,
            protocol: Protocol::Either,
        })
    }
}
