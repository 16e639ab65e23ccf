//! Why a server cannot start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

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
    /// A certificate cannot be used.
    #[error("cannot use the certificate {}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A setting makes no sense.
    #[error("TLS: {0}")]
    Settings(rustls::Error),
}

/// What came of it.
pub type Result<T, E = Error> = std::result::Result<T, E>;
