//! The watcher: a process of its own that waits, and rolls back unless that is confirmed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tortie_variables as variables;

use super::folder::{Folder, Role};
use super::pending::{Outcome, Pending, State};
use super::roll_back;

/// How often everybody looks whether something happened.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

/// What the watcher says once it watches.
const READY: &str = "watching";

/// The watcher as the process sees it that started it.
pub(super) struct Watcher {
    process: Child,
    /// Tells the watcher by its end that this process ended.
    _alive: Option<ChildStdin>,
}

impl Watcher {
    /// Starts a watcher; it watches when this returns.
    pub(super) fn start(folder: &Folder, pending: &Pending) -> Result<Self> {
        // The very program that runs, even where its file was replaced.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("tortie")
            .args(["confirm", &pending.id, "--watch"])
            .env(variables::XDG_STATE_HOME, folder.state())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().context("cannot start the watcher")?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        if line.trim_end() != READY {
            let status = process.wait()?;
            bail!("the watcher ended at once ({status})");
        }
        let alive = process.stdin.take();
        Ok(Self {
            process,
            _alive: alive,
        })
    }

    /// Whether it still runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

/// Watches until it is confirmed or rolled back.
pub(super) async fn run(folder: &Folder, id: &str) -> Result<ExitCode> {
    // Not a member of the terminal's session any more, so that nothing that happens to that ends this process. Fails
    // only for one that leads a session already.
    let _ = rustix::process::setsid();
    let _role = folder.hold(id, Role::Watcher)?;
    writeln!(std::io::stdout(), "{READY}")?;
    watch(folder, id).await?;
    Ok(ExitCode::SUCCESS)
}

async fn watch(folder: &Folder, id: &str) -> Result<()> {
    let is_alone = notice_end_of_parent();
    // By the clock that nobody sets.
    let mut deadline = None;
    let pending = loop {
        // Asked before the state, which the parent changes last.
        let was_alone = is_alone.load(Ordering::Acquire);
        let Some(pending) = folder.load(id)? else {
            return Ok(());
        };
        let is_due = match pending.state {
            State::Applying => was_alone || pending.roll_back_now,
            State::Waiting => {
                let deadline =
                    *deadline.get_or_insert_with(|| Instant::now() + pending.time_left());
                pending.roll_back_now || Instant::now() >= deadline
            }
            State::RollingBack | State::Failed => true,
            State::Confirmed | State::RolledBack => return Ok(()),
        };
        if is_due {
            break pending;
        }
        tokio::time::sleep(INTERVAL).await;
    };
    let begun = folder.change(id, |now| {
        // Perhaps at the last moment.
        let is_confirmed = now.state == State::Confirmed;
        if !is_confirmed {
            now.state = State::RollingBack;
            now.outcome = None;
        }
        !is_confirmed
    })?;
    if begun != Some(true) {
        return Ok(());
    }
    // What the parent noted last.
    let pending = folder.load(id)?.unwrap_or(pending);
    let outcome = roll_back::run(&pending).await;
    folder.change(id, |pending| finish(pending, outcome))?;
    Ok(())
}

fn finish(pending: &mut Pending, outcome: Outcome) {
    pending.state = match outcome.error {
        None => State::RolledBack,
        Some(_) => State::Failed,
    };
    pending.outcome = Some(outcome);
}

/// Becomes true when the process that started this one ends.
fn notice_end_of_parent() -> Arc<AtomicBool> {
    let is_alone = Arc::new(AtomicBool::new(false));
    let noticed = Arc::clone(&is_alone);
    std::thread::spawn(move || {
        let mut nothing = [0; 16];
        while matches!(std::io::stdin().read(&mut nothing), Ok(1..)) {}
        noticed.store(true, Ordering::Release);
    });
    is_alone
}
