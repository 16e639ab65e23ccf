//! Containers that have been disconnected completely: runtimes ask for that several times.
//!
//! A DEL that has done everything leaves an empty file, named by what it was asked. The next one that is asked the same finds
//! it, and has nothing to do, whatever becomes of the datastore. The files are beside the lock of address management, where
//! nothing outlives a start of the machine.
//!
//! # Invariants
//! - A file is there only after everything is gone: a DEL that was cut off leaves none, and the next one does all the work.
//! - An ADD of the same container removes the file before it takes anything, and again when it has ended: a DEL may have ended
//!   meanwhile, if a runtime gave up waiting.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use tortie_client::connect::Source;
use tortie_error::Causes;

use crate::config::NetworkConfig;
use crate::datastore;
use crate::error::{Code, Error, Result};
use crate::ipam;
use crate::machine;
use crate::plugin::Plugin;
use crate::request::Request;

/// How long it is kept. Whoever asks later than that is answered by the datastore.
const KEPT: Duration = Duration::from_hours(1);

/// Where it is kept that a container has been disconnected.
pub(crate) struct Record {
    path: PathBuf,
}

impl Record {
    /// None where it is not known which datastore is meant, and for virtual machines: what is to be done at the end of one of
    /// their pods changes as long as others may follow it.
    pub(crate) fn of(
        plugin: Plugin,
        request: &Request,
        config: &NetworkConfig,
        environment: Source<'_>,
    ) -> Option<Self> {
        if machine::is_launching(request) {
            return None;
        }
        let place = datastore::place(config, environment).ok()?;
        let parts = [
            plugin.name(),
            &place,
            &config.name,
            &request.container_id,
            &request.interface,
        ];
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let mut name = String::new();
        for byte in hash.finalize() {
            // Text takes whatever is written to it.
            let _ = write!(name, "{byte:02x}");
        }
        let folder = ipam::lock_file(config).with_extension("gone");
        Some(Self {
            path: folder.join(name),
        })
    }

    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// Leaves it, and removes those that are old. What fails of it costs only time later.
    pub(crate) fn leave(&self) {
        if let Err(error) = self.make() {
            tracing::debug!(error = %Causes(&error), "It could not be noted that a container is gone");
        }
    }

    /// Removes it, for a container that comes.
    pub(crate) fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let message = format!("{} cannot be removed", self.path.display());
                Err(Error::of(Code::Io, message)(error))
            }
            _ => Ok(()),
        }
    }

    fn make(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let now = SystemTime::now();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let is_old =
                |written: SystemTime| now.duration_since(written).is_ok_and(|age| age > KEPT);
            if entry.metadata()?.modified().is_ok_and(is_old) {
                fs::remove_file(entry.path())?;
            }
        }
        fs::File::create(&self.path).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn record(folder: &Path, plugin: Plugin, container: &str, network: &str) -> Record {
        let container = container.to_owned();
        let request = Request::from_environment(move |name| {
            Some(match name {
                "CNI_COMMAND" => "DEL".to_owned(),
                "CNI_CONTAINERID" => container.clone(),
                "CNI_ARGS" => String::new(),
                _ => "eth0".to_owned(),
            })
        });
        let config = NetworkConfig {
            name: network.to_owned(),
            etcd_endpoints: "http://e:1".to_owned(),
            datastore_type: "etcdv3".to_owned(),
            ipam_lock_file: folder.join("ipam.lock"),
            ..NetworkConfig::default()
        };
        let record = Record::of(plugin, &request.expect("a request"), &config, &|_| None);
        record.expect("a record")
    }

    #[test]
    fn only_the_same_question_is_answered() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = |plugin, container, network| record(folder.path(), plugin, container, network);
        one(Plugin::Calico, "c1", "net").leave();
        assert!(one(Plugin::Calico, "c1", "net").is_there());
        assert!(!one(Plugin::Calico, "c2", "net").is_there());
        assert!(!one(Plugin::Calico, "c1", "other").is_there());
        assert!(!one(Plugin::CalicoIpam, "c1", "net").is_there());
        for _ in 0..2 {
            one(Plugin::Calico, "c1", "net").remove().expect("removed");
            assert!(!one(Plugin::Calico, "c1", "net").is_there());
        }
    }

    #[test]
    fn what_is_old_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = |container| record(folder.path(), Plugin::Calico, container, "net");
        one("c1").leave();
        let old = SystemTime::now() - KEPT - Duration::from_secs(1);
        let file = File::options()
            .write(true)
            .open(&one("c1").path)
            .expect("a file");
        file.set_modified(old).expect("a time");
        one("c2").leave();
        assert!(!one("c1").is_there() && one("c2").is_there());
    }
}
