//! What ends a manager.

use std::net::SocketAddr;

use crate::reconcile::BoxError;

/// Why a manager ended, or could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process leads, or nobody can know: everything was stopped.
    #[error("leadership was lost")]
    LeadershipLost,
    /// An endpoint could not be opened.
    #[error("cannot listen on {address} for {purpose}")]
    Listen {
        /// What for.
        purpose: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The webhook server cannot start.
    #[error(transparent)]
    Webhooks(#[from] tortie_serve::Error),
    /// Something that was to run as long as the manager ended.
    #[error("`{name}` failed")]
    Runnable {
        name: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// A setting makes no sense.
    #[error("{0}")]
    Settings(String),
}

/// What came of it.
pub type Result<T, E = Error> = std::result::Result<T, E>;
