//! Gives resources back what they were.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;
use tortie_api::{Kind, Resource};
use tortie_client::Client;
use tortie_client::connect::{Target, environment};
use tortie_error::Causes;
use tortie_store::{Error, Key, Precondition, Revision};

use super::pending::{Change, Outcome, Pending};
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

/// Rolls everything back, the last change first, and looks whether everything is what it was before.
pub(super) async fn run(pending: &Pending) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(error) = in_datastore(pending, &mut outcome).await {
        let error = message(&error);
        outcome.error.get_or_insert(error);
    }
    outcome
}

async fn in_datastore(pending: &Pending, outcome: &mut Outcome) -> Result<()> {
    let client = connect(&pending.datastore).await?;
    let found = cluster_id(&client).await;
    if pending.cluster.is_some() && found != pending.cluster {
        let (expected, found) = (pending.cluster.as_deref(), found.as_deref());
        bail!(
            "this is not the datastore that was written to: the cluster's GUID is `{}` and was `{}`",
            found.unwrap_or_default(),
            expected.unwrap_or_default()
        );
    }
    let mut reasons = BTreeMap::new();
    for change in pending.changes.iter().rev() {
        match one(change, &client).await {
            Ok((key, Done::Restored(how))) => outcome.done.push(format!("{key} {how}")),
            Ok((_, Done::Nothing)) => {}
            Ok((key, Done::Left(why))) => {
                reasons.insert(key.to_string(), why);
            }
            Err(error) => {
                let error = message(&error);
                outcome.error.get_or_insert(error);
            }
        }
    }
    for change in pending.changes.iter().rev() {
        let key = change.key()?;
        let difference = match (change.before()?, read(&key, &client).await?) {
            (None, None) => continue,
            (Some(before), Some(now)) if is_same(&before, &now) => continue,
            (None, Some(_)) => "it was not there before",
            (Some(_), None) => "it is gone",
            (Some(_), Some(_)) => "it is not what it was before",
        };
        let why = reasons.remove(&key.to_string());
        let why = why.unwrap_or_else(|| difference.to_owned());
        outcome.left.push(format!("{key} left as it is: {why}"));
    }
    Ok(())
}

/// What the cluster calls itself, which no other datastore does.
pub(super) async fn cluster_id(client: &Client) -> Option<String> {
    let key = Key::global(Kind::ClusterInformation, "default");
    match client.store().get(&key).await {
        Ok(Resource::ClusterInformation(information)) => {
            let id = information.spec.cluster_guid;
            Some(id).filter(|id| !id.is_empty())
        }
        _ => None,
    }
}

/// Opens the datastore; another process may have it for a while.
async fn connect(target: &Target) -> Result<Client> {
    let target = target.clone().with_secrets(&environment)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match config::open_target(&target).await {
            Err(error) if Instant::now() < end => {
                tracing::debug!(error = %Causes(&*error), "Trying again");
                tokio::time::sleep(PAUSE).await;
            }
            result => return Ok(result?.client),
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
    let now = read(&key, client).await?;
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

async fn read(key: &Key, client: &Client) -> Result<Option<Resource>, Error> {
    match client.store().get(key).await {
        Ok(now) => Ok(Some(now)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
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
        let (made, found) = (after.metadata(), now.metadata());
        let is_untouched = made.resource_version == found.resource_version && made.uid == found.uid;
        return Ok(is_untouched || is_same(&after, now));
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
        metadata.remove("managedFields");
    }
    value
}
