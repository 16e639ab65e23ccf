//! `tortie apply --confirm` and `tortie confirm`: what was applied is rolled back unless it is confirmed.
//!
//! ```text
//! apply ──▶ keeps what was there ──▶ starts the watcher ──▶ applies ──▶ waits for the end
//!                                       └─ a process of its own: waits, and rolls back
//! confirm ──▶ notes that it is confirmed, which ends both
//! ```
//!
//! # Invariants
//! - What was there is on disk, and somebody watches, before the first resource is written.
//! - The datastore is open only while something is written to it.
//! - A resource is given back only what it was if it still is what we made of it.

mod apply;
mod folder;
mod listing;
mod pending;
mod resume;
mod roll_back;
mod watch;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::args::Confirm;
use folder::{Folder, Role};
use pending::{Pending, State};
use watch::Watcher;

pub(super) use apply::run as apply;
pub(super) use resume::{Caller, resume};

pub(super) async fn run(args: Confirm) -> Result<ExitCode> {
    let folder = Folder::find();
    if args.list {
        return listing::run(&folder);
    }
    if let (true, Some(id)) = (args.watch, &args.id) {
        return watch::run(&folder, id).await;
    }
    let pending = choose(&folder, args.id.as_deref())?;
    if args.roll_back {
        return roll_back(&folder, &pending).await;
    }
    match folder.confirm(&pending.id)? {
        State::Waiting => {
            folder.clear(&pending.id)?;
            let count = pending.changes.len();
            writeln!(
                std::io::stdout(),
                "Confirmed {}: {count} resource(s) stay as applied",
                pending.id
            )?;
            Ok(ExitCode::SUCCESS)
        }
        state => {
            let id = &pending.id;
            match state {
                State::Applying => bail!("{id} is still being applied; try again in a moment"),
                State::Confirmed => bail!("{id} is confirmed already"),
                State::RollingBack => bail!("too late: {id} is being rolled back"),
                State::RolledBack => {
                    pending.tell(&mut anstream::stderr())?;
                    folder.clear(id)?;
                    bail!("too late: {id} was rolled back")
                }
                State::Waiting | State::Failed => bail!(
                    "too late: {id} was to be rolled back and could not be, see `tortie confirm --list`; \
                     try again with `tortie confirm {id} --roll-back`"
                ),
            }
        }
    }
}

/// The one that is meant.
fn choose(folder: &Folder, id: Option<&str>) -> Result<Pending> {
    if let Some(id) = id {
        return match folder.load(id)? {
            Some(pending) => Ok(pending),
            None => bail!("nothing called `{id}` waits for confirmation"),
        };
    }
    let mut all = folder.all()?;
    all.retain(|pending| pending.state != State::Confirmed);
    if all.iter().any(|pending| pending.state != State::RolledBack) {
        all.retain(|pending| pending.state != State::RolledBack);
    }
    match all.len() {
        0 => bail!("nothing waits for confirmation"),
        1 => Ok(all.remove(0)),
        _ => {
            let ids: Vec<&str> = all.iter().map(|pending| pending.id.as_str()).collect();
            bail!(
                "several wait for confirmation, say which: {}",
                ids.join(", ")
            )
        }
    }
}

async fn roll_back(folder: &Folder, pending: &Pending) -> Result<ExitCode> {
    let id = &pending.id;
    // Who applied leaves what became of it to this process, if that came before.
    let _role = folder.hold(id, Role::Asker)?;
    if pending.state != State::RolledBack {
        folder.change(id, |pending| pending.roll_back_now = true)?;
        if !folder.has(id, Role::Watcher)? {
            // Ends by itself.
            drop(Watcher::start(folder, pending)?);
        }
    }
    loop {
        match folder.load(id)? {
            None => bail!("{id} is over; the process that applied it told what became of it"),
            Some(pending) if pending.state == State::Confirmed => {
                bail!("{id} was confirmed by somebody else")
            }
            Some(pending) if pending.state == State::RolledBack => {
                // It tells, too.
                while folder.has(id, Role::Applier)? {
                    tokio::time::sleep(watch::INTERVAL).await;
                }
                folder.clear(id)?;
                return tell(&pending);
            }
            Some(pending)
                if pending.state == State::Failed && !folder.has(id, Role::Watcher)? =>
            {
                return tell(&pending);
            }
            Some(_) => tokio::time::sleep(watch::INTERVAL).await,
        }
    }
}

fn tell(pending: &Pending) -> Result<ExitCode> {
    Ok(if pending.tell(&mut anstream::stdout())? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
