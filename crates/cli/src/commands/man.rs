//! `tortie man`

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::args::{self, Man};

pub(super) fn run(args: &Man) -> Result<ExitCode> {
    let folder = &args.output;
    let written =
        fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(args::command(), folder));
    written.with_context(|| format!("writing pages to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
