//! Small files that other programs read.

use std::fs;
use std::io;
use std::path::Path;

/// Writes a file, and its folder if that is missing. Whoever reads it sees all of the old text or all of the new.
pub fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = file.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, file)
}
