//! TLS handshakes, with certificate reload and optional client certificates.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::{Authorities, Certificate, Error, Established, Incoming, Peer, Protocol, Result};

/// Whether clients prove who they are.
#[derive(Debug, Clone)]
pub enum Clients {
    /// They are not asked.
    Unknown,
    /// They may show a certificate for which any of these sets of authorities vouches.
    Optional(Vec<Arc<Authorities>>),
    /// They must.
    Required(Arc<Authorities>),
    /// They must show one, whoever vouches for it.
    Anyone,
}

/// Does TLS handshakes with clients.
#[derive(Clone)]
pub struct Acceptor(TlsAcceptor);

impl Acceptor {
    /// Shows a certificate, and speaks HTTP/2 and HTTP/1.1.
    pub fn new(certificate: &Arc<Certificate>, clients: Clients) -> Result<Self> {
        let provider = certificate.provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(Error::Settings)?;
        let asked = match clients {
            Clients::Unknown => None,
            Clients::Optional(sets) => Some((Some(sets), false)),
            Clients::Required(set) => Some((Some(vec![set]), true)),
            Clients::Anyone => Some((None, true)),
        };
        let builder = match asked {
            None => builder.with_no_client_auth(),
            Some((sets, is_required)) => builder.with_client_cert_verifier(Arc::new(AnyOf {
                sets,
                is_required,
                provider,
            })),
        };
        let mut config = builder.with_cert_resolver(Arc::clone(certificate) as Arc<_>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

/// Accepts a certificate for which any of several sets of authorities vouches. They are asked anew each time.
#[derive(Debug)]
struct AnyOf {
    /// None if it does not matter who vouches.
    sets: Option<Vec<Arc<Authorities>>>,
    is_required: bool,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyOf {
    /// No hints: the authorities may change, and clients show what they have.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let Some(sets) = &self.sets else {
            return Ok(ClientCertVerified::assertion());
        };
        let mut chain = vec![end_entity.clone()];
        chain.extend_from_slice(intermediates);
        if sets.iter().any(|set| set.vouch_for(&chain)) {
            return Ok(ClientCertVerified::assertion());
        }
        Err(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer,
        ))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A listener whose connections have done their TLS handshake.
#[derive(Debug)]
pub struct TlsListener {
    /// Where they come to.
    pub tcp: TcpListener,
    /// What agrees with them.
    pub acceptor: Acceptor,
}

impl Incoming for TlsListener {
    type Raw = (TcpStream, SocketAddr);
    type Io = TlsStream<TcpStream>;

    async fn accept(&self) -> io::Result<Self::Raw> {
        self.tcp.accept().await
    }

    fn address((_, address): &Self::Raw) -> Option<IpAddr> {
        // One of IPv4 looks the same on a socket of both versions.
        Some(address.ip().to_canonical())
    }

    async fn establish(&self, (stream, address): Self::Raw) -> io::Result<Established<Self::Io>> {
        stream.set_nodelay(true)?;
        let io = self.acceptor.0.accept(stream).await?;
        let (_, session) = io.get_ref();
        let protocol = match session.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        let chain = session.peer_certificates().unwrap_or_default();
        let chain = chain.iter().map(|one| one.clone().into_owned());
        let peer = Peer::remote(address, chain.collect());
        Ok(Established { io, peer, protocol })
    }
}
