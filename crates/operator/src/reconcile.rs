//! What a controller does for one key, and what it says of the outcome.

use std::error::Error as StdError;
use std::time::Duration;

use crate::queue::Key;

/// Any error.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Brings about what is wanted for one key.
///
/// It is told which object, never what happened to it: it reads what is there now, and does what is missing. The same
/// key is never reconciled by two workers at a time.
pub trait Reconciler: Send + Sync + 'static {
    /// What the queue holds: mostly [`ObjectKey`](crate::ObjectKey).
    type Key: Key;

    /// Does it. The future may be dropped at any await: when leadership is lost, or at the end of a shutdown's patience.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Action, Failure>> + Send;
}

/// What remains to be done for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing until something changes.
    Done,
    /// Again after a while, whatever changes.
    After(Duration),
}

/// Why a key could not be reconciled.
#[derive(Debug)]
pub enum Failure {
    /// It is tried again after a delay that grows.
    Retry(BoxError),
    /// It would fail again: nothing is done until something changes.
    Never(BoxError),
}

impl Failure {
    /// A failure to try again, of an error or a text.
    pub fn retry(error: impl Into<BoxError>) -> Self {
        Self::Retry(error.into())
    }

    /// A failure that is final until something changes, of an error or a text.
    pub fn never(error: impl Into<BoxError>) -> Self {
        Self::Never(error.into())
    }
}

/// What `?` makes of an error: it is tried again.
impl<E: StdError + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Retry(Box::new(error))
    }
}
