//! `tortie datastore`: keep everybody from changing anything, move the datastore from etcd to Kubernetes, and look after
//! the file of the embedded one.

mod addresses;
mod definitions;
mod dump;
mod export;
mod file;
mod import;
mod node_names;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use tortie_api::ClusterInformation;
use tortie_client::Client;
use tortie_client::connect::Connection;
use tortie_store::{Key, Kind, Resource};

use crate::args::{Datastore, DatastoreCommand, Global, MigrateCommand};
use crate::config::open;

pub(super) async fn run(args: Datastore, global: &Global) -> Result<ExitCode> {
    let migrate = match args.command {
        DatastoreCommand::Migrate(migrate) => migrate,
        DatastoreCommand::Check => return file::check(global).await,
        DatastoreCommand::Compact => return file::compact(global).await,
        DatastoreCommand::Backup { to } => return file::back_up(&to, global).await,
        DatastoreCommand::Restore { from, replace } => {
            return file::restore(&from, replace, global).await;
        }
    };
    let connection = open(global).await?;
    match migrate.command {
        MigrateCommand::Lock => set_ready(&connection, false, "Datastore locked.").await,
        MigrateCommand::Unlock => set_ready(&connection, true, "Datastore unlocked.").await,
        MigrateCommand::Export => export::run(&connection).await,
        MigrateCommand::Import { filename } => import::run(&connection, &filename).await,
    }
}

async fn set_ready(connection: &Connection, is_ready: bool, done: &str) -> Result<ExitCode> {
    let client = &connection.client;
    update_information(client, |information| {
        information.spec.datastore_ready = Some(is_ready);
    })
    .await?;
    writeln!(anstream::stdout(), "{done}")?;
    Ok(ExitCode::SUCCESS)
}

/// Changes what is said of the cluster.
async fn update_information(
    client: &Client,
    change: impl Fn(&mut ClusterInformation),
) -> Result<()> {
    let key = information_key();
    let written = client.modify(&key, |information: &mut ClusterInformation| {
        change(information);
        anyhow::Ok(())
    });
    written.await.map(drop)
}

async fn read_information(client: &Client) -> Result<ClusterInformation> {
    let key = information_key();
    match client.get(&key).await? {
        Resource::ClusterInformation(information) => Ok(*information),
        _ => bail!("{key} is something else"),
    }
}

fn information_key() -> Key {
    Key::global(Kind::ClusterInformation, "default")
}
