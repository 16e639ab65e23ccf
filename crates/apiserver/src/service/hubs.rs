//! The hubs that are running, one per type that somebody watches.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::failure::Result;
use crate::hub::{Hub, Object};
use crate::registry::ResourceType;
use crate::storage::Storage;

#[derive(Default)]
pub(super) struct Hubs {
    running: Mutex<HashMap<(&'static str, &'static str), Arc<Hub>>>,
}

impl Hubs {
    /// The hub of a type; started if there is none or it has ended. Who watches an ended one is told, and comes back.
    pub(super) async fn of(
        &self,
        of: &ResourceType,
        storage: &Arc<dyn Storage>,
    ) -> Result<Arc<Hub>> {
        let mut running = self.running.lock().await;
        let key = (of.group, of.plural);
        if let Some(hub) = running.get(&key)
            && !hub.is_ended()
        {
            return Ok(Arc::clone(hub));
        }
        let mut objects = Vec::new();
        let mut take = |object| objects.push(Object::new(object));
        let revision = storage.list_each(of, None, &mut take).await?;
        let hub = Arc::new(Hub::new(of.clone(), objects, revision));
        let (task, storage) = (Arc::clone(&hub), Arc::clone(storage));
        tokio::spawn(async move { task.run(storage.as_ref()).await });
        running.insert(key, Arc::clone(&hub));
        Ok(hub)
    }
}
