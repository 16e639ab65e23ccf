//! `tortie completion`

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{self, Completion};

pub(super) fn run(args: &Completion) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "tortie", &mut script);
    std::io::Write::write_all(&mut anstream::stdout(), &script)?;
    Ok(ExitCode::SUCCESS)
}
