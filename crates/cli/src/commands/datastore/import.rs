//! `tortie datastore migrate import`
//!
//! Everything is read and checked before anything is written. The first write locks the datastore and notes the digest of
//! the file; the last one removes the note. An import that stops in between is found by the note and can be run again.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest as _, Sha256};
use tortie_api::k8s::is_kubernetes_policy;
use tortie_api::tier::BUILT_IN;
use tortie_api::{ClusterInformation, Kind, Resource};
use tortie_client::connect::{Backend, Connection};
use tortie_client::{Client, retry_conflicts};
use tortie_store::{Error, Key, Query, Store};

use super::definitions;
use super::dump::{Dump, KINDS};
use super::{information_key, read_information, update_information};
use crate::commands::report;

/// The note that an import has begun, with the digest of its file.
const IMPORTING: &str = "projectcalico.org/importing";

/// How many objects are written at the same time.
const IN_FLIGHT: usize = 32;

/// What could not be written.
struct Failed {
    key: Key,
    error: Error,
}

pub(super) async fn run(connection: &Connection, filename: &Path) -> Result<ExitCode> {
    let (cluster, group) = match (&connection.cluster, &connection.backend) {
        (Some(cluster), Backend::Kubernetes(store)) => (cluster, store.group()),
        (_, Backend::Etcd(_)) => refuse("etcdv3")?,
        _ => refuse("embedded")?,
    };
    let text = read_file(filename)?;
    let file = filename.display().to_string();
    let dump = Dump::parse(&file, &text)?;
    let addresses = dump.addresses.to_resources()?;
    let digest = digest(&text);

    definitions::install(cluster, group)
        .await
        .context("error applying the CRDs necessary to begin datastore import")?;
    let client = &connection.client;
    begin(client, &digest).await?;
    client
        .ensure_initialized("", "")
        .await
        .context("unable to initialize cluster information for the datastore migration")?;

    let total = dump.resources.len();
    let (skipped, failed) = write_resources(client, dump.resources).await;
    for key in &skipped {
        writeln!(
            anstream::stderr(),
            "[WARNING] Attempted to import node {key} from etcd that references a nonexistent Kubernetes node. Skipping that node. Non-Kubernetes nodes are not supported in the Kubernetes datastore and will be skipped."
        )?;
    }
    finish_part("resource", total - skipped.len(), &failed)?;

    let mut out = anstream::stdout();
    writeln!(out, "Importing IPAM resources")?;
    let total = addresses.len();
    let failed = write_addresses(&**client.store(), addresses).await;
    finish_part("IPAM resource", total, &failed)?;

    update_information(client, |information| {
        information
            .spec
            .cluster_guid
            .clone_from(&dump.information.spec.cluster_guid);
        information
            .spec
            .calico_version
            .clone_from(&dump.information.spec.calico_version);
        information.metadata.annotations.remove(IMPORTING);
    })
    .await
    .context("failed to update cluster information")?;
    writeln!(
        out,
        "Datastore information successfully imported. Please refer to the datastore migration documentation for next steps."
    )?;
    Ok(ExitCode::SUCCESS)
}

fn refuse<T>(found: &str) -> Result<T> {
    bail!(
        "invalid datastore type: {found} to import to for datastore migration. Datastore type must be kubernetes"
    )
}

