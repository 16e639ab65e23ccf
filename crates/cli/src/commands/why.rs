//! `tortie why`
//!
//! Loads a [`World`] from files or a datastore, and asks the engine that the node's agent uses.

mod batch;
mod listing;
mod live;
pub(super) mod load;
mod text;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tortie_agent::RecordingFile;
use tortie_engine::verdict::Outcome;
use tortie_why::{Answer, Asked, Form, Question, World, has_authentication_header};

use crate::args::{Global, IpVersion, Why, WhyOutput};
use live::{Found, Live};

/// Exit code for a connection that is denied.
const DENIED: u8 = 2;

/// Standard input, where a file can be given.
const STDIN: &str = "-";

/// An answer as JSON.
#[derive(Serialize)]
struct WithKernel<'a> {
    #[serde(flatten)]
    form: Form<'a>,
    /// What the kernel of this machine has.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<&'a Found>,
}

pub(super) async fn run(args: &Why, global: &Global) -> Result<ExitCode> {
    let is_stdin = |path: &Path| path == Path::new(STDIN);
    if args.batch.as_deref().is_some_and(is_stdin) && args.filename.iter().any(|p| is_stdin(p)) {
        bail!("-f and --batch cannot both read standard input");
    }
    if args.live {
        live::check()?;
    }
    let create = |file: &Path| {
        let created = RecordingFile::create(file);
        created.with_context(|| format!("cannot write {}", file.display()))
    };
    let recording = args.record.as_deref().map(create).transpose()?;
    let start = Instant::now();
    let (world, count) = load::world(args, global, recording).await?;
    if args.verbose {
        let seconds = start.elapsed().as_secs_f64();
        writeln!(
            anstream::stderr(),
            "note: loaded {count} objects in {seconds:.3} s"
        )?;
    }
    let mut kernel = if args.live {
        Some(Live::read(args, global).await?)
    } else {
        None
    };
    let code = match args.output {
        WhyOutput::Text => {
            let mut out = BufWriter::new(anstream::stdout().lock());
            answer(args, &world, kernel.as_mut(), &mut out)?
        }
        // There are no colours to take away.
        WhyOutput::Json => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            answer(args, &world, kernel.as_mut(), &mut out)?
        }
    };
    // Taking the world apart would only keep the user waiting.
    std::mem::forget(world);
    Ok(code)
}

/// Answers what was asked for; all is written when it returns.
fn answer(
    args: &Why,
    world: &World,
    kernel: Option<&mut Live>,
    out: &mut impl Write,
) -> Result<ExitCode> {
    let code = write_answer(args, world, kernel, out)?;
    out.flush()?;
    Ok(code)
}

fn write_answer(
    args: &Why,
    world: &World,
    kernel: Option<&mut Live>,
    out: &mut impl Write,
) -> Result<ExitCode> {
    if let Some(asked) = &args.policies {
        listing::policies(world, asked, args.output, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(asked) = &args.endpoints {
        listing::endpoints(world, asked, args.output, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &args.batch {
        return answer_batch(args, file, world, out);
    }
    let question = question(args)?;
    let kernels = world.kernels();
    let mut judge = world.engine.judge_with(&kernels);
    let reply = question.ask(&world.directory, &mut judge)?;
    let found = kernel
        .map(|kernel| kernel.find(world, &reply))
        .transpose()?;
    let told = text::Told::new(&question, &reply);
    match args.output {
        WhyOutput::Json => {
            let form = WithKernel {
                form: reply.form(),
                live: found.as_ref(),
            };
            serde_json::to_writer(&mut *out, &form)?;
            writeln!(out)?;
        }
        WhyOutput::Text if args.short => told.write_line(out)?,
        WhyOutput::Text => {
            let told = told.with_sources(&world.sources);
            told.explaining(args.explain).write(out)?;
        }
    }
    if let Some(found) = found.as_ref().filter(|_| args.output == WhyOutput::Text) {
        found.write(out)?;
    }
    let mut judged = reply.judged().iter();
    let with_header = judged.find(|one| has_authentication_header(&one.connection.flow));
    if let Some(judged) = with_header {
        let about = kernels.about_header(&judged.verdict);
        writeln!(anstream::stderr(), "note: {about}")?;
    }
    if found.is_some_and(|found| !found.agrees) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(match reply.outcome() {
        Outcome::Allow => ExitCode::SUCCESS,
        Outcome::Deny => ExitCode::from(DENIED),
    })
}

/// The question of the command line.
fn question(args: &Why) -> Result<Question> {
    let (Some(from), Some(to)) = (&args.from, &args.to) else {
        bail!("say FROM and TO, such as `tortie why shop/web shop/db`");
    };
    Question::new(&Asked {
        from,
        to,
        protocol: args.protocol.as_deref(),
        port: args.port.as_deref(),
        source_port: args.src_port,
        icmp_type: args.icmp_type,
        icmp_code: args.icmp_code,
        ip_version: args.ip_version.map(IpVersion::into),
    })
}

/// Writes what `tortie why` prints.
pub(super) fn write(answer: &Answer, out: &mut impl Write) -> Result<()> {
    text::Told::new(&answer.question, &answer.reply).write(out)
}

pub(super) fn write_line(answer: &Answer, out: &mut impl Write) -> Result<()> {
    text::Told::new(&answer.question, &answer.reply).write_line(out)
}

fn answer_batch(args: &Why, file: &Path, world: &World, out: &mut impl Write) -> Result<ExitCode> {
    let summary = if file == Path::new(STDIN) {
        batch::run(world, &mut std::io::stdin().lock(), args.output, out)?
    } else {
        let opened = File::open(file);
        let opened = opened.with_context(|| format!("cannot read {}", file.display()))?;
        batch::run(world, &mut BufReader::new(opened), args.output, out)?
    };
    if args.verbose {
        let seconds = summary.took.as_secs_f64();
        let each = seconds * 1e6 / f64::from(summary.flows.max(1));
        writeln!(
            anstream::stderr(),
            "note: answered {} flows in {seconds:.3} s, {each:.1} µs a flow",
            summary.flows
        )?;
    }
    if summary.errors > 0 {
        let (errors, flows) = (summary.errors, summary.flows);
        writeln!(
            anstream::stderr(),
            "{errors} of {flows} flows have an error"
        )?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
