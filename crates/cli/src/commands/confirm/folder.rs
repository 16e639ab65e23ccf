//! The folder in which everything is kept that waits for confirmation.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tortie_files::SECRET;
use tortie_variables as variables;

use super::pending::{Pending, State};

/// Ends the names of files with what is pending.
const PENDING: &str = "json";

/// How often, and with what pause, a process tries to say that it is there.
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Locked by who changes something.
const LOCK: &str = "lock";

/// Who has to do with what is pending. Each has a file locked while it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Applied, and waits to tell what became of it.
    Applier,
    /// Rolls back.
    Watcher,
    /// Asked for it to be rolled back, and waits to tell what became of it.
    Asker,
}

/// A role that this process has.
#[derive(Debug)]
pub(super) struct Held {
    path: PathBuf,
    _file: File,
}

#[derive(Debug, Clone)]
pub(super) struct Folder {
    state: PathBuf,
    path: PathBuf,
}

impl Folder {
    /// In the user's state folder; in the system's for root, so that services of the system find it too.
    pub(super) fn find() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let state = match (
            variable(variables::XDG_STATE_HOME),
            variable(variables::HOME),
        ) {
            (Some(state), _) => PathBuf::from(state),
            (None, Some(home)) if home != "/root" => Path::new(&home).join(".local/state"),
            (None, _) => PathBuf::from("/var/lib"),
        };
        let path = state.join("tortie").join("pending");
        Self { state, path }
    }

    /// What `XDG_STATE_HOME` must be for another process to find the same folder.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// Keeps what is new.
    pub(super) fn create(&self, pending: &Pending) -> Result<()> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.path);
        made.with_context(|| format!("cannot make the folder {}", self.path.display()))?;
        let _lock = self.lock()?;
        if self.file(&pending.id, PENDING).exists() {
            bail!("`{}` is pending already; try again", pending.id);
        }
        self.save(pending)
    }

    /// What is called so, if anything is.
    pub(super) fn load(&self, id: &str) -> Result<Option<Pending>> {
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(None);
        }
        let path = self.file(id, PENDING);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let pending = serde_json::from_slice(&text);
        let pending = pending.with_context(|| format!("{} is damaged", path.display()))?;
        Ok(Some(pending))
    }

    /// All that is there, the oldest first.
    pub(super) fn all(&self) -> Result<Vec<Pending>> {
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                let path = self.path.display();
                return Err(error).with_context(|| format!("cannot read the folder {path}"));
            }
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let id = path.file_stem().and_then(|name| name.to_str());
            let is_pending = path.extension().is_some_and(|end| end == PENDING);
            if let Some(id) = id.filter(|_| is_pending) {
                all.extend(self.load(id)?);
            }
        }
        all.sort_by(|a, b| (a.started, &a.id).cmp(&(b.started, &b.id)));
        Ok(all)
    }

    /// Changes something; `None` if it is gone.
    pub(super) fn change<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Pending) -> T,
    ) -> Result<Option<T>> {
        let _lock = self.lock()?;
        let Some(mut pending) = self.load(id)? else {
            return Ok(None);
        };
        let result = change(&mut pending);
        self.save(&pending)?;
        Ok(Some(result))
    }

    /// Confirms what waits. Tells the state; in any other than waiting nothing is done.
    pub(super) fn confirm(&self, id: &str) -> Result<State> {
        let _lock = self.lock()?;
        let Some(mut pending) = self.load(id)? else {
            bail!("`{id}` does not wait any more");
        };
        match pending.state {
            State::Waiting if pending.roll_back_now => Ok(State::RollingBack),
            State::Waiting => {
                pending.state = State::Confirmed;
                self.save(&pending)?;
                Ok(State::Waiting)
            }
            state => Ok(state),
        }
    }

    /// Removes what is over, unless the process that applied is there to do so once it has told.
    pub(super) fn clear(&self, id: &str) -> Result<()> {
        if self.has(id, Role::Applier)? {
            return Ok(());
        }
        let _lock = self.lock()?;
        match self.load(id)? {
            Some(_) => self.remove(id),
            None => Ok(()),
        }
    }

    /// Removes what is not needed any more.
    pub(super) fn remove(&self, id: &str) -> Result<()> {
        let path = self.file(id, PENDING);
        let removed = std::fs::remove_file(&path);
        removed.with_context(|| format!("cannot remove {}", path.display()))
    }

    /// Takes a role, which nobody else can have as long as that is kept.
    pub(super) fn hold(&self, id: &str, role: Role) -> Result<Held> {
        let path = self.file(id, role.name());
        let file = open(&path)?;
        for _ in 0..LOCK_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(Held { path, _file: file }),
                // Perhaps by somebody who only looks who is there.
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error).context("cannot lock"),
            }
        }
        bail!("`{id}` has a {} already", role.name())
    }

    /// Whether somebody has a role.
    pub(super) fn has(&self, id: &str, role: Role) -> Result<bool> {
        let file = match File::open(self.file(id, role.name())) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error).context("cannot see who is there"),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error).context("cannot see who is there"),
        }
    }

    fn lock(&self) -> Result<File> {
        let path = self.path.join(LOCK);
        let file = open(&path)?;
        let locked = file.lock();
        locked.with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(file)
    }

    fn save(&self, pending: &Pending) -> Result<()> {
        let path = self.file(&pending.id, PENDING);
        let written = serde_json::to_vec_pretty(pending)
            .map_err(Into::into)
            .and_then(|text| tortie_files::replace(&path, text, SECRET));
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    fn file(&self, id: &str, end: &str) -> PathBuf {
        self.path.join(id).with_extension(end)
    }
}

impl Role {
    /// Ends the name of the file.
    fn name(self) -> &'static str {
        match self {
            Self::Applier => "applier",
            Self::Watcher => "watcher",
            Self::Asker => "asker",
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A file without a lock says as much as no file.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path);
    file.with_context(|| format!("cannot open {}", path.display()))
}