/// Tells one file from another.
fn digest(text: &str) -> String {
    let mut digest = String::new();
    for byte in Sha256::digest(text) {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

fn read_file(filename: &Path) -> Result<String> {
    let mut text = String::new();
    if filename == Path::new("-") {
        let read = std::io::stdin().read_to_string(&mut text);
        read.context("cannot read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(filename).with_context(|| format!("cannot read {}", filename.display()))
}

/// Makes sure that there is nothing in the way, locks the datastore and notes that an import has begun; or finds that this
/// was done before for the same file.
async fn begin(client: &Client, digest: &str) -> Result<()> {
    match read_information(client).await {
        Ok(information) => {
            let begun = information.metadata.annotations.get(IMPORTING);
            return match begun.map(String::as_str) {
                Some(begun) if begun == digest => {
                    writeln!(
                        anstream::stderr(),
                        "An earlier import of this file did not come to its end; going on."
                    )?;
                    lock(client).await
                }
                Some(_) => bail!(
                    "the import of another file did not come to its end. Run it again, or clear out all Calico resources by deleting all Calico CRDs"
                ),
                None => occupied(&information_key()),
            };
        }
        Err(error) => match error.downcast_ref() {
            Some(Error::NotFound(_)) => {}
            _ => return Err(error),
        },
    }
    for kind in KINDS.into_iter().chain([
        Kind::IpamBlock,
        Kind::BlockAffinity,
        Kind::IpamHandle,
        Kind::IpamConfiguration,
    ]) {
        let list = client.store().list(&Query::all(kind)).await?;
        let keys = list.items.iter().map(Key::of);
        let unreadable = list.invalid.into_iter().map(|invalid| invalid.key);
        if let Some(key) = keys.chain(unreadable).find(is_in_the_way) {
            return occupied(&key);
        }
    }
    let mut information = ClusterInformation::default();
    "default".clone_into(&mut information.metadata.name);
    information.spec.datastore_ready = Some(false);
    let annotations = &mut information.metadata.annotations;
    annotations.insert(IMPORTING.to_owned(), digest.to_owned());
    client.store().create(information.into()).await?;
    Ok(())
}

async fn lock(client: &Client) -> Result<()> {
    update_information(client, |information| {
        information.spec.datastore_ready = Some(false);
    })
    .await
}

fn occupied(key: &Key) -> Result<()> {
    bail!(
        "datastore already has Calico resources: found {key}. Clear out all Calico resources by deleting all Calico CRDs"
    )
}

/// Whether an object is one that only Calico's users make.
fn is_in_the_way(key: &Key) -> bool {
    match key.kind {
        Kind::Node => false,
        Kind::Tier => !BUILT_IN.iter().any(|(name, ..)| *name == key.name),
        kind => !is_kubernetes_policy(kind, &key.name),
    }
}

/// Gives the nodes that Kubernetes does not know, and what could not be written. What others refer to goes first.
async fn write_resources(client: &Client, resources: Vec<Resource>) -> (Vec<Key>, Vec<Failed>) {
    let comes_first = |resource: &Resource| {
        let kind = resource.kind();
        matches!(
            kind,
            Kind::Tier | Kind::BgpFilter | Kind::IpPool | Kind::Node
        )
    };
    let progress = progress(resources.len());
    let (first, rest): (Vec<_>, Vec<_>) = resources.into_iter().partition(comes_first);
    let (mut skipped, mut failed) = (Vec::new(), Vec::new());
    for (resources, in_flight) in [(first, 1), (rest, IN_FLIGHT)] {
        let writes = resources.into_iter().map(|resource| async {
            let key = Key::of(&resource);
            (key, client.apply(resource).await)
        });
        let mut writes = futures::stream::iter(writes).buffered(in_flight);
        while let Some((key, written)) = writes.next().await {
            progress.inc(1);
            match written {
                Ok(_) => {}
                // Nodes cannot be created there.
                Err(Error::NotFound(_) | Error::Unsupported { .. }) if key.kind == Kind::Node => {
                    skipped.push(key);
                }
                Err(error) => failed.push(Failed { key, error }),
            }
        }
    }
    progress.finish_and_clear();
    (skipped, failed)
}

async fn write_addresses(store: &dyn Store, resources: Vec<Resource>) -> Vec<Failed> {
    let progress = progress(resources.len());
    let writes = resources.into_iter().map(|resource| async move {
        let key = Key::of(&resource);
        (key, put(store, resource).await)
    });
    let mut writes = futures::stream::iter(writes).buffered(IN_FLIGHT);
    let mut failed = Vec::new();
    while let Some((key, written)) = writes.next().await {
        progress.inc(1);
        if let Err(error) = written {
            failed.push(Failed { key, error });
        }
    }
    progress.finish_and_clear();
    failed
}

/// Stores an object, whatever an earlier attempt stored in its place.
async fn put(store: &dyn Store, resource: Resource) -> Result<(), Error> {
    let key = Key::of(&resource);
    let is_race = |error: &Error| error.is_conflict() || matches!(error, Error::NotFound(_));
    let written = retry_conflicts(is_race, || async {
        match store.create(resource.clone()).await {
            Err(Error::AlreadyExists(_)) => {}
            written => return written,
        }
        let mut resource = resource.clone();
        let found = store.get(&key).await?;
        let revision = &found.metadata().resource_version;
        resource
            .metadata_mut()
            .resource_version
            .clone_from(revision);
        store.update(resource).await
    });
    written.await.map(drop)
}

/// Says how a part went; an error if anything is missing.
fn finish_part(what: &str, total: usize, failed: &[Failed]) -> Result<()> {
    if failed.is_empty() {
        writeln!(anstream::stdout(), "Successfully applied {total} {what}(s)")?;
        return Ok(());
    }
    for Failed { key, error } in failed {
        writeln!(
            anstream::stderr(),
            "{}",
            report::store_error(&key.to_string(), error)
        )?;
    }
    let done = total - failed.len();
    bail!(
        "applied {done} out of {total} {what}s. The datastore stays locked. Remove the cause and run the import again with the same file: it goes on where it stopped"
    )
}

/// Shown on a terminal only.
fn progress(total: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}");
    let bar = ProgressBar::new(total as u64);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
