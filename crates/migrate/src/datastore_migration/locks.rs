//! Whether the groups may be written to.

use tortie_api::{ClusterInformation, Kind, Resource};
use tortie_store::{Error, Key, Precondition, Result, Store};

use super::Settings;
use super::object::{LOCKED_BY, MIGRATED_BY};

/// Locks the newer group, for whoever turns to it before everything is there.
pub(super) async fn lock_v3(settings: &Settings, migration: &str) -> Result<()> {
    let v3 = &*settings.v3;
    match information(v3).await {
        Ok(mut found) => {
            if found.spec.datastore_ready != Some(false) {
                found.spec.datastore_ready = Some(false);
                let annotations = &mut found.metadata.annotations;
                annotations.insert(LOCKED_BY.to_owned(), migration.to_owned());
                v3.update(found.into()).await?;
            }
        }
        Err(Error::NotFound(_)) => {
            let old = information(&*settings.v1).await?;
            let mut new = ClusterInformation::new("", "default", old.spec);
            new.spec.datastore_ready = Some(false);
            let annotations = &mut new.metadata.annotations;
            annotations.insert(MIGRATED_BY.to_owned(), migration.to_owned());
            v3.create(new.into()).await?;
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Undoes what [`lock_v3`] did.
pub(super) async fn unlock_v3(settings: &Settings, migration: &str) -> Result<()> {
    let v3 = &*settings.v3;
    let mut found = match information(v3).await {
        Ok(found) => found,
        Err(Error::NotFound(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let annotations = &mut found.metadata.annotations;
    if annotations
        .get(MIGRATED_BY)
        .is_some_and(|by| by == migration)
    {
        v3.delete(&information_key(), &Precondition::default())
            .await?;
    } else if annotations.get(LOCKED_BY).is_some_and(|by| by == migration) {
        annotations.remove(LOCKED_BY);
        found.spec.datastore_ready = Some(true);
        v3.update(found.into()).await?;
    }
    Ok(())
}

/// Says whether a group may be written to.
pub(super) async fn set_ready(store: &dyn Store, is_ready: bool) -> Result<()> {
    let mut found = information(store).await?;
    if found.spec.datastore_ready != Some(is_ready) {
        found.spec.datastore_ready = Some(is_ready);
        store.update(found.into()).await?;
    }
    Ok(())
}

fn information_key() -> Key {
    Key::global(Kind::ClusterInformation, "default")
}

async fn information(store: &dyn Store) -> Result<ClusterInformation> {
    let key = information_key();
    match store.get(&key).await? {
        Resource::ClusterInformation(information) => Ok(*information),
        _ => Err(Error::message(format!("{key} is something else"))),
    }
}
