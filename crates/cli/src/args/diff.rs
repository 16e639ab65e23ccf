//! Arguments of `diff`.

use clap::Args;

use super::Files;

/// Exit code where it could not be told what differs.
pub(crate) const TROUBLE: u8 = 2;

const EXAMPLES: &str = "\
Shows, as a unified diff of YAML, what is stored and what would be stored after `apply`, with defaults. What belongs to this
very cluster (UID, revision, timestamps) is left out.

Examples:
  tortie diff -f policies/
  tortie diff -f policy.yaml && echo nothing to do

Exit code: 0 nothing would change, 1 something would, 2 it could not be told.";

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) files: Files,
}
