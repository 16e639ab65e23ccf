//! `tortie selector`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::json;
use tortie_selector::{ParseError, Selector};

use crate::args::Selector as Arguments;

/// Exit code for a selector that does not match the given labels.
const NO_MATCH: u8 = 2;

pub(super) fn run(args: &Arguments) -> Result<ExitCode> {
    let labels = parse_labels(args.labels.as_deref())?;
    let parsed = Selector::parse(&args.expression);
    match args.output.as_str() {
        "text" => write_text(args, &parsed, labels.as_deref())?,
        "json" => write_json(&parsed, labels.as_deref())?,
        other => bail!("unknown output form `{other}`; use text or json"),
    }
    Ok(match (&parsed, &labels) {
        (Err(_), _) => ExitCode::FAILURE,
        (Ok(selector), Some(labels)) if !selector.matches(labels) => ExitCode::from(NO_MATCH),
        (Ok(_), _) => ExitCode::SUCCESS,
    })
}

type Labels = Vec<(String, String)>;

fn parse_labels(text: Option<&str>) -> Result<Option<Labels>> {
    let Some(text) = text else { return Ok(None) };
    let mut labels = Vec::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        match pair.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                labels.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            _ => bail!("label `{pair}` must be KEY=VALUE"),
        }
    }
    Ok(Some(labels))
}

fn write_text(
    args: &Arguments,
    parsed: &Result<Selector, ParseError>,
    labels: Option<&[(String, String)]>,
) -> Result<()> {
    let selector = match parsed {
        Err(error) => {
            let mut stderr = anstream::stderr();
            writeln!(stderr, "not valid: {error}")?;
            for line in error.caret(&args.expression).lines() {
                writeln!(stderr, "    {line}")?;
            }
            return Ok(());
        }
        Ok(selector) => selector,
    };
    let mut stdout = anstream::stdout();
    writeln!(stdout, "valid")?;
    writeln!(stdout, "canonical: {selector}")?;
    writeln!(stdout, "id:        {}", selector.unique_id())?;
    if let Some(labels) = labels {
        match selector.first_failing_term(labels) {
            None => writeln!(stdout, "matches:   yes")?,
            Some(term) => writeln!(stdout, "matches:   no, {term}")?,
        }
    }
    Ok(())
}

fn write_json(
    parsed: &Result<Selector, ParseError>,
    labels: Option<&[(String, String)]>,
) -> Result<()> {
    let value = match parsed {
        Ok(selector) => json!({
            "valid": true,
            "canonical": selector.to_string(),
            "id": selector.unique_id(),
            "matches": labels.map(|labels| selector.matches(labels)),
        }),
        Err(error) => json!({"valid": false, "error": error.to_string(), "column": error.column()}),
    };
    writeln!(anstream::stdout(), "{value}")?;
    Ok(())
}
