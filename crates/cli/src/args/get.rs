//! Arguments of `get`.

use std::path::PathBuf;

use clap::Args;

use crate::completion::{kinds, names};

const GET_HELP: &str = "\
Output forms:
  ps (default), wide    tables with the columns that calicoctl shows
  yaml, json            whole resources; can be applied again
  name                  kind/name, one a line
  custom-columns=…      headings of the table (NAME,ORDER), or HEADING:.json.path pairs
  jsonpath=TEMPLATE     as kubectl: '{.items[*].metadata.name}', '{range .items[*]}{.metadata.name}{\"\\n\"}{end}'
Go templates (go-template, go-template-file) are not there; jsonpath or custom-columns do the same.

`tortie get all` shows every kind but blocks, handles and affinities of address management.

Examples:
  tortie get nodes
  tortie get gnp deny-all -o yaml
  tortie get ippool -o custom-columns=NAME,CIDR
  tortie get pol -A --watch                       a row for each policy that changes, until Ctrl-C
  tortie get pol -A -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}'";

/// Arguments of `get`.
#[derive(Debug, Args)]
#[command(after_help = GET_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Get {
    /// Kind of the resources: a name, plural or short name such as `np`; KIND/NAME; or `all`.
    #[arg(add = kinds())]
    pub(crate) kind: Option<String>,
    /// Names; all resources of the kind if none is given.
    #[arg(add = names())]
    pub(crate) names: Vec<String>,
    /// Show the resources that these files name.
    #[arg(short, long = "filename", value_name = "PATH", conflicts_with = "kind")]
    pub(crate) filename: Vec<PathBuf>,
    /// Read folders with all their subfolders.
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Output form; see below.
    #[arg(short, long, value_name = "FORM", default_value = "ps")]
    pub(crate) output: String,
    /// Namespace [default: default].
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,
    /// All namespaces.
    #[arg(short = 'A', long, short_alias = 'a')]
    pub(crate) all_namespaces: bool,
    /// Leave out what belongs to this very cluster: UID, revision and timestamps.
    #[arg(long)]
    pub(crate) export: bool,
    /// Go on with what changes, until Ctrl-C; of a resource that is deleted, the last state.
    #[arg(short, long, conflicts_with_all = ["filename", "export"])]
    pub(crate) watch: bool,
    /// Say of each what happened to it: ADDED, MODIFIED or DELETED.
    #[arg(long, requires = "watch")]
    pub(crate) output_watch_events: bool,
}
