//! The authorities that vouch for clients. They may be replaced while a server runs.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::{Error, Result};

/// Authorities that vouch for clients; perhaps none.
#[derive(Default)]
pub struct Authorities {
    current: RwLock<Current>,
}

#[derive(Default)]
struct Current {
    pem: Vec<u8>,
    /// None if there is no authority, which vouches for nobody.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl Authorities {
    /// The authorities whose certificates are in a text in PEM, or what is wrong with it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let authorities = Self::default();
        authorities.replace(pem)?;
        Ok(authorities)
    }

    /// The authorities whose certificates are in a file in PEM; at least one.
    pub fn load(path: &Path) -> Result<Self> {
        let unusable = |reason: String| Error::Certificate {
            path: path.to_owned(),
            reason,
        };
        let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        let authorities = Self::from_pem(&pem).map_err(unusable)?;
        if authorities.is_empty() {
            return Err(unusable("it holds no certificate".to_owned()));
        }
        Ok(authorities)
    }

    /// Takes the authorities of another text. An empty one leaves none. Says whether something changed; after an error
    /// nothing has.
    pub fn replace(&self, pem: &[u8]) -> Result<bool, String> {
        if self.read(|current| current.pem == pem) {
            return Ok(false);
        }
        let verifier = verifier(pem)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Current {
            pem: pem.to_vec(),
            verifier,
        };
        Ok(true)
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.read(|current| current.verifier.is_none())
    }

    /// Whether one of them vouches for the first of these certificates, with the help of the others.
    pub(crate) fn vouch_for(&self, chain: &[CertificateDer<'_>]) -> bool {
        let verifier = self.read(|current| current.verifier.clone());
        let (Some(verifier), Some((first, others))) = (verifier, chain.split_first()) else {
            return false;
        };
        verifier
            .verify_client_cert(first, others, UnixTime::now())
            .is_ok()
    }

    fn read<T>(&self, look: impl FnOnce(&Current) -> T) -> T {
        look(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorities")
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

fn verifier(pem: &[u8]) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return if pem.iter().all(u8::is_ascii_whitespace) {
            Ok(None)
        } else {
            Err("it holds no certificate in PEM".to_owned())
        };
    }
    let provider = Arc::new(ring::default_provider());
    let built = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    built.map(Some).map_err(|error| error.to_string())
}
