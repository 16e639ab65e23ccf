//! Telling our own binaries from those of others.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::plugin::Plugin;

/// In each of our binaries, whatever its version, and in nobody else's.
#[used]
static MARK: [u8; MARK_LENGTH] = *b"this program is a CNI plugin of Tortie: \x07\x13\x1d\x02";
const MARK_LENGTH: usize = 44;

/// How much of a file is searched at a time.
const CHUNK: usize = 1 << 18;

/// The names that our binary answers to.
pub(super) fn names() -> [&'static str; Plugin::ALL.len()] {
    Plugin::ALL.map(Plugin::name)
}

/// Whether a file is one of our binaries. One that is not there is not.
pub(super) fn is_own(path: &Path) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut buffer = vec![0; CHUNK + MARK_LENGTH];
    // What was read last of the chunk before stands before the next one.
    let mut kept = 0;
    loop {
        let read = file.read(&mut buffer[kept..])?;
        if read == 0 {
            return Ok(false);
        }
        let filled = kept + read;
        if has_mark(&buffer[..filled]) {
            return Ok(true);
        }
        kept = filled.min(MARK_LENGTH - 1);
        buffer.copy_within(filled - kept..filled, 0);
    }
}

fn has_mark(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == MARK[0]) {
        rest = &rest[at..];
        if rest.starts_with(&MARK) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// A file that counts as one of ours.
#[cfg(test)]
pub(super) fn sample(version: &str) -> Vec<u8> {
    [b"binary ", &MARK[..], version.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &[u8], expected: bool) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), content).expect("a file");
        assert_eq!(is_own(file.path()).expect("a file"), expected);
    }

    #[test]
    fn the_mark_is_found_wherever_it_is() {
        check(b"", false);
        check(b"another's", false);
        check(&MARK, true);
        check(&MARK[..MARK_LENGTH - 1], false);
        for before in [1, CHUNK - 1, CHUNK, CHUNK + 20, 2 * CHUNK + MARK_LENGTH - 3] {
            let mut content = vec![MARK[0]; before];
            content.extend_from_slice(&MARK);
            content.push(0);
            check(&content, true);
        }
        check(&vec![MARK[0]; 3 * CHUNK], false);
        assert!(!is_own(Path::new("/nowhere/calico")).expect("an answer"));
    }
}
