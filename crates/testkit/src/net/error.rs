//! What can go wrong with namespaces and packets.

use std::error::Error as StdError;
use std::fmt;

/// [`std::result::Result`] with this module's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kernel refused something.
#[derive(thiserror::Error)]
#[error("cannot {action}")]
pub struct Error {
    action: String,
    #[source]
    source: Box<dyn StdError + Send + Sync>,
}

/// What a test's `unwrap` shows: the message with all its causes.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// For `map_err`: says what was tried.
pub(super) fn cannot<E>(action: impl Into<String>) -> impl FnOnce(E) -> Error
where
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    move |source| Error {
        action: action.into(),
        source: source.into(),
    }
}
