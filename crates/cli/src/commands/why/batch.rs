//! Many questions, one a line.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Map, Value};
use tortie_engine::verdict::Judge;
use tortie_why::{Form, Question, Reply, World};

use super::text;
use crate::args::WhyOutput;

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) flows: u32,
    pub(super) errors: u32,
    pub(super) took: Duration,
}

/// An answer as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    from: &'a str,
    to: &'a str,
    #[serde(flatten)]
    form: Form<'a>,
}

/// An error as JSON.
#[derive(Serialize)]
struct Failure<'a> {
    error: String,
    from: Option<&'a Value>,
    to: Option<&'a Value>,
}

/// Answers all questions in order, also those after an error.
pub(super) fn run(
    world: &World,
    lines: &mut dyn BufRead,
    output: WhyOutput,
    out: &mut impl Write,
) -> Result<Summary> {
    let start = Instant::now();
    let kernels = world.kernels();
    let mut judge = world.engine.judge_with(&kernels);
    let mut summary = Summary::default();
    let mut line = String::new();
    let mut number = 0;
    loop {
        line.clear();
        let length = lines.read_line(&mut line);
        if length.context("cannot read the flows")? == 0 {
            break;
        }
        number += 1;
        if line.trim().is_empty() {
            continue;
        }
        summary.flows += 1;
        let fields = serde_json::from_str::<Map<String, Value>>(&line)
            .map_err(|error| anyhow::anyhow!("line {number} is not a JSON object: {error}"));
        let fields = fields.as_ref();
        let answer = match fields {
            Ok(fields) => ask(world, &mut judge, fields),
            Err(error) => Err(anyhow::anyhow!("{error}")),
        };
        let given = |field| fields.ok().and_then(|fields| fields.get(field));
        summary.errors += u32::from(answer.is_err());
        match (output, answer) {
            (WhyOutput::Json, Ok((question, reply))) => {
                let answer = Answer {
                    from: &question.from,
                    to: &question.to,
                    form: reply.form(),
                };
                serde_json::to_writer(&mut *out, &answer)?;
                writeln!(out)?;
            }
            (WhyOutput::Json, Err(error)) => {
                let failure = Failure {
                    error: error.to_string(),
                    from: given("from"),
                    to: given("to"),
                };
                serde_json::to_writer(&mut *out, &failure)?;
                writeln!(out)?;
            }
            (WhyOutput::Text, Ok((question, reply))) => {
                text::Told::new(&question, &reply).write_line(out)?;
            }
            (WhyOutput::Text, Err(error)) => {
                text::write_error(number, given("from"), given("to"), &error, out)?;
            }
        }
    }
    out.flush()?;
    summary.took = start.elapsed();
    Ok(summary)
}

fn ask(
    world: &World,
    judge: &mut Judge<'_>,
    fields: &Map<String, Value>,
) -> Result<(Question, Reply)> {
    let question = Question::from_json(fields)?;
    let reply = question.ask(&world.directory, judge)?;
    Ok((question, reply))
}
