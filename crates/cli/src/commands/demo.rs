//! `tortie demo`
//!
//! ```text
//! tortie demo ──starts itself again──▶ a process in network, mount and, without root, user namespaces of its own: the node
//!   waits, passes Ctrl-C on              ├─ agent, on the embedded datastore in memory
//!                                        └─ pods: threads in further network namespaces, joined to the node by veth pairs
//! ```
//!
//! # Invariants
//! - Nothing outside the namespaces changes, and no file is written outside them: the kernel removes all when the process
//!   ends, and that ends with the one that started it. Only where it is kept there is a folder, which the outer process
//!   makes and removes, and an address of the loopback interface.
//! - What must be possible is written down in [`script`], and not taken from the engine.

mod cast;
mod keep;
mod latency;
mod node;
mod outside;
mod pod;
mod probe;
mod report;
mod script;
mod text;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use futures::future::try_join_all;
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tortie_client::Client;

use super::isolation::{self, INTERRUPTED};
use super::report::problem_lines;
use super::why;
use crate::args::{Demo, DemoOutput, Global};
use crate::input;
use cast::{Cell, IpVersion};
use node::{Node, data_file};
use report::{CellReport, ChangeReport, Explanation, Report, StepReport};
use script::{Change, EXPLAINED, STEPS, Step};
use text::Text;

/// How long connections may be other than they must before that counts: parts of a change may follow others.
const SETTLE: Duration = Duration::from_millis(300);

pub(super) async fn run(args: &Demo, global: &Global) -> Result<ExitCode> {
    if args.no_color {
        anstream::ColorChoice::Never.write_global();
    }
    match args.inside.parent {
        None => outside::run(args).await,
        Some(parent) => run_inside(args, global, parent).await,
    }
}

/// What the process in namespaces of its own does.
async fn run_inside(args: &Demo, global: &Global, parent: u32) -> Result<ExitCode> {
    if !isolation::begin(parent)? {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    // A terminal interrupts this process too, but the other one decides what follows from that.
    let _interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let end = async move {
        terminate.recv().await;
    };
    tokio::pin!(end);
    let file = match (&global.data_dir, args.keep) {
        (Some(folder), true) => folder.join("tortie.redb"),
        _ => data_file(),
    };
    let (report, node) = tokio::select! {
        () = &mut end => return Ok(ExitCode::from(INTERRUPTED)),
        played = play(args, &file) => played?,
    };
    if args.keep {
        keep::keep(args, &node, &file, end).await?;
    }
    Ok(if report.is_right() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Plays the whole script, and tells of it as it goes.
async fn play(args: &Demo, file: &Path) -> Result<(Report, Node)> {
    let start = Instant::now();
    let versions = IpVersion::used(args.ipv6);
    let mut text = match args.output {
        DemoOutput::Text => Some(Text::new()),
        DemoOutput::Json => None,
    };
    if let Some(text) = &mut text {
        text.opening(args)?;
    }
    let mut node = Node::start(args.dataplane, versions, file).await?;
    let mut report = Report::new(args, versions, start.elapsed());
    if let Some(text) = &mut text {
        text.ready(&report)?;
    }
    let cells = Cell::all(versions);
    for (number, step) in STEPS.iter().enumerate() {
        if let Some(text) = &mut text {
            text.step(number + 1, step)?;
        }
        let played = play_step(&mut node, step, &cells).await?;
        if let Some(text) = &mut text {
            text.step_done(&played, versions)?;
        }
        report.steps.push(played);
    }
    let answers = why::load::answers(&node.client).await?;
    for cell in EXPLAINED {
        let explanation = Explanation::new(&cell, &answers.ask(&question(&cell))?)?;
        if let Some(text) = &mut text {
            text.explanation(&explanation)?;
        }
        report.why.push(explanation);
    }
    report.finish(start.elapsed());
    if let Some(text) = &mut text {
        text.ending(&report)?;
    } else {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    }
    Ok((report, node))
}

async fn play_step(node: &mut Node, step: &Step, cells: &[Cell]) -> Result<StepReport> {
    let mut changes = Vec::new();
    for change in step.changes {
        let applied = apply(&node.client, change);
        let took = latency::measure(&node.pods, change, applied).await?;
        changes.push(ChangeReport::new(change, took));
    }
    let is_expected = |open: &[bool]| {
        let mut pairs = cells.iter().zip(open);
        pairs.all(|(cell, open)| (step.is_open)(cell) == *open)
    };
    let mut open = probe::probe_all(&node.pods, cells).await?;
    if !is_expected(&open) {
        sleep(SETTLE).await;
        open = probe::probe_all(&node.pods, cells).await?;
    }
    node.check_agent()?;
    let answers = why::load::answers(&node.client).await?;
    let mut reports = Vec::new();
    for (cell, is_open) in cells.iter().zip(open) {
        let answer = answers.ask(&question(cell))?;
        let verdict = answer.verdict.verdict;
        reports.push(CellReport::new(
            cell,
            (step.is_open)(cell),
            is_open,
            verdict,
        ));
    }
    Ok(StepReport {
        title: step.title,
        changes,
        cells: reports,
    })
}

/// Writes the resources of a file to the datastore, all at the same time.
async fn apply(client: &Client, change: &Change) -> Result<()> {
    let documents = tortie_api::yaml::parse(change.yaml)?;
    let mut resources = Vec::new();
    for document in &documents {
        resources.push(
            input::decode(document, None)
                .map_err(|problems| anyhow!(problem_lines(change.file, &problems)))?,
        );
    }
    try_join_all(resources.into_iter().map(|resource| client.apply(resource))).await?;
    Ok(())
}

/// The question about a connection as `tortie why` takes it.
fn question(cell: &Cell) -> Map<String, Value> {
    let fields = json!({
        "from": cell.source().full_name(),
        "to": cell.destination().full_name(),
        "protocol": cell.protocol.as_str(),
        "port": cell.port(),
        "ipVersion": u8::from(cell.version),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
