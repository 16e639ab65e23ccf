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

use crate::error::{Error, Result};

/// How often the files are read. Polling sees also what notifications miss: links that are swapped, other file systems.
const INTERVAL: Duration = Duration::from_secs(1);

/// The certificate in use.
pub(super) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
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
    pub(super) fn load(chain: PathBuf, key: PathBuf) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let files = read(&chain, &key)?;
        let loaded = Loaded {
            key: certified(&files, &chain, &key, &provider)?,
            files,
        };
        Ok(Self {
            chain,
            key,
            provider,
            current: RwLock::new(loaded),
        })
    }

    pub(super) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.provider)
    }

    /// Follows the files. What cannot be used is reported, and the last good certificate stays.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut last_problem = String::new();
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.reload() {
                Ok(true) => {
                    last_problem.clear();
                    tracing::info!(file = %self.chain.display(), "Certificate changed");
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
        let files = read(&self.chain, &self.key)?;
        let is_same = self
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .files
            == files;
        if is_same {
            return Ok(false);
        }
        let key = certified(&files, &self.chain, &self.key, &self.provider)?;
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
        f.debug_tuple("Certificate").field(&self.chain).finish()
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
    chain_path: &Path,
    key_path: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>> {
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
