//! The file that `check-status` reads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tortie_error::Causes;

/// What is known of the process, and the file that says so.
#[derive(Debug)]
pub(crate) struct Status {
    file: PathBuf,
    readiness: Mutex<Readiness>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Readiness {
    readiness: BTreeMap<&'static str, Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Condition {
    ready: bool,
    reason: String,
}

impl Status {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self {
            file,
            readiness: Mutex::default(),
        }
    }

    /// Notes a condition, and writes the file if that is news.
    pub(crate) fn set(&self, name: &'static str, ready: bool, reason: &str) {
        let condition = Condition {
            ready,
            reason: reason.to_owned(),
        };
        let mut state = self.lock();
        if state.readiness.get(name) == Some(&condition) {
            return;
        }
        state.readiness.insert(name, condition);
        let json = serde_json::to_vec(&*state).unwrap_or_default();
        if let Some(folder) = self.file.parent() {
            // The write that follows says what is wrong.
            let _ = std::fs::create_dir_all(folder);
        }
        if let Err(error) = std::fs::write(&self.file, json) {
            let file = self.file.display();
            tracing::warn!(%file, error = %Causes(&error), "Failed to write status");
        }
    }

    /// Forgets a condition that is no longer looked at.
    pub(crate) fn forget(&self, name: &'static str) {
        self.lock().readiness.remove(name);
    }

    /// Whether all is well, and something is known at all.
    pub(crate) fn is_ready(&self) -> bool {
        let state = self.lock();
        !state.readiness.is_empty() && state.readiness.values().all(|condition| condition.ready)
    }

    /// A line for each condition.
    pub(crate) fn report(&self) -> String {
        let state = self.lock();
        let lines = state.readiness.iter().map(|(name, condition)| {
            let ready = if condition.ready {
                "ready"
            } else {
                "not ready"
            };
            match condition.reason.as_str() {
                "" => format!("{name}: {ready}\n"),
                reason => format!("{name}: {ready}: {reason}\n"),
            }
        });
        lines.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Readiness> {
        self.readiness
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_calicos_probe_reads() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/status.json");
        let status = Status::new(file.clone());
        assert!(!status.is_ready(), "nothing is known yet");
        status.set("Startup", true, "");
        assert!(status.is_ready());
        status.set("CalicoDatastore", false, "gone");
        assert!(!status.is_ready());
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            r#"{"Readiness":{"CalicoDatastore":{"Ready":false,"Reason":"gone"},"Startup":{"Ready":true,"Reason":""}}}"#
        );
        assert_eq!(
            status.report(),
            "CalicoDatastore: not ready: gone\nStartup: ready\n"
        );
        status.forget("CalicoDatastore");
        assert!(status.is_ready());
    }
}
