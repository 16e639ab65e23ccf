//! `tortie diff`: what `apply` would change.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use tortie_api::Resource;
use tortie_client::{Applied, Client, Planned};
use tortie_store::Key;

use super::report;
use super::write::{Mode, Task, planner, read, split};
use crate::args::{Diff, Global, TROUBLE};
use crate::config::connect;
use crate::output::to_yaml;

/// Lines around a change.
const CONTEXT: usize = 3;

/// Metadata that belongs to this very cluster.
const OF_CLUSTER: [&str; 5] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
];

pub(super) async fn run(args: &Diff, global: &Global) -> Result<ExitCode> {
    match compare(args, global).await {
        Ok(code) => Ok(code),
        Err(error) => {
            writeln!(anstream::stderr(), "{}", report::error(&error))?;
            Ok(TROUBLE.into())
        }
    }
}

async fn compare(args: &Diff, global: &Global) -> Result<ExitCode> {
    let (tasks, refused) = read(&args.files, Mode::Apply)?;
    let client = planner(&tasks, &connect(global).await?);
    let (first, rest) = split(tasks, Mode::Apply);
    let mut out = anstream::stdout().lock();
    let (mut has_trouble, mut differs) = (refused > 0, false);
    for task in first.into_iter().chain(rest) {
        match plan(&task, &client).await {
            Ok(Planned {
                applied: Applied::Unchanged,
                ..
            }) => {}
            Ok(planned) => {
                let difference = difference(&planned)?;
                differs |= !difference.is_empty();
                write!(out, "{difference}")?;
            }
            Err(error) => {
                has_trouble = true;
                writeln!(anstream::stderr(), "{}", task.failure("", &error))?;
            }
        }
    }
    Ok(match (has_trouble, differs) {
        (true, _) => TROUBLE.into(),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    })
}

async fn plan(task: &Task, client: &Client) -> tortie_store::Result<Planned> {
    client.plan_apply(&task.resource).await
}

/// The difference as text; nothing if only what belongs to the cluster differs.
fn difference(planned: &Planned) -> Result<String> {
    let old = planned.old.as_ref().map(text).transpose()?;
    let old = old.unwrap_or_default();
    let new = text(&planned.new)?;
    let key = Key::of(&planned.new);
    let separator = if key.namespace.is_empty() { "" } else { "/" };
    let name = format!(
        "{}/{}{separator}{}",
        key.kind.plural(),
        key.namespace,
        key.name
    );
    let before = if planned.old.is_some() {
        format!("stored/{name}")
    } else {
        "/dev/null".to_owned()
    };
    Ok(unified(&old, &new, &before, &format!("applied/{name}")))
}

/// A unified diff, with colours.
fn unified(old: &str, new: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        if text.is_empty() {
            text = format!("--- {before}\n+++ {after}\n");
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", hunk.header());
        for change in hunk.iter_changes() {
            let (sign, colour, end) = match change.tag() {
                ChangeTag::Delete => ('-', "\u{1b}[31m", "\u{1b}[0m"),
                ChangeTag::Insert => ('+', "\u{1b}[32m", "\u{1b}[0m"),
                ChangeTag::Equal => (' ', "", ""),
            };
            let line = change.value().trim_end_matches('\n');
            let _ = writeln!(text, "{colour}{sign}{line}{end}");
        }
    }
    text
}

fn text(resource: &Resource) -> Result<String> {
    let mut value = resource.to_value();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in OF_CLUSTER {
            metadata.remove(field);
        }
    }
    to_yaml(&value)
}
