//! A machine of a test's own, and users of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Error as IoError};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::{Result, cannot};

/// A number that nobody has who matters.
const NOBODY: &str = "65534";

/// Mounts, files under `/run` and `/var/lib`, and a network of a test's own with nothing but a loopback interface, so that
/// what is found there is the test's and nobody else's.
///
/// A process holds it, and ends at the end of its input: also where the test is killed.
#[derive(Debug)]
pub struct Machine {
    holder: Child,
    input: Option<ChildStdin>,
}

/// Who runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Root, as whom tests run.
    Root,
    /// Somebody without any rights.
    Nobody,
}

impl Machine {
    /// Makes one. Needs root.
    pub fn new() -> Result<Self> {
        // Namespaces that others have given names to are unmounted here only.
        let script = "umount --all --types nsfs && mount -t tmpfs none /run && mount -t tmpfs none /var/lib \
                      && ip link set lo up && echo ready && exec cat";
        let failed = || cannot("make a machine of a test's own");
        let mut holder = Command::new("unshare")
            .args(["--mount", "--net", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed())?;
        let input = holder.stdin.take();
        let stdout = holder.stdout.take();
        let machine = Self { holder, input };
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(failed())?;
        }
        if line != "ready\n" {
            return Err(failed()(IoError::other("it did not become ready")));
        }
        Ok(machine)
    }

    /// The process that holds it.
    pub fn holder(&self) -> u32 {
        self.holder.id()
    }

    /// A program that runs there. It has the process id of what is started.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let holder = self.holder.id().to_string();
        command.args(["--target", &holder, "--mount", "--net", program]);
        command
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.holder.wait();
    }
}

impl User {
    /// What a command line begins with to be run by this user.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::Root => &[],
            Self::Nobody => &[
                "setpriv",
                "--reuid",
                NOBODY,
                "--regid",
                NOBODY,
                "--clear-groups",
            ],
        }
    }
}

/// All processes whose command line has these words one after the other.
pub fn processes_with(words: &[&str]) -> Vec<u32> {
    let mark = format!("\0{}\0", words.join("\0"));
    let has_them = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&mark)
    };
    all_processes().into_iter().filter(has_them).collect()
}

pub fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}
