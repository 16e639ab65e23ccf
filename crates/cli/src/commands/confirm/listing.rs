//! `tortie confirm --list`.

use std::process::ExitCode;

use anyhow::Result;

use super::folder::{Folder, Role};
use super::pending::{Pending, State};
use crate::output::Table;

/// Shows all that waits for confirmation, or was rolled back with nobody there to be told.
pub(super) fn run(folder: &Folder) -> Result<ExitCode> {
    let all = folder.all()?;
    let headings = ["ID", "STARTED", "STATE", "RESOURCES"];
    let mut table = Table::new(headings.map(str::to_owned).to_vec());
    for pending in &all {
        if pending.state == State::Confirmed {
            folder.clear(&pending.id)?;
            continue;
        }
        let resources: Vec<String> = pending
            .changes
            .iter()
            .map(|change| Ok(format!("{} {}", change.key()?, change.verb())))
            .collect::<Result<_>>()?;
        table.add(vec![
            pending.id.clone(),
            pending.started.to_string(),
            state(folder, pending)?,
            resources.join(", "),
        ]);
    }
    table.write(&mut std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn state(folder: &Folder, pending: &Pending) -> Result<String> {
    let state = pending.state;
    if state == State::RolledBack {
        return Ok(state.to_string());
    }
    if !folder.has(&pending.id, Role::Watcher)? {
        return Ok(format!("{state}; nobody watches, use --roll-back"));
    }
    Ok(match state {
        State::Waiting => format!("{state}, {} s left", pending.time_left().as_secs()),
        state => state.to_string(),
    })
}
