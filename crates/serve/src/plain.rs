//! Clients that come over the network as they are, without keys.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};

use crate::{Established, Incoming, Peer, Protocol};

/// Clients that come over the network and speak HTTP/1.1 without keys.
#[derive(Debug)]
pub struct PlainListener(pub TcpListener);

impl Incoming for PlainListener {
    type Raw = (TcpStream, SocketAddr);
    type Io = TcpStream;

    async fn accept(&self) -> io::Result<Self::Raw> {
        self.0.accept().await
    }

    fn address((_, address): &Self::Raw) -> Option<IpAddr> {
        Some(address.ip().to_canonical())
    }

    async fn establish(&self, (io, address): Self::Raw) -> io::Result<Established<Self::Io>> {
        io.set_nodelay(true)?;
        Ok(Established {
            io,
            peer: Peer::remote(address, Vec::new()),
            protocol: Protocol::Http1,
        })
    }
}

/// Takes a port of a host, which is a name or an address; of all addresses of IPv4, without one.
pub async fn listen(host: &str, port: u16) -> io::Result<TcpListener> {
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    let mut last = None;
    for address in tokio::net::lookup_host((host, port)).await? {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other(format!("{host} has no address"))))
}
