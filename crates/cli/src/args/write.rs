//! Arguments of the commands that write many resources at once.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::completion::{kinds, names};

/// Files to read.
#[derive(Debug, Clone, Args)]
pub(crate) struct Files {
    /// File, folder, or `-` for standard input; may be given several times.
    #[arg(short, long = "filename", value_name = "PATH", required = true)]
    pub(crate) filename: Vec<PathBuf>,
    /// Read folders with all their subfolders.
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Files without any resource are no error.
    #[arg(long)]
    pub(crate) skip_empty: bool,
    /// Namespace of resources that name none [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

/// Arguments of `replace`.
#[derive(Debug, Args)]
pub(crate) struct Replace {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

/// Arguments of `create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Resources that exist already are no error.
    #[arg(long)]
    pub(crate) skip_exists: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

/// Arguments of `delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Kind of the resources.
    #[arg(add = kinds())]
    pub(crate) kind: Option<String>,
    /// Names of the resources.
    #[arg(add = names())]
    pub(crate) names: Vec<String>,
    /// Remove the resources that these files name.
    #[arg(
        short,
        long = "filename",
        value_name = "PATH",
        conflicts_with = "kind",
        required_unless_present = "kind"
    )]
    pub(crate) filename: Vec<PathBuf>,
    /// Read folders with all their subfolders.
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Files without any resource are no error.
    #[arg(long)]
    pub(crate) skip_empty: bool,
    /// Resources that do not exist are no error.
    #[arg(short = 's', long)]
    pub(crate) skip_not_exists: bool,
    /// Namespace [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

/// Whether nothing is to be written.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DryRun {
    /// Write nothing, and say what would be done [default without a value: server].
    #[arg(
        long = "dry-run",
        value_name = "BY",
        default_value = "none",
        default_missing_value = "server",
        num_args = 0..=1,
        require_equals = true,
        hide_default_value = true
    )]
    pub(crate) by: DryRunBy,
}

/// Who says what would be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRunBy {
    /// It is done.
    None,
    /// The resources are checked by themselves; no datastore is asked.
    Client,
    /// What the datastore holds is taken into account.
    Server,
}
