//! A `tortie up` that runs, as other commands find it.

use std::fs::read;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::PROCESS_FILE;

/// How long the process may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A `tortie up` that runs, or a `tortie demo` that is kept.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Process(Pid);

impl Process {
    /// The one that a data folder is of.
    pub(in crate::commands) fn find(folder: &Path) -> Result<Option<Self>> {
        let file = folder.join(PROCESS_FILE);
        let Ok(text) = std::fs::read_to_string(&file) else {
            return Ok(None);
        };
        let process = text.trim().parse().ok().and_then(Pid::from_raw);
        let process = process
            .with_context(|| format!("{} holds no process number: {text:?}", file.display()))?;
        Ok(Some(Self(process)).filter(|process| process.is_up()))
    }

    pub(in crate::commands) fn id(self) -> u32 {
        self.0.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether it has a network to itself, which goes with it.
    pub(in crate::commands) fn has_own_network(self) -> bool {
        self.has_word(|word| word == b"--inside")
    }

    /// Ends it, and waits until it has.
    pub(in crate::commands) async fn end(self) -> Result<()> {
        let number = self.id();
        kill_process(self.0, Signal::TERM).with_context(|| format!("ending process {number}"))?;
        let start = Instant::now();
        while test_kill_process(self.0).is_ok() && self.is_up() {
            if start.elapsed() > PATIENCE {
                bail!(
                    "process {number} has not ended within {} s; nothing was removed",
                    PATIENCE.as_secs()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Whether it is one of ours: numbers are given again after a restart of the machine.
    fn is_up(self) -> bool {
        self.has_word(|word| word == b"up" || word == b"demo")
    }

    /// Whether its command line has such a word.
    fn has_word(self, is_such: impl Fn(&[u8]) -> bool) -> bool {
        let line = read(format!("/proc/{}/cmdline", self.id())).unwrap_or_default();
        line.split(|byte| *byte == 0).skip(1).any(is_such)
    }
}
