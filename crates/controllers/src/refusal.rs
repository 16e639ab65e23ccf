//! Writes that the datastore refuses.

use tortie_operator::Failure;
use tortie_store::Error;

/// Trying again does not make an object valid.
pub(crate) fn failure(error: Error) -> Failure {
    match error {
        error @ Error::Invalid { .. } => Failure::never(error),
        error => error.into(),
    }
}
