//! Follows the `KubeControllersConfiguration`, and tells in it what is in force.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::watch;
use tokio::time::sleep;
use tortie_api::KubeControllersConfiguration;
use tortie_store::connect::DatastoreType;
use tortie_store::{Change, Client, Error, Key, Kind, Query, Resource, Revision};

use crate::identity;
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
        loop {
            if let Err(error) = self.follow_once(&settings).await {
                tracing::warn!(%error, "unable to get KubeControllersConfiguration(default)");
                sleep(RETRY).await;
            }
        }
    }

    /// Reads the resource and watches it until it is gone or the watch ends.
    async fn follow_once(&self, settings: &watch::Sender<Option<Settings>>) -> Result<(), Error> {
        let resource = self.get_or_create().await?;
        self.apply(resource, settings).await?;
        let query = Query::all(Kind::KubeControllersConfiguration);
        let list = self.client.list(&query).await?;
        for resource in list.items {
            self.take(resource, settings).await?;
        }
        self.watch(&query, &list.revision, settings).await
    }

    async fn watch(
        &self,
        query: &Query,
        from: &Revision,
        settings: &watch::Sender<Option<Settings>>,
    ) -> Result<(), Error> {
        let mut events = self.client.watch(query, from).await?;
        while let Some(event) = events.next().await {
            match event?.change {
                Change::Put(resource) => self.take(resource, settings).await?,
                // It is made anew.
                Change::Delete(key) if key.name == RESOURCE_NAME => return Ok(()),
                Change::Delete(_) | Change::Bookmark => {}
                Change::Invalid(invalid) => {
                    tracing::error!(key = %invalid.key, reason = invalid.reason, "Configuration cannot be read; the one before stays in force");
                }
            }
        }
        Ok(())
    }

    async fn take(
        &self,
        resource: Resource,
        settings: &watch::Sender<Option<Settings>>,
    ) -> Result<(), Error> {
        match resource {
            Resource::KubeControllersConfiguration(resource)
                if resource.metadata.name == RESOURCE_NAME =>
            {
                self.apply(*resource, settings).await
            }
            other => {
                let name = &other.metadata().name;
                tracing::warn!(name, "unexpected KubeControllersConfiguration object");
                Ok(())
            }
        }
    }

    /// Tells what follows from the resource, here and in its status.
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
        identity::complete(&mut resource.metadata);
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
