//! Arguments of `datastore`.

use clap::{Args, Subcommand};

const LOCK_HELP: &str = "\
While the datastore is locked, container runtimes get no new pods connected, and agents keep enforcing what they know.

Examples:
  tortie datastore migrate lock
  tortie ipam check -o report.json && tortie ipam release --from-report report.json
  tortie datastore migrate unlock";

/// Arguments of `datastore`.
#[derive(Debug, Args)]
pub(crate) struct Datastore {
    #[command(subcommand)]
    pub(crate) command: DatastoreCommand,
}

/// What to do with the datastore.
#[derive(Debug, Subcommand)]
pub(crate) enum DatastoreCommand {
    /// Prepare changes to the datastore as a whole.
    Migrate(Migrate),
}

/// Arguments of `datastore migrate`.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(subcommand)]
    pub(crate) command: MigrateCommand,
}

/// Steps of a migration.
#[derive(Debug, Subcommand)]
pub(crate) enum MigrateCommand {
    /// Keep nodes and runtimes from changing the datastore.
    #[command(after_help = LOCK_HELP)]
    Lock,
    /// Let nodes and runtimes change the datastore again.
    #[command(after_help = LOCK_HELP)]
    Unlock,
}
