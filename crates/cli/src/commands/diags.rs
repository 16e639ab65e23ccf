//! `tortie node diags` and `tortie cluster diags`: what a supporter needs, in one archive.
//!
//! # Invariants
//! - Secrets are removed before anything is written: see `secrets`.
//! - What cannot be gathered does not hold up the rest: `summary.txt` says what is missing, and why.

mod archive;
mod bird;
pub(super) mod cluster;
mod commands;
mod files;
pub(super) mod node;
mod secrets;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use self::archive::Archive;
use super::report;

/// Gathers into an archive.
struct Gatherer {
    archive: Archive,
    /// A line for each item.
    summary: String,
    missing: usize,
}

impl Gatherer {
    /// An archive `NAME-<time>.tar.gz` in a folder.
    fn new(folder: &Path, name: &str) -> Result<Self> {
        let time = jiff::Timestamp::now().strftime("%Y%m%d_%H%M%S");
        let name = format!("{name}-{time}");
        let path = folder.join(format!("{name}.tar.gz"));
        let archive = Archive::create(&path, &name);
        let archive = archive.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            archive,
            summary: format!(
                "tortie {} {time} UTC\nSecrets are replaced by {}\n\n",
                env!("CARGO_PKG_VERSION"),
                secrets::REMOVED
            ),
            missing: 0,
        })
    }

    /// Adds what was found, without its secrets, or notes why it was not.
    fn add(&mut self, name: &str, found: Result<String>) -> Result<()> {
        match found {
            Ok(text) => {
                let text = secrets::remove(&text);
                self.note(name, &format!("{} bytes", text.len()));
                self.archive.add(name, text.as_bytes())
            }
            Err(error) => {
                self.missing += 1;
                self.note(name, &format!("MISSING: {}", report::causes(&error)));
                Ok(())
            }
        }
    }

    fn note(&mut self, name: &str, what: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.summary, "{name}: {}", secrets::remove(what).trim_end());
    }

    /// Completes the archive, and says where it is.
    fn finish(mut self) -> Result<()> {
        self.archive.add("summary.txt", self.summary.as_bytes())?;
        let path: PathBuf = self.archive.finish()?;
        if self.missing > 0 {
            writeln!(
                anstream::stderr(),
                "{} item(s) could not be gathered; summary.txt in the archive says which, and why",
                self.missing
            )?;
        }
        writeln!(anstream::stdout(), "{}", path.display())?;
        Ok(())
    }
}

/// Says what goes on, where somebody looks.
fn progress(what: &str) -> Result<()> {
    Ok(writeln!(anstream::stderr(), "Gathering {what}")?)
}
