//! Network namespaces without names.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic;
use std::sync::Arc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::{Result, cannot};

/// A network namespace, which lives as long as a clone of this does, or a socket or program in it.
#[derive(Debug, Clone)]
pub struct Namespace {
    file: Arc<OwnedFd>,
}

impl Namespace {
    /// A new namespace, with nothing in it but a loopback interface that is down.
    pub fn new() -> Result<Self> {
        let file = tortie_kernel::namespace::run_in_new(|| File::open("/proc/thread-self/ns/net"))
            .and_then(|opened| opened)
            .map_err(cannot("make a network namespace"))?;
        Ok(Self {
            file: Arc::new(file.into()),
        })
    }

    /// Runs `work` in the namespace, on a thread of its own, and waits for it.
    ///
    /// Sockets that it opens and programs that it starts belong to the namespace and may be kept.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let enter = || {
            move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        thread::scope(|scope| -> io::Result<T> {
            let thread = thread::Builder::new().spawn_scoped(scope, enter)?;
            thread
                .join()
                .unwrap_or_else(|payload| panic::resume_unwind(payload))
        })
        .map_err(cannot("enter a network namespace"))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
