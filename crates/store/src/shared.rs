//! The embedded store among the processes of a machine: one has the file, and the others reach it through that one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tortie_error::Causes;

use crate::embedded::EmbeddedStore;
use crate::error::Result;
use crate::socket::{self, SocketStore};
use crate::store::Store;

/// How long a process that ends soon waits for others that do: they have the file for a few milliseconds each.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait between two attempts.
const INTERVAL: Duration = Duration::from_millis(5);

/// The embedded store, open.
#[derive(Debug, Clone)]
pub enum Shared {
    /// In this process, which keeps all others out until it ends, unless it [serves](serve) them.
    Own(Arc<EmbeddedStore>),
    /// In another process.
    Others(Arc<SocketStore>),
}

/// Serves a store to other processes until this is dropped, or [ended](Served::end).
#[derive(Debug)]
pub struct Served {
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

// === impl Shared ===

impl Shared {
    /// Opens the store in a file: through the process that serves it, if there is one, or else as soon as no other has it.
    /// The error names who has it.
    pub async fn open(file: &Path, quota: u64, patience: Duration) -> Result<Self> {
        let socket = socket::path_beside(file);
        let end = Instant::now() + patience;
        loop {
            if socket.exists() {
                match SocketStore::connect(&socket).await {
                    Ok(store) => return Ok(Self::Others(Arc::new(store))),
                    // A process that was killed leaves its socket behind; the next one may be about to make its own.
                    Err(error) => {
                        tracing::debug!(error = %Causes(&error), "Nobody answers at the socket");
                    }
                }
            }
            match EmbeddedStore::open_with_quota(file, quota) {
                Ok(store) => return Ok(Self::Own(Arc::new(store))),
                Err(error) if error.is_retryable() && Instant::now() < end => {
                    tokio::time::sleep(INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The store, whoever has it.
    pub fn into_store(self) -> Arc<dyn Store> {
        match self {
            Self::Own(store) => store,
            Self::Others(store) => store,
        }
    }
}

// === impl Served ===

/// Serves the store in a file to other processes of the same user and of root, at the socket beside it.
///
/// Must be called within a tokio runtime.
pub fn serve(store: Arc<dyn Store>, file: &Path) -> Result<Served> {
    let socket = socket::path_beside(file);
    let listener = socket::bind(&socket)?;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(socket::serve(store, listener, async {
        let _ = stopped.await;
    }));
    Ok(Served {
        socket,
        stop: Some(stop),
        task,
    })
}

impl Served {
    /// Ends after the requests under way.
    pub async fn end(mut self) {
        drop(self.stop.take());
        let _ = (&mut self.task).await;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Whoever comes next would find that nobody is there any more.
        if self.stop.take().is_some() {
            let _ = std::fs::remove_file(&self.socket);
        }
    }
}
