//! `tortie datastore migrate lock` and `unlock`: keep everybody from changing anything meanwhile.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use tortie_store::{Error, Key, Kind, Resource};

use crate::args::{Datastore, DatastoreCommand, Global, MigrateCommand};
use crate::config::{Connection, open};

/// How often the lock is written that others came before.
const ATTEMPTS: usize = 10;

pub(super) async fn run(args: Datastore, global: &Global) -> Result<ExitCode> {
    let DatastoreCommand::Migrate(migrate) = args.command;
    let (is_ready, done) = match migrate.command {
        MigrateCommand::Lock => (false, "Datastore locked."),
        MigrateCommand::Unlock => (true, "Datastore unlocked."),
    };
    let Connection { client, .. } = open(global).await?;
    let key = Key::global(Kind::ClusterInformation, "default");
    for _ in 0..ATTEMPTS {
        let Resource::ClusterInformation(mut information) = client.get(&key).await? else {
            bail!("{key} is something else");
        };
        information.spec.datastore_ready = Some(is_ready);
        match client.store().update((*information).into()).await {
            Ok(_) => {
                writeln!(anstream::stdout(), "{done}")?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(Error::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!("{key} kept changing; try again")
}
