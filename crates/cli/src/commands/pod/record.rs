//! What is known of a pod that was made here, beside the API.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// The folder of all records, in the data folder.
const FOLDER: &str = "pods";

/// A pod that was made here.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Record {
    pub(in crate::commands) namespace: String,
    pub(in crate::commands) name: String,
    /// The process or thread whose network namespace is the pod's.
    pub(in crate::commands) process: u32,
    /// When that was started, in ticks of the kernel: numbers are given again.
    pub(in crate::commands) started: u64,
    /// By what name the CNI plugin knows it; none where it was connected otherwise, and by somebody who also removes it.
    pub(in crate::commands) container: Option<String>,
    /// The ports that it answers on.
    pub(in crate::commands) serves: Vec<String>,
}

/// The pod's name as everybody writes it.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Record {
    /// A pod that a thread of this process holds.
    pub(in crate::commands) fn of_thread(namespace: &str, name: &str, thread: u32) -> Result<Self> {
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            process: thread,
            started: start_of(thread).context("the pod's thread has ended")?,
            container: None,
            serves: Vec::new(),
        })
    }

    /// The record of a pod, if there is one.
    pub(super) fn find(data: &Path, namespace: &str, name: &str) -> Result<Option<Self>> {
        read(&path(data, namespace, name))
    }

    /// All records, by name.
    pub(super) fn all(data: &Path) -> Result<Vec<Self>> {
        let folder = data.join(FOLDER);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).with_context(|| format!("reading {}", folder.display()));
            }
        };
        let mut records = Vec::new();
        for entry in entries {
            records.extend(read(&entry?.path())?);
        }
        records.sort_by_key(ToString::to_string);
        Ok(records)
    }

    pub(in crate::commands) fn write(&self, data: &Path) -> Result<()> {
        let path = path(data, &self.namespace, &self.name);
        let folder = data.join(FOLDER);
        let text = serde_json::to_string(self)?;
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text));
        written.with_context(|| format!("writing {}", path.display()))
    }

    pub(super) fn remove(&self, data: &Path) -> Result<()> {
        let path = path(data, &self.namespace, &self.name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Whether its process is still there.
    pub(super) fn is_live(&self) -> bool {
        start_of(self.process) == Some(self.started)
    }

    /// The file of its network namespace, if its process is still there.
    pub(super) fn live_network(&self) -> Option<PathBuf> {
        let file = format!("/proc/{}/ns/net", self.process);
        self.is_live().then(|| file.into())
    }
}

/// When a process or thread was started, in ticks of the kernel.
pub(in crate::commands) fn start_of(process: u32) -> Option<u64> {
    /// The field is the 22nd. The second one, the name, is in parentheses and may have anything in it.
    const AFTER_NAME: usize = 19;
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    // One that has ended and was not waited for holds nothing any more.
    let state = fields.clone().next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(AFTER_NAME)?.parse().ok()
}

/// Namespaces have no dots in their names.
fn path(data: &Path, namespace: &str, name: &str) -> PathBuf {
    data.join(FOLDER).join(format!("{namespace}.{name}.json"))
}

fn read(path: &Path) -> Result<Option<Record>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let record = serde_json::from_str(&text);
    record.with_context(|| format!("{} is not the record of a pod", path.display()))
}
