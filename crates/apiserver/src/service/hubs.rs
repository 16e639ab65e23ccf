//! The hubs that are running, one per type that somebody watches.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use tortie_store::embedded::{Most, Snapshot};

use crate::failure::{Failure, Reason, Result};
use crate::hub::{Hub, Object};
use crate::registry::{ResourceId, ResourceType};
use crate::storage::Storage;

#[derive(Default)]
pub(super) struct Hubs {
    running: Mutex<HashMap<ResourceId, Arc<Hub>>>,
}

impl Hubs {
    /// The hub of a type, if one is running.
    pub(super) async fn running(&self, of: &ResourceType) -> Option<Arc<Hub>> {
        let running = self.running.lock().await;
        let hub = running.get(&of.id());
        hub.filter(|hub| !hub.is_ended()).cloned()
    }

    /// The hub of a type; started if there is none or it has ended, from a state that was there before or else from now. Who
    /// watches an ended one is told, and comes back.
    pub(super) async fn of(
        &self,
        of: &ResourceType,
        storage: &Arc<dyn Storage>,
        since: Option<Snapshot>,
    ) -> Result<Arc<Hub>> {
        let mut running = self.running.lock().await;
        let key = of.id();
        if let Some(hub) = running.get(&key)
            && !hub.is_ended()
        {
            return Ok(Arc::clone(hub));
        }
        // What has happened since then may be forgotten already.
        let since = match since {
            Some(snapshot) if storage.watch(of, snapshot.revision()).await.is_ok() => {
                Some(snapshot)
            }
            _ => None,
        };
        let (objects, revision) = if let Some(snapshot) = since {
            (read(of, storage, &snapshot).await?, snapshot.revision())
        } else {
            let mut objects = Vec::new();
            let mut take = |object| objects.push(Object::new(object));
            let revision = storage.list_each(of, None, &mut take).await?;
            (objects, revision)
        };
        let hub = Arc::new(Hub::new(of.clone(), objects, revision));
        let (task, storage) = (Arc::clone(&hub), Arc::clone(storage));
        tokio::spawn(async move { task.run(storage.as_ref()).await });
        running.insert(key, Arc::clone(&hub));
        Ok(hub)
    }
}

/// All objects of a type in one state.
async fn read(
    of: &ResourceType,
    storage: &Arc<dyn Storage>,
    snapshot: &Snapshot,
) -> Result<Vec<Object>> {
    let (of, storage, snapshot) = (of.clone(), Arc::clone(storage), snapshot.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let mut objects = Vec::new();
        let all = Most {
            objects: usize::MAX,
            bytes: usize::MAX,
        };
        for stored in storage.look(&snapshot, &of, None, None, all)? {
            let object = storage.read(&snapshot, &of, &stored.namespace, &stored.name)?;
            objects.extend(object.map(Object::new));
        }
        Ok(objects)
    });
    reading.await.unwrap_or_else(|error| {
        let message = format!("a read of the store did not end: {error}");
        Err(Failure::new(Reason::Internal, message))
    })
}
