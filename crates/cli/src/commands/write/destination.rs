//! Where resources are written: to a datastore, or nowhere at all.

use anyhow::Result;
use tortie_api::tier::BUILT_IN;
use tortie_api::{Kind, Resource};
use tortie_client::{Applied, Client, Planned};
use tortie_store::{Error, Key, Precondition};

use super::{Mode, Task};
use crate::args::{DryRunBy, Global};
use crate::config::{connect, connect_to_write};

/// Where resources are written.
pub(in crate::commands) enum Destination {
    Datastore(Client),
    /// A datastore is asked what would happen.
    Plan(Client),
    /// They are checked by themselves.
    Nowhere,
}

impl Destination {
    pub(super) async fn open(by: DryRunBy, tasks: &[Task], global: &Global) -> Result<Self> {
        Ok(match by {
            DryRunBy::None => Self::Datastore(connect_to_write(global).await?),
            DryRunBy::Server => Self::Plan(planner(tasks, &connect(global).await?)),
            DryRunBy::Client => Self::Nowhere,
        })
    }

    pub(super) async fn write(
        &self,
        resource: &Resource,
        mode: Mode,
    ) -> Result<Option<Applied>, Error> {
        match self {
            Self::Datastore(client) => write(resource, mode, client).await,
            Self::Plan(client) => plan(resource, mode, client).await,
            Self::Nowhere => check(resource, mode),
        }
    }
}

/// A client that takes what comes first, and what every datastore has, to be there.
pub(in crate::commands) fn planner(tasks: &[Task], client: &Client) -> Client {
    let given = tasks.iter().map(|task| Key::of(&task.resource));
    let given = given.filter(|key| matches!(key.kind, Kind::Tier | Kind::BgpFilter));
    let built_in = BUILT_IN.map(|(name, ..)| Key::global(Kind::Tier, name));
    client.assuming(given.chain(built_in))
}

async fn write(resource: &Resource, mode: Mode, client: &Client) -> Result<Option<Applied>, Error> {
    match mode {
        Mode::Create { skip_exists } => match client.create(resource.clone()).await {
            Err(Error::AlreadyExists(_)) if skip_exists => Ok(None),
            outcome => outcome.map(|_| Some(Applied::Created)),
        },
        Mode::Apply => {
            let applied = client.apply(resource.clone()).await;
            applied.map(|(_, applied)| Some(applied))
        }
        Mode::Replace => {
            let applied = client.replace(resource.clone()).await;
            applied.map(|(_, applied)| Some(applied))
        }
        Mode::Delete { skip_not_exists } => {
            let key = Key::of(resource);
            match client.delete(&key, &Precondition::default()).await {
                Err(Error::NotFound(_)) if skip_not_exists => Ok(None),
                outcome => outcome.map(|_| None),
            }
        }
    }
}

/// What [`write`] would do.
async fn plan(resource: &Resource, mode: Mode, client: &Client) -> Result<Option<Applied>, Error> {
    let applied = |planned: Planned| Some(planned.applied);
    match mode {
        Mode::Create { skip_exists } => {
            let new = client.check_create(resource.clone()).await?;
            let key = Key::of(&new);
            match client.get(&key).await {
                Err(Error::NotFound(_)) => Ok(Some(Applied::Created)),
                Err(error) => Err(error),
                Ok(_) if skip_exists => Ok(None),
                Ok(_) => Err(Error::AlreadyExists(key)),
            }
        }
        Mode::Apply => client.plan_apply(resource).await.map(applied),
        Mode::Replace => client.plan_replace(resource).await.map(applied),
        Mode::Delete { skip_not_exists } => {
            let key = Key::of(resource);
            match client.get(&key).await {
                Err(Error::NotFound(_)) if skip_not_exists => Ok(None),
                Err(error) => Err(error),
                Ok(_) => client.check_delete(&key).await.map(|()| None),
            }
        }
    }
}

/// What can be said of a resource without others.
fn check(resource: &Resource, mode: Mode) -> Result<Option<Applied>, Error> {
    if matches!(mode, Mode::Delete { .. }) {
        return Ok(None);
    }
    Client::check_alone(resource.clone()).map(|()| None)
}
