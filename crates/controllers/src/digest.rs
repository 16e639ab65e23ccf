//! What an object says, in sixteen bytes: enough to see that it was changed, without keeping it.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Stands for a value; equal values have equal digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 16]);

impl Digest {
    /// The digest of a value, by its JSON.
    pub(crate) fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        // Values are resources and parts of them, whose maps have text as keys.
        let json = serde_json::to_vec(value).unwrap_or_default();
        Self::of_bytes(&json)
    }

    /// The digest of bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let whole: [u8; 32] = Sha256::digest(bytes).into();
        let mut half = [0; 16];
        half.copy_from_slice(&whole[..16]);
        Self(half)
    }
}
