//! `tortie bgp render`

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tortie_bgp::{Plan, render};
use tortie_files::SECRET;

use super::load;
use crate::args::{BgpRender, BirdSyntax, Global};

pub(super) async fn run(args: &BgpRender, global: &Global) -> Result<ExitCode> {
    let inputs = load::inputs(&args.subject, global).await?;
    let plan = Plan::new(&inputs);
    let (files, more) = match args.syntax {
        BirdSyntax::Bird2 => (
            vec![("bird.cfg", render::bird2(&plan))],
            render::bird2_problems(&plan),
        ),
        BirdSyntax::Bird1 => {
            let files = render::bird1(&plan);
            let files = files.files().map(|(name, text)| (name, text.to_owned()));
            (files.into(), Vec::new())
        }
    };
    for problem in plan.problems.iter().chain(&more) {
        writeln!(anstream::stderr(), "warning: {problem}")?;
    }
    match &args.out {
        Some(folder) => write(folder, &files)?,
        None => print(&files)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// There may be passwords in them.
fn write(folder: &Path, files: &[(&str, String)]) -> Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        let written = tortie_files::replace(&path, text, SECRET);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        writeln!(anstream::stderr(), "Wrote {}", path.display())?;
    }
    Ok(())
}

fn print(files: &[(&str, String)]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for (name, text) in files {
        if files.len() > 1 {
            writeln!(out, "# {name}")?;
        }
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}
