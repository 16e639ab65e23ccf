//! `tortie create`, `apply`, `replace` and `delete`: many resources at once, each with its own result.

mod destination;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Result;
use futures::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use tortie_api::{Kind, Resource};
use tortie_client::{Applied, Client};
use tortie_error::Causes;
use tortie_store::{Error, Key};

use self::destination::Destination;
pub(super) use self::destination::planner;
use super::{kinds, report};
use crate::args::{Delete, DryRun, Files, Global};
use crate::input::{self, Origin};

/// How many resources are written at the same time.
pub(super) const IN_FLIGHT: usize = 32;
/// With at least this many, a terminal shows how far the work has come.
const PROGRESS_FROM: usize = 50;

/// What to do with each resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Create { skip_exists: bool },
    Apply,
    Replace,
    Delete { skip_not_exists: bool },
}

/// One resource on its way.
pub(super) struct Task {
    /// Where it stands, if in a file.
    pub(super) origin: Option<Origin>,
    pub(super) resource: Resource,
}

impl Mode {
    /// `created`, as in "Successfully created".
    fn done(self) -> &'static str {
        match self {
            Self::Create { .. } => "created",
            Self::Apply => "applied",
            Self::Replace => "replaced",
            Self::Delete { .. } => "deleted",
        }
    }

    /// ` not created`
    fn not_done(self) -> String {
        format!(" not {}", self.done())
    }

    /// What was done to one resource.
    fn done_to_one(self, applied: Option<Applied>) -> &'static str {
        match applied {
            Some(Applied::Created) => "created",
            Some(Applied::Updated) => "changed",
            Some(Applied::Unchanged) => "unchanged",
            None if matches!(self, Self::Delete { .. }) => "deleted",
            None => "skipped",
        }
    }
}

impl Task {
    /// Where it stands, as messages name it.
    pub(super) fn place(&self) -> String {
        let origin = self.origin.as_ref();
        origin.map_or_else(|| "Error".to_owned(), Origin::place)
    }

    /// Why a resource could not be written.
    pub(super) fn failure(&self, what: &str, error: &Error) -> String {
        let object = format!("{}{what}", Key::of(&self.resource));
        match (error, &self.origin) {
            (Error::Invalid { problems, .. }, Some(origin)) => {
                report::problem_lines_of(origin, &object, problems)
            }
            _ => report::store_error(&format!("{}: {object}", self.place()), error),
        }
    }
}

pub(super) async fn run(
    files: &Files,
    mode: Mode,
    dry_run: DryRun,
    global: &Global,
) -> Result<ExitCode> {
    let (tasks, refused) = read(files, mode)?;
    if tasks.is_empty() && refused > 0 {
        return Ok(ExitCode::FAILURE);
    }
    let destination = Destination::open(dry_run.by, &tasks, global).await?;
    if let Destination::Datastore(client) = &destination {
        initialize(client).await;
    }
    execute(tasks, refused, mode, &destination).await
}

/// The built-in tiers must be there before a policy refers to them. A store that cannot take them says so again, and
/// better, for the resource at hand.
pub(super) async fn initialize(client: &Client) {
    if let Err(error) = client.ensure_initialized("", "").await {
        tracing::debug!(
            error = %Causes(&error),
            "Could not initialise the datastore"
        );
    }
}

pub(super) async fn delete(args: Delete, global: &Global) -> Result<ExitCode> {
    let mode = Mode::Delete {
        skip_not_exists: args.skip_not_exists,
    };
    let by = args.dry_run.by;
    let (tasks, refused) = if let Some(word) = &args.kind {
        (named(word, &args)?, 0)
    } else {
        let files = Files {
            filename: args.filename,
            recursive: args.recursive,
            skip_empty: args.skip_empty,
            namespace: args.namespace,
        };
        read(&files, mode)?
    };
    let destination = Destination::open(by, &tasks, global).await?;
    execute(tasks, refused, mode, &destination).await
}

/// What the arguments name.
fn named(word: &str, args: &Delete) -> Result<Vec<Task>> {
    let (kind, names) = kinds::parse_with_names(word, &args.names)?;
    if names.is_empty() {
        anyhow::bail!("say which {kind} to delete, or give -f");
    }
    let mut tasks = Vec::new();
    for name in &names {
        let key = kinds::key(kind, name, args.namespace.as_deref())?;
        let mut resource = Resource::empty(kind);
        resource.metadata_mut().name = key.name;
        resource.metadata_mut().namespace = key.namespace;
        tasks.push(Task {
            origin: None,
            resource,
        });
    }
    Ok(tasks)
}

/// Reads all documents; those that are no resources are reported and counted.
pub(super) fn read(files: &Files, mode: Mode) -> Result<(Vec<Task>, usize)> {
    let documents = input::read_all(&files.filename, files.recursive, files.skip_empty)?;
    let mut tasks = Vec::new();
    let mut refused = 0;
    for document in documents {
        match document.decode(files.namespace.as_deref()) {
            Ok(mut resource) => {
                if matches!(mode, Mode::Delete { .. }) && resource.metadata().name.is_empty() {
                    resource.set_defaults();
                }
                let origin = Some(document.origin);
                tasks.push(Task { origin, resource });
            }
            Err(problems) => {
                refused += 1;
                let (origin, name) = (&document.origin, document.name());
                let lines = report::problem_lines_of(origin, &name, &problems);
                writeln!(anstream::stderr(), "{lines}")?;
            }
        }
    }
    Ok((tasks, refused))
}

