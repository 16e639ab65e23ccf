//! Digests and compression.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

/// In hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        // Text grows.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Without a name and a time in its header.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
