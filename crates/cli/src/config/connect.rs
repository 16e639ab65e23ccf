//! Opens the datastore that the settings mean.

use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tortie_client::Client;
use tortie_client::connect::{
    Connection, DATA_FILE, Datastore, DatastoreType, ROOTS_FOLDER, Source, Target, environment,
    usual_folder,
};
use tortie_error::Causes;
use tortie_operator::Backoff;
use tortie_store::shared::Shared;

use super::find_target;
use super::waiting::waiting;
use crate::args::Global;

/// The pauses of those who wait for a datastore.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(500),
    most: Duration::from_secs(4),
    jitter: 0.2,
};

/// Opens the datastore; the error says which one was meant and why it cannot be used.
pub(crate) async fn connect(global: &Global) -> Result<Client> {
    Ok(open(global).await?.client)
}

/// The same for who is going to write. Where that is the embedded datastore it is said, since many people have several.
pub(crate) async fn connect_to_write(global: &Global) -> Result<Client> {
    Ok(open_to_write(global).await?.client)
}

/// The same, with the cluster.
pub(crate) async fn open_to_write(global: &Global) -> Result<Connection> {
    let target = find_target(global, &environment)?;
    if target.datastore == DatastoreType::Embedded {
        let file = target.data_file.display();
        writeln!(
            anstream::stderr(),
            "Writing to the embedded datastore {file}"
        )?;
    }
    open_target(&target).await
}

/// The same, with the cluster.
pub(crate) async fn open(global: &Global) -> Result<Connection> {
    open_target(&find_target(global, &environment)?).await
}

/// The same for a process that stays, where the variables are these: it waits for a datastore elsewhere that does not answer
/// yet.
pub(crate) async fn await_with(global: &Global, environment: Source<'_>) -> Result<Connection> {
    let target = find_target(global, environment)?;
    let mut failures = 0;
    loop {
        match open_target(&target).await {
            Err(error) if target.datastore != DatastoreType::Embedded && is_unavailable(&error) => {
                let pause = RETRY.after(failures);
                failures += 1;
                tracing::warn!(
                    error = %Causes(&*error),
                    retry_in = ?pause,
                    "The datastore does not answer; what is enforced stays as it is; trying again"
                );
                tokio::time::sleep(pause).await;
            }
            opened => return opened,
        }
    }
}

fn is_unavailable(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<tortie_store::Error>();
    error.is_some_and(tortie_store::Error::is_retryable)
}

/// Opens the datastore that was found before.
pub(crate) async fn open_target(target: &Target) -> Result<Connection> {
    tracing::debug!(?target.datastore, "Opening the datastore");
    let datastore = target.datastore()?;
    Ok(match &datastore {
        Datastore::Embedded(file) => {
            tell_of_roots(file)?;
            datastore.open().await?
        }
        Datastore::Etcd(_) => waiting("etcd", datastore.open()).await?,
        Datastore::Kubernetes(_) => waiting("Kubernetes", datastore.open()).await?,
    })
}

/// The cluster: that of the datastore, or else the one that the settings mean.
pub(crate) async fn cluster(
    of_datastore: Option<kube::Client>,
    global: &Global,
) -> Result<kube::Client> {
    if let Some(cluster) = of_datastore {
        return Ok(cluster);
    }
    let target = find_target(global, &environment)?;
    Ok(target.kubernetes()?.client().await?)
}

/// The embedded datastore, for who wants it as such.
pub(crate) async fn embedded(file: &Path, quota: u64) -> Result<Shared> {
    tell_of_roots(file)?;
    Ok(tortie_client::connect::embedded(file, quota).await?)
}

/// The file of the embedded datastore.
pub(crate) fn data_file(global: &Global) -> PathBuf {
    let file = global.data_file.clone();
    file.unwrap_or_else(|| data_folder(global).join(DATA_FILE))
}

/// Where everything of the embedded datastore is: the system's folder for root, the user's own for everybody else.
pub(crate) fn data_folder(global: &Global) -> PathBuf {
    if let Some(folder) = &global.data_dir {
        return folder.clone();
    }
    if let Some(folder) = global.data_file.as_deref().and_then(Path::parent) {
        return folder.to_owned();
    }
    usual_folder(&environment)
}

/// Makes such a folder, for its owner alone.
pub(crate) fn make_data_folder(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("the data folder {} cannot be made", folder.display()))
}

/// Tells users who are about to begin with a datastore of their own that root has one.
fn tell_of_roots(file: &Path) -> Result<()> {
    if rustix::process::geteuid().is_root() || file.exists() || !Path::new(ROOTS_FOLDER).exists() {
        return Ok(());
    }
    writeln!(
        anstream::stderr(),
        "note: root has a datastore on this machine, in {ROOTS_FOLDER}, which is for root alone (`sudo tortie …`); this is \
         one of your own"
    )?;
    Ok(())
}
