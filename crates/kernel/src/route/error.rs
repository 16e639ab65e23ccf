//! What can go wrong.

use std::io;

/// A result of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The socket did not do its part.
    #[error("netlink socket: failed to {doing}")]
    Socket {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The kernel refused an operation.
    #[error("the kernel refused to {operation}{}{text}", if .text.is_empty() { "" } else { ": " })]
    Refused {
        /// The operation, such as `add the route 10.0.0.1/32 through interface 3`.
        operation: String,
        /// What the kernel says beyond the error number; mostly nothing.
        text: String,
        /// The error number.
        #[source]
        source: io::Error,
    },
    /// An operation has more bytes than a netlink message can hold.
    #[error("too long for a netlink message: {operation}")]
    TooLong { operation: String },
    /// Answers were lost: operations may have been done or not.
    #[error("answers of the kernel were lost; what it has is not known")]
    AnswersLost,
    /// What was read kept changing meanwhile.
    #[error("the kernel's tables changed during each of {attempts} attempts to read them")]
    KeptChanging {
        /// How many times it was tried.
        attempts: usize,
    },
}

impl Error {
    /// The error number that the kernel gave, if it was the kernel that refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { source, .. } | Self::Socket { source, .. } => source.raw_os_error(),
            Self::TooLong { .. } | Self::AnswersLost | Self::KeptChanging { .. } => None,
        }
    }

    /// Whether what was to be changed, or the interface it was to be on, is not there.
    pub fn is_missing(&self) -> bool {
        let missing = [
            libc::ENOENT,
            libc::ESRCH,
            libc::ENODEV,
            libc::ENXIO,
            libc::EADDRNOTAVAIL,
        ];
        self.errno().is_some_and(|errno| missing.contains(&errno))
    }

    /// Whether what was to be made is there already.
    pub fn is_existing(&self) -> bool {
        self.errno() == Some(libc::EEXIST)
    }
}
