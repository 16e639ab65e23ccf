//! What can go wrong on starting a server or running its client.

use std::{error::Error as _, fmt, io, process::ExitStatus, time::Duration};

/// [`std::result::Result`] with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A server did not start, or a command for it did not run.
#[derive(thiserror::Error)]
pub enum Error {
    /// A program that tests need is not on this machine.
    #[error("`{program}` is not there: run `setup/test-deps` as root to get what the tests need")]
    Missing {
        /// Its name, or its path where it is not looked for in `PATH`.
        program: String,
    },
    /// The operating system refused something.
    #[error("cannot {action}")]
    Io {
        /// What was tried, with its object.
        action: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A command ran and ended with a failure.
    #[error("`{command}` failed with {status}: {stderr}")]
    Failed {
        /// The program and its arguments.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// All it wrote to its standard error.
        stderr: String,
    },
    /// A server ended before it was ready.
    #[error("`{server}` ended while starting; the end of its log:\n{log}")]
    Ended {
        /// The server's name.
        server: &'static str,
        /// The last lines it logged.
        log: String,
    },
    /// A server runs but did not become ready.
    #[error("`{server}` was not ready after {} s: {reason}; the end of its log:\n{log}", after.as_secs())]
    NotReady {
        /// The server's name.
        server: &'static str,
        /// How long it was waited for.
        after: Duration,
        /// The last answer to the question whether it is ready.
        reason: String,
        /// The last lines it logged.
        log: String,
    },
}

/// What a test's `unwrap` shows: the message with its cause, and logs as they are, not escaped.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        match self.source() {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error {
    /// Somebody else took the port between its choice and the server's start: a start on another
    /// port may work.
    pub(crate) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Ended { log, .. } if log.contains("address already in use"))
    }
}

/// For `map_err`: says what was tried.
pub(crate) fn cannot(action: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io {
        action: action.into(),
        source,
    }
}
