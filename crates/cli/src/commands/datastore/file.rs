//! `tortie datastore check`, `compact`, `backup` and `restore`: the file of the embedded datastore.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use tortie_client::connect::{DatastoreType, Target, environment};
use tortie_store::embedded;
use tortie_store::socket::{self, SocketStore};
use tortie_store::{Compacted, Store, Verified};

use crate::args::Global;
use crate::config::{find_target, open_target};

/// Checks every page and every object.
pub(super) async fn check(global: &Global) -> Result<ExitCode> {
    let target = target(global)?;
    let verified = match running(&target.data_file).await {
        Some(store) => store.verify().await?,
        None => embedded::verify(&target.data_file)?,
    };
    let Verified {
        objects,
        revision,
        problems,
    } = verified;
    for problem in &problems {
        writeln!(anstream::stderr(), "{problem}")?;
    }
    let file = target.data_file.display();
    if !problems.is_empty() {
        let count = problems.len();
        bail!("{file} has {count} problem(s); restore a backup with `tortie datastore restore`");
    }
    writeln!(
        std::io::stdout(),
        "{file} is whole: {objects} objects at revision {revision}"
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Gives back to the disk what is not used.
pub(super) async fn compact(global: &Global) -> Result<ExitCode> {
    let target = target(global)?;
    let Compacted { before, after } = match running(&target.data_file).await {
        Some(store) => store.compact().await?,
        None => embedded::compact(&target.data_file)?,
    };
    writeln!(
        std::io::stdout(),
        "{} takes {} of the disk, and took {}",
        target.data_file.display(),
        mib(after),
        mib(before)
    )?;
    Ok(ExitCode::SUCCESS)
}

fn mib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Writes a copy, as of one moment.
pub(super) async fn back_up(to: &Path, global: &Global) -> Result<ExitCode> {
    let target = target(global)?;
    if !target.data_file.exists() {
        bail!("there is no store {}", target.data_file.display());
    }
    // Perhaps another process writes it, in another folder.
    let to = std::path::absolute(to)?;
    let connection = open_target(&target).await?;
    connection.client.store().back_up(&to).await?;
    drop(connection);
    // What cannot be restored is no backup.
    let verified = tokio::task::spawn_blocking({
        let to = to.clone();
        move || embedded::verify(&to)
    });
    let Verified {
        objects, revision, ..
    } = verified.await??;
    writeln!(
        std::io::stdout(),
        "{} has {objects} objects at revision {revision}",
        to.display()
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Puts a copy in the place of the store.
pub(super) async fn restore(from: &Path, replace: bool, global: &Global) -> Result<ExitCode> {
    let target = target(global)?;
    let file = target.data_file;
    if running(&file).await.is_some() {
        bail!(
            "a tortie process has {} open; end it first (`tortie down`, or stop its service)",
            file.display()
        );
    }
    if file.exists() && !replace {
        bail!(
            "{} is there; with --replace it is replaced, and kept under another name",
            file.display()
        );
    }
    let kept = embedded::restore(from, &file, replace)?;
    let mut out = std::io::stdout();
    writeln!(out, "Restored {}", file.display())?;
    if let Some(kept) = kept {
        writeln!(out, "What was there is kept as {}", kept.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn target(global: &Global) -> Result<Target> {
    let target = find_target(global, &environment)?.pinned()?;
    if target.datastore != DatastoreType::Embedded {
        bail!("only the embedded datastore is a file; use the tools of etcd or Kubernetes");
    }
    Ok(target)
}

/// The process that has the store open, if there is one that serves it.
async fn running(file: &Path) -> Option<Arc<dyn Store>> {
    let socket = socket::path_beside(file);
    let store = SocketStore::connect(&socket).await.ok()?;
    Some(Arc::new(store))
}
