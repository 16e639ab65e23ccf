//! The engine's input in a file that `tortie replay` plays elsewhere.
//!
//! A recording begins with a start of the node's part of the agent, which reads everything from the datastore again, so that
//! the file has all that the engine knows. The kernel keeps what it has meanwhile.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tortie_engine::record::{Event, Recorder};
use tortie_error::Causes;
use tortie_kernel::poll::Waker;

/// A disk is not to be filled by a recording that somebody forgot.
const MAX_BYTES: u64 = 1 << 30;

/// Starts and ends recordings of an agent.
#[derive(Clone)]
pub struct Recording {
    shared: Arc<Mutex<Shared>>,
    waker: Waker,
}

#[derive(Default)]
struct Shared {
    /// What is to be done when the agent next looks.
    wanted: Option<Wanted>,
    open: Option<Open>,
}

enum Wanted {
    Start(PathBuf),
    End,
}

struct Open {
    file: RecordingFile,
    /// Whether the engine was told something since it was last asked.
    is_told: bool,
}

/// A file that events are written to.
pub struct RecordingFile {
    path: PathBuf,
    recorder: Recorder<BufWriter<File>>,
}

// === impl Recording ===

impl Recording {
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            shared: Arc::default(),
            waker,
        }
    }

    /// Starts a recording in place of the one that is under way, if one is.
    pub fn start(&self, file: PathBuf) {
        self.with(|shared| shared.wanted = Some(Wanted::Start(file)));
        self.waker.wake();
    }

    /// Starts a recording if none is under way, and ends it otherwise.
    pub fn toggle(&self, file: PathBuf) {
        self.with(|shared| {
            shared.wanted = Some(match shared.open {
                Some(_) => Wanted::End,
                None => Wanted::Start(file),
            });
        });
        self.waker.wake();
    }

    /// Does what was asked for. Whether the engine has to be told everything again.
    pub(crate) fn settle(&self) -> bool {
        self.with(|shared| match shared.wanted.take() {
            None => false,
            Some(Wanted::End) => {
                shared.end();
                false
            }
            Some(Wanted::Start(path)) => {
                shared.end();
                match RecordingFile::create(&path) {
                    Ok(file) => {
                        tracing::warn!(file = %path.display(), "Recording what the engine is told");
                        let is_told = false;
                        shared.open = Some(Open { file, is_told });
                        true
                    }
                    Err(error) => {
                        tracing::error!(file = %path.display(), error = %Causes(&error), "The recording cannot be written");
                        false
                    }
                }
            }
        })
    }

    /// Writes what the engine was told or asked. Being asked again without being told anything is not worth a line.
    pub(crate) fn write(&self, event: impl FnOnce() -> Event) {
        self.with(|shared| {
            let Some(open) = &mut shared.open else {
                return;
            };
            let event = event();
            let is_flush = event == Event::Flush;
            if is_flush && !open.is_told {
                return;
            }
            open.is_told = !is_flush;
            open.file.recorder.write(&event);
            if open.file.recorder.has_failed() {
                shared.end();
            }
        });
    }

    /// Ends the recording, if one is under way.
    pub(crate) fn end(&self) {
        self.with(Shared::end);
    }

    fn with<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn end(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let file = open.file.path.display();
        match open.file.recorder.finish() {
            Ok(()) => tracing::warn!(%file, "The recording has ended"),
            Err(error) => {
                tracing::error!(%file, error = %Causes(&error), "The recording has ended before its time");
            }
        }
    }
}

// === impl RecordingFile ===

impl RecordingFile {
    /// An empty file, which only its owner can read: it tells all about a cluster.
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path)?;
        // One that was there may be open to others.
        if file.metadata()?.is_file() {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        Ok(Self {
            path: path.to_owned(),
            recorder: Recorder::new(BufWriter::new(file), MAX_BYTES),
        })
    }

    /// Writes an event; after a failure nothing more.
    pub fn write(&mut self, event: &Event) {
        self.recorder.write(event);
    }

    /// Ends the file; tells whether all was written.
    pub fn finish(self) -> io::Result<()> {
        self.recorder.finish()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
