//! BIRD's log, as part of ours.
//!
//! It comes through a FIFO with a name: BIRD keeps writing there when this process ends, and the next one goes on reading.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use crate::bird::error::{Error, Result};
use crate::bird::status::PeerType;

/// BIRD's own lines are shorter.
const LONGEST_LINE: usize = 8192;

/// The FIFO, held open for writing as well, so that it never ends.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    pipe: pipe::Receiver,
    last: LastSaid,
}

/// The last line that may be the reason for BIRD's end.
#[derive(Debug, Clone, Default)]
pub(super) struct LastSaid(Arc<Mutex<Option<String>>>);

/// One line.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    level: tracing::Level,
    peer: Option<&'a str>,
    text: &'a str,
    /// BIRD did not say how much it matters: it has no configuration, or one without a log.
    is_plain: bool,
}

impl Log {
    pub(super) fn open(path: &Path) -> Result<Self> {
        make(path)?;
        let mut options = pipe::OpenOptions::new();
        let opened = options.read_write(true).open_receiver(path);
        Ok(Self {
            path: path.to_owned(),
            pipe: opened.map_err(Error::file("open", path))?,
            last: LastSaid::default(),
        })
    }

    pub(super) fn last_said(&self) -> LastSaid {
        self.last.clone()
    }

    /// Passes lines on for ever.
    pub(super) async fn forward(mut self) -> Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut line = Vec::new();
        loop {
            let read = self.pipe.read(&mut buffer).await;
            let length = read.map_err(Error::file("read", &self.path))?;
            for &byte in &buffer[..length] {
                if byte == b'\n' {
                    self.tell(&String::from_utf8_lossy(&line));
                    line.clear();
                } else if line.len() < LONGEST_LINE {
                    line.push(byte);
                }
            }
        }
    }

    fn tell(&self, line: &str) {
        let entry = Entry::of(line);
        let Entry {
            level, peer, text, ..
        } = entry;
        if level <= tracing::Level::WARN || entry.is_plain {
            self.last.set(text);
        }
        match level {
            tracing::Level::ERROR => tracing::error!(peer, text, "BIRD reports an error"),
            tracing::Level::WARN => tracing::warn!(peer, text, "BIRD reports a problem"),
            tracing::Level::INFO => tracing::info!(peer, text, "BIRD reports"),
            _ => tracing::debug!(peer, text, "BIRD reports"),
        }
    }
}

impl LastSaid {
    pub(super) fn get(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn set(&self, text: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
    }
}

impl<'a> Entry<'a> {
    /// `2026-11-19 02:04:32.744 <ERR> Mesh_172_20_0_2: Received: …`, or `bird: Mesh_172_20_0_2: Received: …`
    fn of(line: &'a str) -> Self {
        let classified = class_and_text(line);
        let plain = || ("INFO", line.strip_prefix("bird: ").unwrap_or(line));
        let (class, text) = classified.unwrap_or_else(plain);
        let level = match class {
            // A shutdown that was asked for is told so too.
            "FATAL" if text == "Shutdown completed" => tracing::Level::INFO,
            "FATAL" | "BUG" => tracing::Level::ERROR,
            "ERR" | "WARN" | "RMT" | "AUTH" => tracing::Level::WARN,
            "INFO" => tracing::Level::INFO,
            _ => tracing::Level::DEBUG,
        };
        let (peer, text) = match text.split_once(": ") {
            Some((name, rest)) if PeerType::of(name).is_some() => (Some(name), rest),
            _ => (None, text),
        };
        Self {
            level,
            peer,
            text,
            is_plain: classified.is_none(),
        }
    }
}

fn class_and_text(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once('<')?;
    let (class, text) = rest.split_once("> ")?;
    let is_class = !class.is_empty() && class.bytes().all(|byte| byte.is_ascii_uppercase());
    is_class.then_some((class, text))
}

fn make(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_fifo() => {}
        Ok(_) => {
            let source = std::io::Error::other("there is a file that is no FIFO; move it away");
            return Err(Error::file("make the FIFO", path)(source));
        }
        Err(_) => {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(Error::file("make the folder", folder))?;
            }
            let made = mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
            made.map_err(|error| Error::file("make the FIFO", path)(error.into()))?;
        }
    }
    let mode = fs::Permissions::from_mode(tortie_files::SECRET);
    fs::set_permissions(path, mode).map_err(Error::file("set the permissions of", path))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[track_caller]
    fn check(line: &str, level: Level, peer: Option<&str>, text: &str) {
        let entry = Entry::of(line);
        assert_eq!((entry.level, entry.peer, entry.text), (level, peer, text));
    }

    #[test]
    fn lines_have_a_level_and_perhaps_a_peer() {
        let time = "2026-11-19 02:04:32.744";
        check(
            &format!("{time} <RMT> Mesh_172_20_0_1: Received: Administrative shutdown"),
            Level::WARN,
            Some("Mesh_172_20_0_1"),
            "Received: Administrative shutdown",
        );
        check(
            &format!("{time} <TRACE> kernel4: State changed to up"),
            Level::DEBUG,
            None,
            "kernel4: State changed to up",
        );
        check(
            &format!("{time} <INFO> Started"),
            Level::INFO,
            None,
            "Started",
        );
        check(
            &format!("{time} <FATAL> Shutdown completed"),
            Level::INFO,
            None,
            "Shutdown completed",
        );
        check(
            &format!("{time} <FATAL> Out of memory"),
            Level::ERROR,
            None,
            "Out of memory",
        );
    }

    #[test]
    fn what_is_said_without_a_log_may_be_why_bird_ended() {
        let error = "/a.conf:15:8 syntax error, unexpected EXP";
        check(&format!("bird: {error}"), Level::INFO, None, error);
        let (peer, text) = ("Mesh_172_20_0_1", "State changed to up");
        check(
            &format!("bird: {peer}: {text}"),
            Level::INFO,
            Some(peer),
            text,
        );
        check("a < b > c", Level::INFO, None, "a < b > c");
        let is_plain = |line| Entry::of(line).is_plain;
        assert!(is_plain("bird: x") && !is_plain("2026-11-19 <INFO> Started"));
    }
}
