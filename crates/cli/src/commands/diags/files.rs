//! What is in files: of long ones the end, since that is the latest of a log.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// How much of a file is taken.
const MAX_BYTES: u64 = 16 << 20;

/// How many files of a folder are taken.
const MAX_FILES: usize = 2_000;

/// The files at a path: itself, or all below it, in order. There may be none.
pub(super) fn below(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        // Links lead elsewhere.
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_file() {
            found.push(path);
        } else if let Ok(entries) = fs::read_dir(&path) {
            let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
            open.extend(entries.filter(|_| metadata.is_dir()));
        }
        if found.len() == MAX_FILES {
            break;
        }
    }
    found.sort();
    found
}

/// The text of a file, if it is there.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("{}", path.display())),
    };
    let length = file.metadata()?.len();
    let mut text = String::new();
    if let Some(skipped) = length.checked_sub(MAX_BYTES).filter(|skipped| *skipped > 0) {
        file.seek(SeekFrom::Start(skipped))?;
        text = format!("--- the first {skipped} bytes are left out\n");
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    text.push_str(&String::from_utf8_lossy(&bytes));
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_files_the_end_is_taken_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("a/long");
        fs::create_dir(folder.path().join("a")).unwrap();
        let length = usize::try_from(MAX_BYTES).unwrap() + 3;
        fs::write(&long, format!("{}end", "x".repeat(length - 3))).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        assert_eq!(below(folder.path()), std::slice::from_ref(&long));
        let text = read(&long).unwrap().unwrap();
        assert!(text.starts_with("--- the first 3 bytes are left out\nx"));
        assert!(text.ends_with("xend"));
        assert_eq!(read(Path::new("/nonexistent")).unwrap(), None);
    }
}
