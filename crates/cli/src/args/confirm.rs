//! Arguments of `apply` and `confirm`.

use clap::Args;

use super::{DryRun, Files};

const APPLY_HELP: &str = "\
With --confirm, what was applied is rolled back unless it is confirmed in time, so that a policy that locks you out does
not do so for long: created resources are deleted again, changed ones get back what they were. A process of its own
sees to that, also when this one is killed or the connection to this machine is lost. Confirm with `tortie confirm`
from any shell of the same user, or by typing `yes` here. Ctrl-C rolls back at once, and so does a resource that could
not be applied. What somebody else changed in the meantime is reported and left as it is. After a reboot within the time,
the next tortie command of the same user that uses a datastore rolls back, and so does the start of `tortie up` or
`tortie agent` for what root applied.

Examples:
  tortie apply -f policies/
  tortie apply --dry-run -f policies/           what would be created, changed and refused
  tortie apply --confirm 60 -f policies/        and then, within a minute: tortie confirm

Exit code: 0 applied (and confirmed), 1 not all was applied, or it was rolled back and all is as it was before, 3 it could
not be rolled back, or not all is as it was before; what is not is named.";

const CONFIRM_HELP: &str = "\
Examples:
  tortie confirm                 keep what `tortie apply --confirm` applied
  tortie confirm --list          what waits for confirmation, or was not rolled back completely
  tortie confirm --roll-back     roll back now; also after a crash or a reboot

Exit code: 0 done, 1 there is nothing to confirm, or it could not be rolled back completely.";

/// Arguments of `apply`.
#[derive(Debug, Args)]
#[command(after_help = APPLY_HELP)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Roll back after so many seconds, unless that is confirmed before.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "by")]
    pub(crate) confirm: Option<u64>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

/// Arguments of `confirm`.
#[derive(Debug, Args)]
#[command(after_help = CONFIRM_HELP)]
pub(crate) struct Confirm {
    /// Which of them, where several wait.
    pub(crate) id: Option<String>,
    /// Show what waits.
    #[arg(long, conflicts_with_all = ["id", "roll_back"])]
    pub(crate) list: bool,
    /// Roll back instead.
    #[arg(long)]
    pub(crate) roll_back: bool,
    /// How the program calls itself to wait and to roll back.
    #[arg(long, hide = true, requires = "id", conflicts_with = "roll_back")]
    pub(crate) watch: bool,
}
