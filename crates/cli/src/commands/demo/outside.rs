//! The process that a user starts: it starts the demo in namespaces, waits for it, and ends it when it is interrupted.

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tortie_client::connect::DATA_FOLDER_VARIABLE;

use crate::args::{Demo, DemoOutput};
use crate::commands::isolation::Isolated;

/// How long the demo may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// Where the API server of a demo that is kept listens: on any free port of this machine.
const LISTEN: &str = "127.0.0.1:0";

pub(super) async fn run(args: &Demo) -> Result<ExitCode> {
    let kept = args.keep.then(Kept::new).transpose()?;
    let demo = Isolated::start("the demo", |command| {
        command.stdin(Stdio::null());
        if let Some(Kept { folder, listener }) = &kept {
            command
                .env(DATA_FOLDER_VARIABLE, folder)
                .stdin(OwnedFd::from(listener.try_clone()?));
        }
        Ok(())
    })?;
    let ended = demo.end(GRACE).await?;
    drop(kept);
    if ended.is_interrupted {
        writeln!(anstream::stderr(), "\nStopped; everything is gone again.")?;
    } else if args.output == DemoOutput::Text {
        writeln!(anstream::stdout(), "Everything is gone again.")?;
    }
    ended.exit_code()
}

/// What a demo that is kept has outside of its namespaces, so that others reach it.
struct Kept {
    folder: PathBuf,
    listener: TcpListener,
}

impl Kept {
    fn new() -> Result<Self> {
        let name = format!("tortie-demo-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.with_context(|| format!("the folder {} cannot be made", folder.display()))?;
        let listener = TcpListener::bind(LISTEN);
        let listener = listener.with_context(|| format!("cannot listen on {LISTEN}"))?;
        Ok(Self { folder, listener })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
