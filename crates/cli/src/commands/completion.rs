//! `tortie completion`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap_complete::env::Shells;

use crate::args::Completion;
use crate::completion::VARIABLE;

/// What the program is called in a shell.
const NAME: &str = "tortie";

/// Prints what a shell is told once: it asks the program itself from then on.
pub(super) fn run(args: &Completion) -> Result<ExitCode> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell);
    let completer = completer.with_context(|| format!("there is no completion for {shell}"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    anstream::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
