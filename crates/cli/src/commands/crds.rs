//! `tortie crds`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use tortie_api::crd::{Group, manifests};
use tortie_migrate::datastore_migration;

use crate::args::{CrdGroup, Crds};
use crate::output::to_yaml;

pub(super) fn run(args: &Crds) -> Result<ExitCode> {
    let manifests = match args.group {
        CrdGroup::V3 => manifests(Group::V3),
        CrdGroup::V1 => manifests(Group::V1),
        CrdGroup::Migration => vec![datastore_migration::definition()?],
    };
    let mut out = std::io::BufWriter::new(anstream::stdout().lock());
    for manifest in manifests {
        writeln!(out, "---")?;
        out.write_all(to_yaml(&manifest)?.as_bytes())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
