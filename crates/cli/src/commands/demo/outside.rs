//! The process that a user starts: it starts the demo in namespaces, waits for it, and ends it when it is interrupted.

use std::io::{ErrorKind, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tortie_kernel::namespace::{Users, is_root, isolate};

use super::INTERRUPTED;
use crate::args::{Demo, DemoDataplane, DemoOutput, Global};

/// How long the demo may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

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

pub(super) async fn run(args: &Demo, global: &Global) -> Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut child = start(args, global)?;
    // As long as this is open, the demo goes on.
    let input = child.stdin.take();
    let ended = tokio::select! {
        status = child.wait() => Some(status?),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    let is_interrupted = ended.is_none();
    let status = if let Some(status) = ended {
        status
    } else {
        drop(input);
        end(&mut child).await?
    };
    if is_interrupted {
        writeln!(anstream::stderr(), "\nStopped; everything is gone again.")?;
    } else if args.output == DemoOutput::Text {
        writeln!(anstream::stdout(), "Everything is gone again.")?;
    }
    exit_code(status, is_interrupted)
}

/// The program's own exit code: the demo's, as far as that has a meaning.
fn exit_code(status: ExitStatus, is_interrupted: bool) -> Result<ExitCode> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(ExitCode::SUCCESS),
        (None, _) if is_interrupted => Ok(ExitCode::from(INTERRUPTED)),
        (Some(code), _) if code == i32::from(INTERRUPTED) => Ok(ExitCode::from(INTERRUPTED)),
        (None, Some(signal)) => bail!("the demo was ended by signal {signal}"),
        _ => Ok(ExitCode::FAILURE),
    }
}

/// Waits for a demo that was told to end.
async fn end(child: &mut Child) -> Result<ExitStatus> {
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return Ok(status?);
    }
    child.kill().await?;
    Ok(child.wait().await?)
}

/// Starts the demo: with root's rights if there are any, else among users of its own.
fn start(args: &Demo, global: &Global) -> Result<Child> {
    let spawn = |users| {
        let mut command = command(args, global, users);
        isolate(&mut command, users);
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true).spawn()
    };
    if is_root() {
        match spawn(Users::Shared) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            spawned => return spawned.context("the demo cannot be started"),
        }
    }
    spawn(Users::Own).map_err(|error| anyhow!(refusal(&error)))
}

fn command(args: &Demo, global: &Global, users: Users) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("demo")
        .args(["--inside", &std::process::id().to_string()])
        .args(["--log-level", &global.log_level])
        .stdin(Stdio::piped());
    let dataplane = match args.dataplane {
        DemoDataplane::Nftables => "nftables",
        DemoDataplane::Iptables => "iptables",
    };
    let output = match args.output {
        DemoOutput::Text => "text",
        DemoOutput::Json => "json",
    };
    command.args(["--dataplane", dataplane, "--output", output]);
    let flags = [
        (users == Users::Own, "--own-users"),
        (args.ipv6, "--ipv6"),
        (args.keep, "--keep"),
        (args.no_color, "--no-color"),
    ];
    command.args(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag));
    command
}

/// Why no namespaces can be made, and what to do about it.
fn refusal(error: &std::io::Error) -> String {
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
        "the demo needs namespaces of its own, and this user may not make any ({error}): run it as root; {remedy}"
    )
}
