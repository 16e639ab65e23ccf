//! `tortie crds`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use tortie_api::crd::{Group, manifests};

use crate::args::{CrdGroup, Crds};
use crate::output::to_yaml;

pub(super) fn run(args: &Crds) -> Result<ExitCode> {
    let group = match args.group {
        CrdGroup::V3 => Group::V3,
        CrdGroup::V1 => Group::V1,
    };
    let mut out = std::io::BufWriter::new(anstream::stdout().lock());
    for manifest in manifests(group) {
        writeln!(out, "---")?;
        out.write_all(to_yaml(&manifest)?.as_bytes())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