async fn execute(
    tasks: Vec<Task>,
    refused: usize,
    mode: Mode,
    destination: &Destination,
) -> Result<ExitCode> {
    let total = tasks.len() + refused;
    let progress = progress_bar(tasks.len(), mode);
    let (first, rest) = split(tasks, mode);
    let mut results = Vec::new();
    for (tasks, in_flight) in [(first, 1), (rest, IN_FLIGHT)] {
        let mut running = futures::stream::iter(tasks)
            .map(|task| async {
                let outcome = destination.write(&task.resource, mode).await;
                (task, outcome)
            })
            .buffered(in_flight);
        while let Some(result) = running.next().await {
            progress.inc(1);
            results.push(result);
        }
    }
    progress.finish_and_clear();
    match destination {
        Destination::Datastore(_) => summarize(&results, refused, total, mode),
        Destination::Plan(_) => {
            summarize_plan(&results, refused, |done| mode.done_to_one(done), mode)
        }
        Destination::Nowhere => summarize_plan(&results, refused, |_| "valid", mode),
    }
}

/// What others refer to, or what must not overlap, is written first and one by one; deleting goes the other way.
pub(super) fn split(tasks: Vec<Task>, mode: Mode) -> (Vec<Task>, Vec<Task>) {
    let comes_first = |task: &Task| {
        let kind = task.resource.kind();
        matches!(
            kind,
            Kind::Tier | Kind::BgpFilter | Kind::IpPool | Kind::ClusterInformation | Kind::Node
        )
    };
    let mut keys: Vec<Key> = tasks.iter().map(|task| Key::of(&task.resource)).collect();
    keys.sort();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        // The same resource twice: the order in which they are given decides.
        return (tasks, Vec::new());
    }
    let (first, rest): (Vec<_>, Vec<_>) = tasks.into_iter().partition(comes_first);
    if matches!(mode, Mode::Delete { .. }) {
        return (rest.into_iter().chain(first).collect(), Vec::new());
    }
    (first, rest)
}

pub(super) fn summarize(
    results: &[(Task, Result<Option<Applied>, Error>)],
    refused: usize,
    total: usize,
    mode: Mode,
) -> Result<ExitCode> {
    let mut stderr = anstream::stderr();
    let mut stdout = anstream::stdout();
    let mut done = Vec::new();
    for (task, outcome) in results {
        match outcome {
            Ok(applied) => {
                done.push(task.resource.kind());
                if total > 1 {
                    let what = mode.done_to_one(*applied);
                    writeln!(stdout, "{} {what}", Key::of(&task.resource))?;
                }
            }
            Err(error) => writeln!(stderr, "{}", task.failure(&mode.not_done(), error))?,
        }
    }
    let failed = refused + results.len() - done.len();
    if failed == 0 {
        writeln!(stdout, "Successfully {} {}", mode.done(), counted(&done))?;
        return Ok(ExitCode::SUCCESS);
    }
    if total > 1 {
        writeln!(
            stderr,
            "Partial success: {} {} out of {total} resources",
            mode.done(),
            done.len()
        )?;
    }
    Ok(ExitCode::FAILURE)
}

/// Says what would have been done; one line for each resource.
fn summarize_plan(
    results: &[(Task, Result<Option<Applied>, Error>)],
    refused: usize,
    word: impl Fn(Option<Applied>) -> &'static str,
    mode: Mode,
) -> Result<ExitCode> {
    let mut stdout = anstream::stdout();
    let mut done = Vec::new();
    for (task, outcome) in results {
        match outcome {
            Ok(applied) => {
                done.push(task.resource.kind());
                let what = word(*applied);
                writeln!(stdout, "{} {what} (dry run)", Key::of(&task.resource))?;
            }
            Err(error) => writeln!(
                anstream::stderr(),
                "{}",
                task.failure(&mode.not_done(), error)
            )?,
        }
    }
    let (verb, counted) = (mode.done(), counted(&done));
    writeln!(stdout, "Nothing was written; {counted} would be {verb}")?;
    let is_complete = refused == 0 && done.len() == results.len();
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// `3 'Tier' resource(s)`, without the kind if there are several.
pub(super) fn counted(kinds: &[Kind]) -> String {
    match kinds.first() {
        Some(first) if kinds.iter().all(|kind| kind == first) => {
            format!("{} '{first}' resource(s)", kinds.len())
        }
        _ => format!("{} resource(s)", kinds.len()),
    }
}

/// A bar on stderr for a person who waits; nothing for programs.
fn progress_bar(tasks: usize, mode: Mode) -> ProgressBar {
    if tasks < PROGRESS_FROM || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(tasks as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} ({eta} left)") {
        bar.set_style(style);
    }
    bar.set_message(mode.done());
    bar
}
