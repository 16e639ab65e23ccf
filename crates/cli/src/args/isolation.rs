//! How the program calls itself in namespaces of its own.

use clap::Args;

/// How the program calls itself in namespaces of its own.
#[derive(Debug, Args)]
pub(crate) struct Inside {
    /// The process that did so.
    #[arg(long = "inside", hide = true, value_name = "PID")]
    pub(crate) parent: Option<u32>,
    /// Whether it is root among users of its own there.
    #[arg(long, hide = true, requires = "parent")]
    pub(crate) own_users: bool,
}
