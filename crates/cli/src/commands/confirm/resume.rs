//! What nobody watches any more, after a crash or a reboot within the time, is taken up by the next command.

use std::io::Write as _;

use anyhow::Result;
use tortie_client::connect::DatastoreType;
use tortie_error::Causes;

use super::folder::{Folder, Role};
use super::pending::{Pending, State};
use super::watch::{self, Watcher};

/// Who takes it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Caller {
    /// A command that a person waits for.
    Command,
    /// One that runs on, and comes back after a reboot: what could not be rolled back is tried again, and a datastore
    /// elsewhere does not keep it from starting.
    Service,
}

/// Rolls back what was not confirmed in time, and watches again over what still can be.
pub(in crate::commands) async fn resume(caller: Caller) {
    let folder = Folder::find();
    let result = match folder.all() {
        Ok(all) => resume_all(&folder, all, caller).await,
        Err(error) => Err(error),
    };
    if let Err(error) = result {
        tracing::warn!(error = %Causes(&*error), "What waits for confirmation could not be looked after");
    }
}

async fn resume_all(folder: &Folder, all: Vec<Pending>, caller: Caller) -> Result<()> {
    for pending in all {
        let id = &pending.id;
        let is_over = matches!(pending.state, State::Confirmed | State::RolledBack);
        if is_over || folder.has(id, Role::Watcher)? || folder.has(id, Role::Applier)? {
            continue;
        }
        let mut stderr = anstream::stderr();
        if pending.state == State::Failed && caller == Caller::Command {
            writeln!(
                stderr,
                "warning: {id} was not confirmed and could not be rolled back; try again with `tortie confirm {id} --roll-back`"
            )?;
            continue;
        }
        let is_due = pending.is_due();
        if is_due {
            folder.change(id, |pending| pending.roll_back_now = true)?;
        }
        // It goes on when this process ends.
        let mut watcher = Watcher::start(folder, &pending)?;
        if !is_due {
            let left = pending.time_left().as_secs();
            writeln!(
                stderr,
                "warning: {id} waits for `tortie confirm {id}`, {left} s left"
            )?;
            continue;
        }
        writeln!(
            stderr,
            "warning: {id} was not confirmed in time, and nobody was there to roll it back; rolling back now"
        )?;
        if caller == Caller::Service && pending.datastore.datastore != DatastoreType::Embedded {
            continue;
        }
        while watcher.is_running() {
            tokio::time::sleep(watch::INTERVAL).await;
        }
        if let Some(pending) = folder.load(id)? {
            // Data of the command alone goes to stdout.
            pending.tell(&mut stderr)?;
            if pending.state == State::RolledBack {
                folder.clear(id)?;
            }
        }
    }
    Ok(())
}
