//! Arguments of `edit`.

use clap::Args;

use crate::completion::{kinds, names};

const EXAMPLES: &str = "\
The editor is KUBE_EDITOR, VISUAL or EDITOR, or else vi. What cannot be stored is opened again, with what is wrong in comments at
its top. What was written is kept in a file where it is not stored in the end.

Examples:
  tortie edit np db -n shop
  EDITOR='code --wait' tortie edit ippool/default-ipv4-ippool

Exit code: 0 stored, or nothing was changed, 1 not stored.";

/// Arguments of `edit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Edit {
    /// Kind of the resource; or KIND/NAME.
    #[arg(add = kinds())]
    pub(crate) kind: String,
    /// Name of the resource.
    #[arg(add = names())]
    pub(crate) name: Option<String>,
    /// Namespace [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}
