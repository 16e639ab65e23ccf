//! Who is at the other end of a connection.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;

use crate::Authorities;

/// Who is at the other end of a connection. Each request carries it as an extension.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// Where it is, if it came over the network.
    pub address: Option<SocketAddr>,
    /// The user of the process, if it is on this machine and came through a socket.
    pub uid: Option<u32>,
    chain: Arc<[CertificateDer<'static>]>,
}

impl Peer {
    /// A client that came over the network, with the certificates that it showed.
    pub fn remote(address: SocketAddr, chain: Vec<CertificateDer<'static>>) -> Self {
        Self {
            address: Some(address),
            uid: None,
            chain: chain.into(),
        }
    }

    /// A process of a user of this machine.
    pub fn local(uid: u32) -> Self {
        Self {
            uid: Some(uid),
            ..Self::default()
        }
    }

    /// The client's certificate in DER, whoever may have signed it.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.chain.first().map(AsRef::as_ref)
    }

    /// Whether one of these authorities vouches for the client's certificate, now.
    pub fn is_verified_by(&self, authorities: &Authorities) -> bool {
        authorities.vouch_for(&self.chain)
    }
}
