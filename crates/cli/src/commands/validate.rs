//! `tortie validate`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use super::report;
use crate::args::Files;
use crate::input;

pub(super) fn run(args: &Files) -> Result<ExitCode> {
    let documents = input::read_all(&args.filename, args.recursive, args.skip_empty)?;
    let mut stderr = anstream::stderr();
    let mut valid = Vec::new();
    for document in &documents {
        let checked = document
            .decode(args.namespace.as_deref())
            .and_then(|mut resource| {
                resource.set_defaults();
                resource.validate().map(|()| resource.kind())
            });
        match checked {
            Ok(kind) => valid.push(kind),
            Err(problems) => {
                let place = format!("{}: {}", document.place(), document.name());
                writeln!(stderr, "{}", report::problem_lines(&place, &problems))?;
            }
        }
    }
    let failed = documents.len() - valid.len();
    if failed > 0 {
        writeln!(
            stderr,
            "{failed} of {} resources are not valid",
            documents.len()
        )?;
        return Ok(ExitCode::FAILURE);
    }
    let counted = super::write::counted(&valid);
    writeln!(anstream::stdout(), "Successfully validated {counted}")?;
    Ok(ExitCode::SUCCESS)
}
