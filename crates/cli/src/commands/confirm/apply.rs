//! `tortie apply --confirm`: applies, and waits for the end.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use anyhow::{Result, bail};
use futures::StreamExt as _;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tortie_api::Resource;
use tortie_client::connect::environment;
use tortie_client::{Applied, Client, check_is_no_copy};
use tortie_store::{Error, Key};

use super::folder::{Folder, Role};
use super::pending::{Change, Pending, State};
use super::roll_back::cluster_id;
use super::watch::{self, Watcher};
use crate::args::{Files, Global};
use crate::commands::write::{self, IN_FLIGHT, Mode, Task};
use crate::config::{self, find_target};

/// The exit code where the datastore is neither as applied nor as it was before.
const NOT_ROLLED_BACK: u8 = 3;

/// What was done with a resource, and what it is now.
type Written = (Task, Result<(Resource, Applied), Error>);

pub(in crate::commands) async fn run(
    files: &Files,
    seconds: u64,
    global: &Global,
) -> Result<ExitCode> {
    let (mut tasks, refused) = write::read(files, Mode::Apply)?;
    if refused > 0 {
        writeln!(anstream::stderr(), "Nothing was applied")?;
        return Ok(ExitCode::FAILURE);
    }
    prepare(&mut tasks)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Found once: whoever rolls back must reach the very same.
    let target = find_target(global, &environment)?.pinned()?;
    let client = config::open_target(&target).await?.client;
    write::initialize(&client).await;
    let (first, rest) = write::split(tasks, Mode::Apply);
    let count = first.len();
    let tasks: Vec<Task> = first.into_iter().chain(rest).collect();
    let befores = read_all(&tasks, &client).await?;
    let changes = tasks.iter().zip(&befores);
    let changes = changes.map(|(task, before)| Change::new(before.as_ref(), &task.resource));
    let cluster = cluster_id(&client).await;
    let pending = Pending::new(seconds, changes.collect(), target, cluster);
    let folder = Folder::find();
    folder.create(&pending)?;
    let _role = folder.hold(&pending.id, Role::Applier)?;
    let mut watcher = match Watcher::start(&folder, &pending) {
        Ok(watcher) => watcher,
        Err(error) => {
            folder.remove(&pending.id)?;
            return Err(error.context("nothing was applied"));
        }
    };
    let written = write_all(tasks, &befores, count, &client).await;
    // Whoever rolls back needs it.
    drop(client);
    let has_failures = written.iter().any(|(_, result)| result.is_err());
    let count = note(&folder, &pending.id, &written, has_failures)?;
    summarize(written)?;
    if count == 0 {
        folder.remove(&pending.id)?;
        if has_failures {
            return Ok(ExitCode::FAILURE);
        }
        writeln!(
            std::io::stdout(),
            "Nothing changed; there is nothing to confirm"
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let id = &pending.id;
    let mut stderr = anstream::stderr();
    if has_failures {
        writeln!(stderr, "Not all could be applied; rolling back")?;
    } else {
        writeln!(
            stderr,
            "Rolling back in {seconds} s, unless `tortie confirm {id}` is run before"
        )?;
    }
    wait(
        &folder,
        &pending,
        &mut watcher,
        [&mut interrupt, &mut terminate],
    )
    .await
}

/// Gives resources their names, and refuses what could not be applied or rolled back.
fn prepare(tasks: &mut [Task]) -> Result<()> {
    let mut keys = BTreeSet::new();
    for task in tasks {
        if let Err(refusal) = check_is_no_copy("apply", &task.resource) {
            bail!("{}: {refusal}", task.place());
        }
        if task.resource.metadata().name.is_empty() {
            task.resource.set_defaults();
        }
        let key = Key::of(&task.resource);
        if !keys.insert(key.clone()) {
            bail!(
                "{}: {key} is given twice, which cannot be with --confirm",
                task.place()
            );
        }
    }
    Ok(())
}

/// What there is of each resource.
async fn read_all(tasks: &[Task], client: &Client) -> Result<Vec<Option<Resource>>> {
    let reads = tasks.iter().map(|task| async {
        match client.store().get(&Key::of(&task.resource)).await {
            Ok(before) => Ok(Some(before)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    });
    let mut reads = futures::stream::iter(reads).buffered(IN_FLIGHT);
    let mut all = Vec::new();
    while let Some(read) = reads.next().await {
        all.push(read?);
    }
    Ok(all)
}

/// Writes all, the first ones one by one.
async fn write_all(
    tasks: Vec<Task>,
    befores: &[Option<Resource>],
    first: usize,
    client: &Client,
) -> Vec<Written> {
    let mut tasks: Vec<_> = tasks.into_iter().zip(befores).collect();
    let rest = tasks.split_off(first);
    let mut written = Vec::new();
    for (tasks, in_flight) in [(tasks, 1), (rest, IN_FLIGHT)] {
        let writes = tasks.into_iter().map(|(task, before)| async {
            let result = write_one(&task.resource, before.as_ref(), client).await;
            (task, result)
        });
        let mut writes = futures::stream::iter(writes).buffered(in_flight);
        while let Some(result) = writes.next().await {
            written.push(result);
        }
    }
    written
}

/// Writes a resource if it still is what it was when it was read: only that can be given back.
async fn write_one(
    resource: &Resource,
    before: Option<&Resource>,
    client: &Client,
) -> Result<(Resource, Applied), Error> {
    let mut resource = resource.clone();
    let Some(before) = before else {
        if !resource.metadata().resource_version.is_empty() {
            return Err(Error::NotFound(Key::of(&resource)));
        }
        return Ok((client.create(resource).await?, Applied::Created));
    };
    let given = &mut resource.metadata_mut().resource_version;
    if given.is_empty() {
        given.clone_from(&before.metadata().resource_version);
    }
    client.apply(resource).await
}

/// Notes what was stored; tells how many resources could be rolled back.
fn note(folder: &Folder, id: &str, written: &[Written], has_failures: bool) -> Result<usize> {
    let count = folder.change(id, |pending| {
        let changes = std::mem::take(&mut pending.changes).into_iter();
        for (mut change, (_, result)) in changes.zip(written) {
            match result {
                Ok((after, Applied::Created | Applied::Updated)) => change.set_after(after),
                Err(error) if may_be_stored(error) => {}
                Ok((_, Applied::Unchanged)) | Err(_) => continue,
            }
            pending.changes.push(change);
        }
        pending.state = State::Waiting;
        pending.roll_back_now = has_failures;
        let seconds = i64::try_from(pending.seconds).unwrap_or(i64::MAX);
        let deadline = Timestamp::now().checked_add(SignedDuration::from_secs(seconds));
        pending.deadline = deadline.ok();
        pending.changes.len()
    })?;
    match count {
        Some(count) => Ok(count),
        None => bail!("`{id}` was removed while it was applied; nothing will be rolled back"),
    }
}

/// Whether a write may have been done although its answer did not come.
fn may_be_stored(error: &Error) -> bool {
    !matches!(
        error,
        Error::NotFound(_)
            | Error::AlreadyExists(_)
            | Error::Conflict(_)
            | Error::Invalid { .. }
            | Error::Unsupported { .. }
            | Error::Unauthorized(_)
    )
}

fn summarize(written: Vec<Written>) -> Result<()> {
    let total = written.len();
    let results: Vec<_> = written
        .into_iter()
        .map(|(task, result)| (task, result.map(|(_, applied)| Some(applied))))
        .collect();
    write::summarize(&results, 0, total, Mode::Apply)?;
    Ok(())
}

/// Waits until it is confirmed or rolled back.
async fn wait(
    folder: &Folder,
    pending: &Pending,
    watcher: &mut Watcher,
    [interrupt, terminate]: [&mut Signal; 2],
) -> Result<ExitCode> {
    let id = &pending.id;
    let mut stderr = anstream::stderr();
    let typed = lines_of_terminal()?;
    loop {
        tokio::select! {
            _ = interrupt.recv() => roll_back_now(folder, id)?,
            _ = terminate.recv() => roll_back_now(folder, id)?,
            () = tokio::time::sleep(watch::INTERVAL) => {}
        }
        match folder.load(id)? {
            None => bail!("`{id}` was removed by somebody else; nothing will be rolled back"),
            Some(now) if now.state == State::Confirmed => {
                folder.remove(id)?;
                writeln!(std::io::stdout(), "Confirmed")?;
                return Ok(ExitCode::SUCCESS);
            }
            Some(now) if matches!(now.state, State::RolledBack | State::Failed) => {
                if now.state == State::RolledBack && !folder.has(id, Role::Asker)? {
                    folder.remove(id)?;
                }
                return Ok(if now.tell(&mut std::io::stdout())? {
                    ExitCode::FAILURE
                } else {
                    NOT_ROLLED_BACK.into()
                });
            }
            Some(_) => {}
        }
        match typed.as_ref().map(Receiver::try_recv) {
            Some(Ok(line)) if line.trim() == "yes" => {
                if folder.confirm(id)? != State::Waiting {
                    writeln!(stderr, "Too late")?;
                }
            }
            Some(Ok(_)) => writeln!(stderr, "Type `yes` to confirm, or Ctrl-C to roll back")?,
            Some(Err(TryRecvError::Empty | TryRecvError::Disconnected)) | None => {}
        }
        let is_over = |now: Pending| matches!(now.state, State::Confirmed | State::RolledBack);
        if !watcher.is_running()
            && !folder.has(id, Role::Watcher)?
            && !folder.load(id)?.is_none_or(is_over)
        {
            writeln!(stderr, "The watcher ended; starting another")?;
            *watcher = Watcher::start(folder, pending)?;
        }
    }
}

fn roll_back_now(folder: &Folder, id: &str) -> Result<()> {
    writeln!(anstream::stderr(), "Rolling back")?;
    folder.change(id, |pending| pending.roll_back_now = true)?;
    Ok(())
}

/// What a person types.
fn lines_of_terminal() -> Result<Option<Receiver<String>>> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(None);
    }
    writeln!(
        anstream::stderr(),
        "Type `yes` to confirm, or Ctrl-C to roll back"
    )?;
    let (sender, receiver) = channel();
    // Ends with the process: a read from a terminal cannot be called off.
    std::thread::spawn(move || {
        for line in stdin.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    Ok(Some(receiver))
}
