//! Digests of rules.

use sha2::{Digest as _, Sha256};

/// What tells rules apart, after a restart too: part of a SHA-256, long enough that nobody finds two rules with the same.
pub(super) type RuleDigest = [u8; 16];

/// Makes a digest of several parts.
#[derive(Default)]
pub(super) struct Digest(Sha256);

impl Digest {
    pub(super) fn write(&mut self, part: &[u8]) {
        // Keeps it apart from what follows.
        self.0.update(part.len().to_le_bytes());
        self.0.update(part);
    }

    pub(super) fn finish(self) -> RuleDigest {
        let mut digest = RuleDigest::default();
        for (to, from) in digest.iter_mut().zip(self.0.finalize()) {
            *to = from;
        }
        digest
    }
}
