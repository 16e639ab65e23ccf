//! Gives resources back what they were.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use tortie_api::Resource;
use tortie_store::{Client, Error, Key, Precondition, Revision};

use super::pending::{Change, Outcome, Pending};
use crate::args::Global;
use crate::commands::report;
use crate::config;

/// How long a datastore that cannot be opened is tried, and the pause in between.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(250);

/// What became of one resource.
enum Done {
    /// It was given back what it was.
    Restored(&'static str),
    /// It is what it was.
    Nothing,
    /// It was left as it is, because of this.
    Left(String),
}

/// Rolls everything back, the last change first.
pub(super) async fn run(pending: &Pending, global: &Global) -> Outcome {
    let mut outcome = Outcome::default();
    let client = match connect(global).await {
        Ok(client) => client,
        Err(error) => {
            outcome.error = Some(message(&error));
            return outcome;
        }
    };
    for change in pending.changes.iter().rev() {
        match one(change, &client).await {
            Ok((key, Done::Restored(how))) => outcome.done.push(format!("{key} {how}")),
            Ok((_, Done::Nothing)) => {}
            Ok((key, Done::Left(why))) => outcome.left.push(format!("{key} left as it is: {why}")),
            Err(error) => {
                let error = message(&error);
                outcome.error.get_or_insert(error);
            }
        }
    }
    outcome
}

/// Opens the datastore; another process may have it for a while.
async fn connect(global: &Global) -> Result<Client> {
    let end = Instant::now() + PATIENCE;
    loop {
        match config::connect(global).await {
            Err(error) if Instant::now() < end => {
                tracing::debug!("{}; trying again", message(&error));
                tokio::time::sleep(PAUSE).await;
            }
            result => return result,
        }
    }
}

fn message(error: &anyhow::Error) -> String {
    let text = report::error(error);
    text.strip_prefix("Error: ").unwrap_or(&text).to_owned()
}

async fn one(change: &Change, client: &Client) -> Result<(Key, Done)> {
    let key = change.key()?;
    let before = change.before()?;
    let now = match client.store().get(&key).await {
        Ok(now) => Some(now),
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let done = match (before, now) {
        (None, None) => Done::Nothing,
        (Some(before), Some(now)) if is_same(&before, &now) => Done::Nothing,
        (Some(_), None) => Done::Left("somebody else deleted it".to_owned()),
        (_, Some(now)) if !is_ours(change, &now)? => {
            Done::Left("somebody else changed it since".to_owned())
        }
        (None, Some(now)) => {
            let metadata = now.metadata();
            let precondition = Precondition {
                revision: Some(Revision(metadata.resource_version.clone())),
                uid: None,
            };
            settle("deleted again", client.delete(&key, &precondition).await)?
        }
        (Some(mut before), Some(now)) => {
            let revision = &now.metadata().resource_version;
            before.metadata_mut().resource_version.clone_from(revision);
            settle("restored", client.store().update(before).await)?
        }
    };
    Ok((key, done))
}

/// An error that trying again would not help against leaves the resource as it is.
fn settle(how: &'static str, result: Result<Resource, Error>) -> Result<Done> {
    match result {
        Ok(_) => Ok(Done::Restored(how)),
        Err(Error::Conflict(_)) => Ok(Done::Left("somebody else changed it just now".to_owned())),
        Err(Error::NotFound(_)) => Ok(Done::Left("somebody else deleted it".to_owned())),
        Err(error @ (Error::Invalid { .. } | Error::Unsupported { .. })) => {
            Ok(Done::Left(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether it is what we made of it. Where that is not known, it must have what was asked for.
fn is_ours(change: &Change, now: &Resource) -> Result<bool> {
    if let Some(after) = change.after()? {
        let revision = &after.metadata().resource_version;
        return Ok(*revision == now.metadata().resource_version || is_same(&after, now));
    }
    let Some(mut wanted) = change.wanted()? else {
        return Ok(false);
    };
    *wanted.metadata_mut() = now.metadata().clone();
    wanted.set_defaults();
    let mut now = now.clone();
    now.set_defaults();
    Ok(is_same(&wanted, &now))
}

/// Whether two have the same content, whatever was observed of them.
fn is_same(one: &Resource, other: &Resource) -> bool {
    content(one) == content(other)
}

fn content(resource: &Resource) -> Value {
    let mut value = resource.to_value();
    if let Some(object) = value.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
        metadata.remove("generation");
    }
    value
}
