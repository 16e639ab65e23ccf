//! This program once more, with the same arguments, in namespaces of its own: network, mounts and, without root, users.
//!
//! # Invariants
//! - The inner process ends with the outer one, however that ends, and the kernel removes what was made in the namespaces.

use std::io::{self, ErrorKind};
use std::os::unix::process::{ExitStatusExt as _, parent_id};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::time::timeout;
use tortie_kernel::namespace::{self, Users, is_root, isolate};

use super::until_signal;

/// Exit code of a program that was interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// Settings that keep users from having user namespaces: where, the value that does so, and what to do.
const HINDRANCES: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "sysctl user.max_user_namespaces=10000",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

/// The inner process, as its parent sees it.
pub(super) struct Isolated {
    child: Child,
    /// What it does, for messages.
    what: &'static str,
}

/// How the inner process ended.
pub(super) struct Ended {
    status: ExitStatus,
    /// Whether a signal to the outer process asked for it.
    pub(super) is_interrupted: bool,
    what: &'static str,
}

impl Isolated {
    /// Starts it: with root's rights if there are any, else among users of its own. `prepare` gives it its standard input
    /// and what it needs besides.
    pub(super) fn start(
        what: &'static str,
        prepare: impl Fn(&mut Command) -> io::Result<()>,
    ) -> Result<Self> {
        let spawn = |users| {
            let mut command = again(users);
            prepare(&mut command)?;
            isolate(&mut command, users);
            let mut command = tokio::process::Command::from(command);
            command.kill_on_drop(true).spawn()
        };
        if is_root() {
            match spawn(Users::Shared) {
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
                spawned => {
                    let child = spawned.with_context(|| format!("{what} cannot be started"))?;
                    return Ok(Self { child, what });
                }
            }
        }
        let child = spawn(Users::Own).map_err(|error| anyhow!(refusal(what, &error)))?;
        Ok(Self { child, what })
    }

    /// Waits until it ends. A signal to this process ends it, within a time of grace.
    pub(super) async fn end(mut self, grace: Duration) -> Result<Ended> {
        let ended = tokio::select! {
            status = self.child.wait() => Some(status?),
            () = until_signal()? => None,
        };
        let is_interrupted = ended.is_none();
        let status = match ended {
            Some(status) => status,
            None => self.interrupt(grace).await?,
        };
        Ok(Ended {
            status,
            is_interrupted,
            what: self.what,
        })
    }

    async fn interrupt(&mut self, grace: Duration) -> Result<ExitStatus> {
        let process = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(process) = process {
            // One that ended meanwhile is waited for below.
            let _ = kill_process(process, Signal::TERM);
        }
        if let Ok(status) = timeout(grace, self.child.wait()).await {
            return Ok(status?);
        }
        self.child.kill().await?;
        Ok(self.child.wait().await?)
    }
}

impl Ended {
    /// The exit code of the outer process: the inner one's, as far as that has a meaning.
    pub(super) fn exit_code(&self) -> Result<ExitCode> {
        match (self.status.code(), self.status.signal()) {
            (Some(0), _) => Ok(ExitCode::SUCCESS),
            (None, _) if self.is_interrupted => Ok(ExitCode::from(INTERRUPTED)),
            (Some(code), _) if code == i32::from(INTERRUPTED) => Ok(ExitCode::from(INTERRUPTED)),
            (None, Some(signal)) => bail!("{} was ended by signal {signal}", self.what),
            _ => Ok(ExitCode::FAILURE),
        }
    }
}

/// What the inner process does first: it ties itself to the outer one. Gives whether that is still there.
pub(super) fn begin(parent: u32) -> Result<bool> {
    namespace::end_with_parent()?;
    Ok(parent_id() == parent)
}

/// This program with its own arguments and the mark of the inner process.
fn again(users: Users) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(std::env::args_os().skip(1))
        .args(["--inside", &std::process::id().to_string()]);
    if users == Users::Own {
        command.arg("--own-users");
    }
    command
}

/// Why no namespaces can be made, and what to do about it.
fn refusal(what: &str, error: &io::Error) -> String {
    let hindrances: Vec<&str> = HINDRANCES
        .iter()
        .filter(|(file, value, _)| {
            std::fs::read_to_string(file).is_ok_and(|found| found.trim() == *value)
        })
        .map(|(_, _, remedy)| *remedy)
        .collect();
    let remedy = match hindrances[..] {
        [] => "the container or sandbox that it runs in may forbid it".to_owned(),
        _ => format!(
            "or let everybody make them: `{}`",
            hindrances.join("` and `")
        ),
    };
    format!(
        "{what} needs namespaces of its own, and this user may not make any ({error}): run it as root; {remedy}"
    )
}
