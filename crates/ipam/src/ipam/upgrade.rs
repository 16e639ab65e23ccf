//! What older versions left behind.

use tortie_store::{Kind, Query, Resource};

use super::{Ipam, MAX_TRIES, is_lost_race};
use crate::error::{Error, Result};

/// By this label others find the affinities of a host. Old versions did not write it.
const AFFINITY_TYPE: &str = "projectcalico.org/affinity-type";

impl Ipam {
    /// Writes the affinities of a host again that old versions wrote without labels. Tells how many there were. Only its own:
    /// all hosts do this at about the same time. A datastore that has no labels for affinities shows that by its first answer.
    pub async fn upgrade_host(&self, host: &str) -> Result<usize> {
        let mut upgraded = 0;
        for _ in 0..MAX_TRIES {
            let list = self.store().list(&Query::all(Kind::BlockAffinity)).await?;
            let mut is_done = true;
            for item in list.items.into_iter().filter(|item| is_old(item, host)) {
                match self.store().update(item).await {
                    Ok(written) if is_old(&written, host) => return Ok(0),
                    Ok(_) => upgraded += 1,
                    Err(error) if is_lost_race(&error) => is_done = false,
                    Err(error) => return Err(error.into()),
                }
            }
            if is_done {
                return Ok(upgraded);
            }
        }
        Err(Error::TooMuchContention)
    }
}

fn is_old(item: &Resource, host: &str) -> bool {
    match item {
        Resource::BlockAffinity(affinity) => {
            affinity.spec.node == host && !affinity.metadata.labels.contains_key(AFFINITY_TYPE)
        }
        _ => false,
    }
}
