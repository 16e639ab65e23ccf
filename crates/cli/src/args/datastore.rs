//! Arguments of `datastore`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const LOCK_HELP: &str = "\
While the datastore is locked, container runtimes get no new pods connected, and agents keep enforcing what they know.

Examples:
  tortie datastore migrate lock
  tortie ipam check -o report.json && tortie ipam release --from-report report.json
  tortie datastore migrate unlock";

const EXPORT_HELP: &str = "\
The datastore must be etcd, and locked, so that nothing changes meanwhile. Profiles, endpoints of workloads and what comes
from Kubernetes' own policies are left out: Kubernetes has them. Nodes get the names that Kubernetes knows them by.

Examples, with ETCD_ENDPOINTS set for the first two, and KUBECONFIG for the others:
  tortie datastore migrate lock
  tortie datastore migrate export > cluster.export
  tortie datastore migrate import -f cluster.export
  tortie datastore migrate unlock";

const IMPORT_HELP: &str = "\
The datastore must be Kubernetes. The definitions of Calico's resources are installed if they are not there. There must be no
Calico resources yet, unless they are of an import of the same file that did not come to its end: then it goes on. The whole
file is checked before anything is written, and the datastore stays locked until it is unlocked.

Examples:
  tortie datastore migrate import -f cluster.export
  CALICO_API_GROUP=projectcalico.org/v3 tortie datastore migrate import -f cluster.export
  tortie datastore migrate unlock                     once agents and controllers use the new datastore";

const CHECK_HELP: &str = "\
Checks every page and every object of the embedded datastore. Where `tortie up` runs, it does so, and what others ask of it
waits meanwhile: about a second for each 100 MB.

Examples:
  tortie datastore check
  tortie datastore check --data-dir /srv/tortie

Exit code: 0 all is well, 1 something is damaged, or could not be checked.";

const BACKUP_HELP: &str = "\
Writes all of the embedded datastore as of one moment, also while `tortie up` runs, to a new file that only its owner can read.
Certificates and the token beside the store are not part of it.

Examples:
  tortie datastore backup /var/backups/tortie-monday.redb
  tortie datastore restore /var/backups/tortie-monday.redb --replace";

const COMPACT_HELP: &str = "\
Gives what the file of the embedded datastore no longer uses back to the disk. Where `tortie up` runs, it does so; reads and
writes wait meanwhile, and lists that are read in pages begin anew. By itself this happens only when the quota is reached.

Examples:
  tortie datastore compact
  tortie datastore compact --data-dir /srv/tortie";

const RESTORE_HELP: &str = "\
No process may have the store open. The backup is checked first; a store that is there is replaced only with --replace, and
kept under another name beside it.

Examples:
  tortie down && tortie datastore restore /var/backups/tortie-monday.redb --replace && tortie up";

/// Arguments of `datastore`.
#[derive(Debug, Args)]
pub(crate) struct Datastore {
    #[command(subcommand)]
    pub(crate) command: DatastoreCommand,
}

/// What to do with the datastore.
#[derive(Debug, Subcommand)]
pub(crate) enum DatastoreCommand {
    /// Prepare changes to the datastore as a whole, or move it from etcd to Kubernetes.
    Migrate(Migrate),
    /// Check the file of the embedded datastore.
    #[command(after_help = CHECK_HELP)]
    Check,
    /// Give back to the disk what the embedded datastore does not use.
    #[command(after_help = COMPACT_HELP)]
    Compact,
    /// Copy the embedded datastore to a file.
    #[command(after_help = BACKUP_HELP)]
    Backup {
        /// The new file.
        #[arg(value_name = "FILE")]
        to: PathBuf,
    },
    /// Put a backup in the place of the embedded datastore.
    #[command(after_help = RESTORE_HELP)]
    Restore {
        /// The backup.
        #[arg(value_name = "FILE")]
        from: PathBuf,
        /// Replace the store that is there.
        #[arg(long)]
        replace: bool,
    },
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
    /// Print everything in an etcd datastore, for import into Kubernetes.
    #[command(after_help = EXPORT_HELP)]
    Export,
    /// Put what was exported from etcd into Kubernetes.
    #[command(after_help = IMPORT_HELP)]
    Import {
        /// What export printed; `-` for standard input.
        #[arg(short, long, value_name = "FILE")]
        filename: PathBuf,
    },
}
