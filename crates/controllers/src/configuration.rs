//! Follows the `KubeControllersConfiguration`, and tells in it what is in force.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use tortie_api::KubeControllersConfiguration;
use tortie_client::Client;
use tortie_client::connect::DatastoreType;
use tortie_error::Causes;
use tortie_store::{Error, Key, Kind, Query, Resource, StoreSource};
use tortie_sync::{Batch, Followers, Pace, State};

use crate::settings::{RESOURCE_NAME, Refused, Settings, default_spec, resolve};

const RETRY: Duration = Duration::from_secs(1);

/// What is needed to find out the settings.
pub(crate) struct Configuration {
    pub(crate) client: Client,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) datastore: DatastoreType,
}

impl Configuration {
    /// Whether the variables can be used at all.
    pub(crate) fn check(&self) -> Result<(), Vec<Refused>> {
        resolve(&self.variables, self.datastore, &default_spec()).map(drop)
    }

    /// Tells the settings, and each change of them, until the future is dropped.
    pub(crate) async fn follow(self, settings: watch::Sender<Option<Settings>>) {
        let query = Query::all(Kind::KubeControllersConfiguration);
        let topic = StoreSource::topic::<Resource>(self.client.store(), query);
        let pace = Pace::default();
        let mut changes = Followers::start(vec![topic], &pace, None, &Handle::current());
        loop {
            if !is_readable(changes.recv().await) {
                continue;
            }
            while let Err(error) = self.reconcile(&settings).await {
                tracing::warn!(error = %Causes(&error), "The configuration cannot be read; trying again");
                // What changed meanwhile may be why it failed.
                if let Ok(batch) = timeout(RETRY, changes.recv()).await
                    && !is_readable(batch)
                {
                    break;
                }
            }
        }
    }

    /// Makes the resource if there is none, and tells what follows from it, here and in its status.
    async fn reconcile(&self, settings: &watch::Sender<Option<Settings>>) -> Result<(), Error> {
        let resource = self.get_or_create().await?;
        self.apply(resource, settings).await
    }

    async fn apply(
        &self,
        mut resource: KubeControllersConfiguration,
        settings: &watch::Sender<Option<Settings>>,
    ) -> Result<(), Error> {
        let resolved = match resolve(&self.variables, self.datastore, &resource.spec) {
            Ok(resolved) => resolved,
            // The variables were checked at the start and do not change.
            Err(refused) => {
                let texts: Vec<String> = refused.iter().map(ToString::to_string).collect();
                return Err(Error::message(texts.join("; ")));
            }
        };
        settings.send_if_modified(|current| {
            let is_new = current.as_ref() != Some(&resolved.settings);
            *current = Some(resolved.settings);
            is_new
        });
        if resource.status == resolved.status {
            return Ok(());
        }
        resource.status = resolved.status;
        match self.client.update_status(resource.into()).await {
            // Whoever changed it is told of by the watch.
            Ok(_) | Err(Error::Conflict(_) | Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn get_or_create(&self) -> Result<KubeControllersConfiguration, Error> {
        let key = Key::global(Kind::KubeControllersConfiguration, RESOURCE_NAME);
        let found = match self.client.get(&key).await {
            Err(Error::NotFound(_)) => {
                let new = KubeControllersConfiguration::new("", RESOURCE_NAME, default_spec());
                match self.client.create(new.into()).await {
                    Err(Error::AlreadyExists(_)) => self.client.get(&key).await,
                    created => created,
                }
            }
            found => found,
        }?;
        KubeControllersConfiguration::try_from(found)
            .map_err(|other| Error::message(format!("{key} is a {}", other.kind())))
    }
}

/// Logs what is wrong with the objects of a batch. If the resource itself cannot be read, the one before stays in force.
fn is_readable(batch: Batch<Resource>) -> bool {
    let mut is_readable = true;
    for changed in batch.objects {
        let name = changed.name.name();
        match changed.state {
            State::Unreadable(reason, _) if name == RESOURCE_NAME => {
                tracing::error!(
                    name,
                    reason,
                    "Configuration cannot be read; the one before stays in force"
                );
                is_readable = false;
            }
            State::Present(_) if name != RESOURCE_NAME => {
                tracing::warn!(
                    name,
                    "A KubeControllersConfiguration other than `default` has no effect"
                );
            }
            _ => {}
        }
    }
    is_readable
}
