//! What an installation or its removal consists of.

use std::fmt;
use std::path::PathBuf;

use tortie_files::SECRET;

use super::files;
use crate::error::{Code, Error, Result};

/// What will be done, in order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
}

#[derive(Clone)]
pub enum Step {
    /// Makes a folder, and those that it is in.
    MakeFolder { path: PathBuf },
    /// Copies a file with its permissions.
    Copy {
        /// Which.
        from: PathBuf,
        /// Where to.
        to: PathBuf,
    },
    /// Gives a file of the same folder a second name; copies it where the file system has no such names.
    Link {
        /// Which.
        from: PathBuf,
        to: PathBuf,
    },
    /// Writes a file for the owner alone.
    Write {
        /// Where to.
        to: PathBuf,
        /// What.
        content: String,
    },
    /// Does nothing to what is somebody else's, and says so.
    Leave {
        /// Which.
        path: PathBuf,
        why: &'static str,
    },
    /// Removes a file, or a folder with all in it.
    Remove {
        /// Which.
        path: PathBuf,
    },
    /// Removes a folder if nothing is in it.
    RemoveEmpty {
        /// Which.
        path: PathBuf,
    },
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// It was so already.
    Unchanged,
}

impl Plan {
    /// Does all steps, and tells of each. After one that fails none is done.
    pub fn carry_out(&self, tell: &mut dyn FnMut(&Step, Outcome)) -> Result<()> {
        for step in &self.steps {
            let outcome = step.carry_out()?;
            tell(step, outcome);
        }
        Ok(())
    }
}

impl Step {
    /// Does it.
    pub fn carry_out(&self) -> Result<Outcome> {
        let done = match self {
            Self::MakeFolder { path } => files::make_folder(path),
            Self::Copy { from, to } => files::copy(from, to),
            Self::Link { from, to } => files::link(from, to),
            Self::Write { to, content } => files::write(to, content, SECRET),
            Self::Leave { .. } => Ok(false),
            Self::Remove { path } => files::remove(path),
            Self::RemoveEmpty { path } => files::remove_empty(path),
        };
        let is_changed = done.map_err(Error::of(Code::Other, format!("cannot {self}")))?;
        Ok(if is_changed {
            Outcome::Done
        } else {
            Outcome::Unchanged
        })
    }

    /// What was done, for people.
    pub fn told(&self, outcome: Outcome) -> String {
        let (verb, path) = match self {
            Self::MakeFolder { path } => ("made the folder", path),
            Self::Copy { to, .. } | Self::Link { to, .. } | Self::Write { to, .. } => ("wrote", to),
            Self::Leave { .. } => return self.to_string(),
            Self::Remove { path } | Self::RemoveEmpty { path } => ("removed", path),
        };
        match outcome {
            Outcome::Done => format!("{verb} {}", path.display()),
            Outcome::Unchanged => format!("unchanged {}", path.display()),
        }
    }
}

/// Leaves out contents: there are secrets among them.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MakeFolder { path } => write!(f, "make the folder {}", path.display()),
            Self::Copy { from, to } => write!(f, "copy {} to {}", from.display(), to.display()),
            Self::Link { from, to } => write!(f, "link {} to {}", to.display(), from.display()),
            Self::Write { to, content } => {
                let length = content.len();
                write!(f, "write {} ({length} bytes, mode 0600)", to.display())
            }
            Self::Leave { path, why } => write!(f, "leave {}: {why}", path.display()),
            Self::Remove { path } => write!(f, "remove {}", path.display()),
            Self::RemoveEmpty { path } => write!(f, "remove {} if it is empty", path.display()),
        }
    }
}
