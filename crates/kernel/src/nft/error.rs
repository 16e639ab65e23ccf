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
    /// The kernel refused an operation, and with it the whole transaction.
    #[error("nftables: the kernel refused to {operation}{}", detail(.text, *.others))]
    Refused {
        /// The operation, such as ``add a rule to chain `x` of table `ip calico` ``.
        operation: String,
        /// What it would have changed; not known of removals and of lists.
        subject: Option<Subject>,
        /// What the kernel says beyond the error number; mostly nothing.
        text: String,
        /// How many operations of the same transaction were refused too.
        others: usize,
        /// The error number.
        #[source]
        source: io::Error,
    },
    /// An operation has more bytes than a netlink message can hold.
    #[error("nftables: too long for a message: {operation}")]
    TooLong {
        operation: String,
        /// What it would have changed.
        subject: Option<Subject>,
    },
    /// Answers were lost: a transaction may have taken effect or not.
    #[error("nftables: answers of the kernel were lost; what it has is not known")]
    AnswersLost,
    /// What was read kept changing meanwhile.
    #[error("nftables: the rules changed during each of {attempts} attempts to read them")]
    KeptChanging {
        /// How many times it was tried.
        attempts: usize,
    },
}

/// What an operation makes or changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A chain or one of its rules, by the chain's name.
    Chain(String),
    /// A set or some of its elements, by its name.
    Set(String),
}

impl Error {
    /// What was refused, if it is one thing of those that were to be made or changed. None if the same may well be taken a
    /// little later.
    pub fn subject(&self) -> Option<&Subject> {
        const PASSING: [i32; 6] = [
            libc::EAGAIN,
            libc::EINTR,
            libc::ENOMEM,
            libc::ENOBUFS,
            libc::EPERM,
            libc::EACCES,
        ];
        match self {
            Self::Refused { subject, .. }
                if !self.errno().is_some_and(|n| PASSING.contains(&n)) =>
            {
                subject.as_ref()
            }
            Self::TooLong { subject, .. } => subject.as_ref(),
            _ => None,
        }
    }

    /// The error number that the kernel gave, if it was the kernel that refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { source, .. } | Self::Socket { source, .. } => source.raw_os_error(),
            Self::TooLong { .. } | Self::AnswersLost | Self::KeptChanging { .. } => None,
        }
    }

    /// Whether the kernel may have something else than was last read or written, so that it should be read again.
    pub fn needs_read_back(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::AnswersLost)
    }
}

fn detail(text: &str, others: usize) -> String {
    let colon = if text.is_empty() { "" } else { ": " };
    let more = if others > 0 {
        format!(" (and {others} more)")
    } else {
        String::new()
    };
    format!("{colon}{text}{more}")
}
