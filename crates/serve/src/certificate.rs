//! The server's certificate, which is read again when its files change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::{Error, Result};

/// How often the files are read. Polling sees also what notifications miss: links that are swapped, other file systems.
const INTERVAL: Duration = Duration::from_secs(1);

/// The certificate that a server shows, with its key.
pub struct Certificate {
    /// Where it is read from: the chain and its key. None if it is not in files.
    paths: Option<(PathBuf, PathBuf)>,
    provider: Arc<CryptoProvider>,
    current: RwLock<Loaded>,
}

struct Loaded {
    files: Files,
    key: Arc<CertifiedKey>,
}

/// The content of both files.
#[derive(PartialEq, Eq)]
struct Files {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// The certificate chain and its key in two files in PEM. [`Certificate::follow`] reads them again when they change:
    /// cert-manager and the kubelet replace them.
    pub fn load(chain: PathBuf, key: PathBuf) -> Result<Self> {
        let files = read(&chain, &key)?;
        Self::new(files, Some((chain, key)))
    }

    /// A certificate chain and its key in PEM.
    pub fn from_pem(chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Result<Self> {
        let files = Files {
            chain: chain.into(),
            key: key.into(),
        };
        Self::new(files, None)
    }

    fn new(files: Files, paths: Option<(PathBuf, PathBuf)>) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let key = certified(&files, paths.as_ref(), &provider)?;
        Ok(Self {
            paths,
            provider,
            current: RwLock::new(Loaded { files, key }),
        })
    }

    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.provider)
    }

    /// Follows the files, for ever. What cannot be used is reported, and the last good certificate stays.
    pub async fn follow(&self) {
        let Some((chain, _)) = &self.paths else {
            return std::future::pending().await;
        };
        let mut last_problem = String::new();
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.reload() {
                Ok(true) => {
                    last_problem.clear();
                    tracing::info!(file = %chain.display(), "Certificate changed");
                }
                Ok(false) => {}
                Err(error) => {
                    let problem = error.to_string();
                    // The two files are replaced one after the other: it may be right a moment later.
                    if problem != last_problem {
                        tracing::warn!(problem, "Certificate not changed");
                        last_problem = problem;
                    }
                }
            }
        }
    }

    /// Whether another certificate is in use now.
    fn reload(&self) -> Result<bool> {
        let Some((chain, key)) = &self.paths else {
            return Ok(false);
        };
        let files = read(chain, key)?;
        let is_same = self
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .files
            == files;
        if is_same {
            return Ok(false);
        }
        let key = certified(&files, self.paths.as_ref(), &self.provider)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Loaded { files, key };
        Ok(true)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current.key))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate").field(&self.paths).finish()
    }
}

fn read(chain: &Path, key: &Path) -> Result<Files> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| unusable(path, error));
    Ok(Files {
        chain: read(chain)?,
        key: read(key)?,
    })
}

fn certified(
    files: &Files,
    paths: Option<&(PathBuf, PathBuf)>,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>> {
    let (chain_path, key_path) = match paths {
        Some((chain, key)) => (chain.as_path(), key.as_path()),
        None => (Path::new("in memory"), Path::new("in memory")),
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&files.chain)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(chain_path, error))?;
    if chain.is_empty() {
        return Err(unusable(chain_path, "it holds no certificate"));
    }
    let key =
        PrivateKeyDer::from_pem_slice(&files.key).map_err(|error| unusable(key_path, error))?;
    // Checks also that both belong together.
    let certified = CertifiedKey::from_der(chain, key, provider);
    certified
        .map(Arc::new)
        .map_err(|error| unusable(chain_path, error))
}

fn unusable(path: &Path, reason: impl fmt::Display) -> Error {
    Error::Certificate {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
