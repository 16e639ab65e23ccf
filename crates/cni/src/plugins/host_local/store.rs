//! Which addresses are taken: a file for each, named by the address, with the container and its interface in it.
//!
//! The folder is that of the CNI project's `host-local`, which may be used on it in between. Both lock the same file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use tortie_files::{PUBLIC, SECRET};

use crate::error::{Code, Error, Result};

const LOCK: &str = "lock";
const LAST: &str = "last_reserved_ip.";
const SEPARATOR: &str = "\r\n";
const FOLDER_MODE: u32 = 0o755;

/// The folder, locked until this is dropped.
pub(super) struct Store {
    folder: PathBuf,
    _lock: File,
}

/// An address that is taken.
pub(super) struct Kept {
    pub(super) address: IpAddr,
    pub(super) container: String,
    /// Not known of those that very old versions gave out.
    pub(super) interface: Option<String>,
    file: PathBuf,
}

impl Store {
    /// Makes the folder if it is missing, and waits for its lock.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let open = || -> io::Result<File> {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(FOLDER_MODE).create(folder)?;
            let mut options = OpenOptions::new();
            options
                .create(true)
                .truncate(false)
                .write(true)
                .mode(PUBLIC);
            let lock = options.open(folder.join(LOCK))?;
            lock.lock()?;
            Ok(lock)
        };
        let failed = format!(
            "the folder {} of taken addresses cannot be locked",
            folder.display()
        );
        Ok(Self {
            folder: folder.to_owned(),
            _lock: open().map_err(Error::of(Code::Io, failed))?,
        })
    }

    /// Takes an address from a set, unless it is taken already.
    pub(super) fn take(
        &self,
        address: IpAddr,
        set: usize,
        container: &str,
        interface: &str,
    ) -> Result<bool> {
        let path = self.folder.join(address.to_string());
        let mut options = OpenOptions::new();
        let mut file = match options
            .write(true)
            .create_new(true)
            .mode(SECRET)
            .open(&path)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(failed("made", &path)(error)),
        };
        let last = self.folder.join(format!("{LAST}{set}"));
        let written = file
            .write_all(owner(container, interface).as_bytes())
            .and_then(|()| {
                let mut options = OpenOptions::new();
                let mut file = options
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(SECRET)
                    .open(&last)?;
                file.write_all(address.to_string().as_bytes())
            });
        written
            .inspect_err(|_| drop(fs::remove_file(&path)))
            .map_err(failed("written", &path))?;
        Ok(true)
    }

    /// Gives back addresses that were just taken. What fails of it is told in the log only: the runtime will call DEL.
    pub(super) fn give_back(&self, addresses: &[IpAddr]) {
        for address in addresses {
            let path = self.folder.join(address.to_string());
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%address, %error, "After a failed ADD an address could not be given back");
            }
        }
    }

    pub(super) fn is_free(&self, address: IpAddr) -> bool {
        !self.folder.join(address.to_string()).exists()
    }

    /// The address of a set that was taken last.
    pub(super) fn last(&self, set: usize) -> Option<IpAddr> {
        let text = fs::read_to_string(self.folder.join(format!("{LAST}{set}"))).ok()?;
        text.trim().parse().ok()
    }

    /// The addresses of a container's interface.
    pub(super) fn held(&self, container: &str, interface: &str) -> Result<Vec<IpAddr>> {
        let kept = self.kept_for(container, interface)?;
        Ok(kept.into_iter().map(|kept| kept.address).collect())
    }

    /// Gives back the addresses of a container's interface.
    pub(super) fn release(&self, container: &str, interface: &str) -> Result<()> {
        let kept = self.kept_for(container, interface)?;
        kept.iter().try_for_each(Kept::give_back)
    }

    /// Those of very old versions, which did not keep the interface, only where there are no others.
    fn kept_for(&self, container: &str, interface: &str) -> Result<Vec<Kept>> {
        let mut kept = self.kept()?;
        kept.retain(|kept| kept.container == container);
        let (known, old): (Vec<Kept>, Vec<Kept>) =
            kept.into_iter().partition(|kept| kept.interface.is_some());
        let known: Vec<Kept> = known
            .into_iter()
            .filter(|kept| kept.interface.as_deref() == Some(interface))
            .collect();
        Ok(if known.is_empty() { old } else { known })
    }

    /// All addresses that are taken.
    pub(super) fn kept(&self) -> Result<Vec<Kept>> {
        let unreadable = || failed("read", &self.folder);
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(unreadable())? {
            let entry = entry.map_err(unreadable())?;
            // The lock, and what was given out last, are no addresses.
            let Some(address) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let file = entry.path();
            let text = match fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed("read", &file)(error)),
            };
            let text = text.trim();
            let (container, interface) = match text.split_once(SEPARATOR) {
                Some((container, interface)) => (container, Some(interface.to_owned())),
                None => (text, None),
            };
            all.push(Kept {
                address,
                container: container.to_owned(),
                interface,
                file,
            });
        }
        Ok(all)
    }
}

impl Kept {
    pub(super) fn give_back(&self) -> Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("removed", &self.file)(error))
            }
            _ => Ok(()),
        }
    }
}

fn owner(container: &str, interface: &str) -> String {
    format!("{container}{SEPARATOR}{interface}")
}

fn failed(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    Error::of(Code::Io, format!("{} cannot be {doing}", path.display()))
}
