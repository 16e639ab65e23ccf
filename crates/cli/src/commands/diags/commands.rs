//! What programs say.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// How much of its output is read.
const MAX_OUTPUT: u64 = 64 << 20;

/// What a program writes. One that fails is an error only if it writes nothing.
pub(super) async fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    let command = command.args(arguments).stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let all = async { tokio::join!(read(stdout), read(stderr)) };
    let Ok((stdout, stderr)) = timeout(PATIENCE, all).await else {
        bail!("{program} did not end within {} s", PATIENCE.as_secs());
    };
    let (stdout, stderr) = (stdout?, stderr?);
    // One that goes on because nobody reads its output any more.
    let _ = child.start_kill();
    let status = child.wait().await?;
    if stdout.is_empty() && !status.success() && !stderr.is_empty() {
        bail!("{program}: {}", stderr.trim_end());
    }
    Ok(if stderr.is_empty() {
        stdout
    } else {
        format!("{stdout}\n--- standard error\n{stderr}")
    })
}

async fn read(from: Option<impl AsyncRead + Unpin>) -> Result<String> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(MAX_OUTPUT).read_to_end(&mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_and_errors_are_told() {
        let shell = |script| async move { output("sh", &["-c", script]).await };
        assert_eq!(shell("echo a").await.unwrap(), "a\n");
        let both = shell("echo a; echo b >&2; exit 1").await.unwrap();
        assert_eq!(both, "a\n\n--- standard error\nb\n");
        let failed = shell("echo b >&2; exit 1").await.unwrap_err();
        assert_eq!(failed.to_string(), "sh: b");
        let missing = output("/nonexistent", &[]).await.unwrap_err();
        assert_eq!(missing.to_string(), "cannot run /nonexistent");
    }
}
