//! What an interface was like before it was changed.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tortie_files::SECRET;
use tortie_kernel::link::Link;

use super::config::Changes;
use crate::error::{Code, Error, Result};

/// As it is kept: what was changed, and no more.
#[derive(Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Before {
    #[serde(skip_serializing_if = "String::is_empty")]
    mac: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    promisc: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allmulti: Option<bool>,
    #[serde(rename = "txQLen", skip_serializing_if = "Option::is_none")]
    queue_length: Option<u32>,
}

impl Before {
    pub(super) fn of(link: &Link, changes: &Changes) -> Self {
        let mac = changes.mac.and(link.mac);
        Self {
            mac: mac.map_or(String::new(), |mac| mac.to_string()),
            promisc: changes.promiscuous.map(|_| link.is_promiscuous),
            mtu: changes.mtu.map(|_| link.mtu),
            allmulti: changes.all_multicast.map(|_| link.takes_all_multicast),
            queue_length: changes.queue_length.map(|_| link.queue_length),
        }
    }

    /// The changes that make the interface so again.
    pub(super) fn changes(&self) -> Changes {
        Changes {
            mac: self.mac.parse().ok(),
            mtu: self.mtu.filter(|mtu| *mtu != 0),
            promiscuous: self.promisc,
            all_multicast: self.allmulti,
            queue_length: self.queue_length,
        }
    }

    /// Keeps it, unless there is something already: an ADD that is repeated finds what the first has made.
    pub(super) fn keep(&self, file: &Path) -> Result<()> {
        if file.exists() {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(Error::of(
            Code::Other,
            "what the interface was like cannot be written",
        ))?;
        tortie_files::replace(file, text, SECRET).map_err(failed("written", file))
    }

    /// What is kept. A file that is none of this is as good as missing.
    pub(super) fn read(file: &Path) -> Result<Option<Self>> {
        match fs::read(file) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", file)(error)),
        }
    }

    pub(super) fn forget(file: &Path) -> Result<()> {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("removed", file)(error))
            }
            _ => Ok(()),
        }
    }
}

fn failed(doing: &str, file: &Path) -> impl FnOnce(io::Error) -> Error {
    Error::of(Code::Io, format!("{} cannot be {doing}", file.display()))
}
