//! The states that lists showed last: who lists goes on to watch from there.

use std::time::Duration;

use tortie_store::embedded::Snapshot;

use super::expiring::Expiring;
use crate::failure::Result;
use crate::storage::Storage;

/// How long a client may take from its list to its watch.
const LIFETIME: Duration = Duration::from_secs(30);

/// How many states are kept.
const MAX_SNAPSHOTS: usize = 64;

pub(super) struct Snapshots {
    recent: Expiring<Snapshot>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            recent: Expiring::new(LIFETIME),
        }
    }
}

impl Snapshots {
    /// The present state, if the storage can show it for a while.
    pub(super) fn begin(&self, storage: &dyn Storage) -> Result<Option<Snapshot>> {
        let Some(new) = storage.snapshot()? else {
            return Ok(None);
        };
        let same = self.recent.with(|recent| {
            recent.retain(|(_, snapshot)| !snapshot.has_ended());
            while recent.len() >= MAX_SNAPSHOTS {
                recent.pop_front();
            }
            let at = recent
                .iter()
                .position(|(_, kept)| kept.revision() == new.revision());
            at.and_then(|at| recent.remove(at))
        });
        // Kept once, and from now on.
        let snapshot = same.map_or(new, |(_, same)| same);
        self.recent.push(snapshot.clone());
        Ok(Some(snapshot))
    }

    /// The oldest state, if it is not newer than a revision: from there on, all who listed can watch.
    pub(super) fn before(&self, revision: u64) -> Option<Snapshot> {
        self.recent.with(|recent| {
            let usable = recent.iter().map(|(_, snapshot)| snapshot);
            let usable = usable.filter(|kept| kept.revision() <= revision && !kept.has_ended());
            usable.min_by_key(|kept| kept.revision()).cloned()
        })
    }
}
