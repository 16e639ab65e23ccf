//! `tortie validate`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;
use tortie_api::{Kind, Problems, Resource};

use super::report;
use crate::args::Files;
use crate::input::{self, Document};

pub(super) fn run(args: &Files) -> Result<ExitCode> {
    let documents = input::read_all(&args.filename, args.recursive, args.skip_empty)?;
    let mut stderr = anstream::stderr();
    let mut valid = Vec::new();
    for document in &documents {
        match check(document, args.namespace.as_deref()) {
            Ok(kind) => valid.push(kind),
            Err(problems) => {
                let (origin, name) = (&document.origin, document.name());
                let lines = report::problem_lines_of(origin, &name, &problems);
                writeln!(stderr, "{lines}")?;
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

/// All that is wrong with a document: also what rules say of the rest, where a part of it cannot be read.
fn check(document: &Document, namespace: Option<&str>) -> Result<Kind, Problems> {
    let mut problems = match document.decode(namespace) {
        Ok(resource) => return validate(resource),
        Err(problems) => problems,
    };
    let kind = document.value.get("kind").and_then(Value::as_str);
    let kind = kind.and_then(Kind::from_name);
    let mut rest = document.value.clone();
    problems.take_out_of(&mut rest);
    let rest = kind.and_then(|kind| Resource::decode_stored(kind, &rest).ok());
    let rest = rest.map(|mut rest| {
        // What is wrong with the namespace is known.
        let _ = input::set_namespace(&mut rest, namespace);
        validate(rest)
    });
    if let Some(Err(more)) = rest {
        let known: Vec<String> = problems.iter().map(|one| one.field.clone()).collect();
        // A part that was taken out may be missed.
        problems.extend(more.without_fields(&known));
    }
    Err(problems)
}

fn validate(mut resource: Resource) -> Result<Kind, Problems> {
    resource.set_defaults();
    resource.validate().map(|()| resource.kind())
}
