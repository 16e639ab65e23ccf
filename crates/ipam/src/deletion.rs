//! The deletion of nodes and pools, with what address management holds for them.

use std::sync::Arc;
use std::time::Duration;

use tortie_api::IpPool;
use tortie_store::{Client, Error, Key, Kind, Precondition, Resource, Result, Revision};

use crate::Ipam;

/// How long others may still give out addresses of a pool that was just disabled: they have read it before.
const SETTLE: Duration = Duration::from_millis(500);

/// Deletes an object, and before it what it has of address management, so that nothing is left behind.
pub async fn delete(client: &Client, key: &Key, precondition: &Precondition) -> Result<Resource> {
    let mut precondition = precondition.clone();
    if matches!(key.kind, Kind::Node | Kind::IpPool) {
        client.check_delete(key).await?;
        let current = client.get(key).await?;
        check(&current, &precondition)?;
        if let Resource::IpPool(pool) = current {
            let disabled = release_pool(client, *pool).await?;
            // Others are held to the state that was asked for, our own change is not.
            precondition.revision = precondition.revision.and(Some(disabled));
        } else {
            let released = ipam(client).remove_host(&key.name).await;
            released.map_err(failed)?;
        }
    }
    client.delete(key, &precondition).await
}

/// Whether an object is what is to be deleted: what it has is not released otherwise.
fn check(current: &Resource, precondition: &Precondition) -> Result<()> {
    let metadata = current.metadata();
    let Precondition { revision, uid } = precondition;
    let is_other = revision
        .as_ref()
        .is_some_and(|expected| expected.0 != metadata.resource_version)
        || uid
            .as_ref()
            .is_some_and(|expected| *expected != metadata.uid);
    if is_other {
        return Err(Error::Conflict(Key::of(current)));
    }
    Ok(())
}

/// Gives up the blocks of a pool, after nobody takes any of them any more. Gives the pool's revision.
async fn release_pool(client: &Client, mut pool: IpPool) -> Result<Revision> {
    let cidr = pool.spec.cidr.parse();
    let mut revision = pool.metadata.resource_version.clone();
    if !pool.spec.disabled {
        pool.spec.disabled = true;
        let disabled = client.update(pool.into()).await?;
        disabled
            .metadata()
            .resource_version
            .clone_into(&mut revision);
        tokio::time::sleep(SETTLE).await;
    }
    if let Ok(cidr) = cidr {
        let released = ipam(client).release_pool_affinities(cidr).await;
        released.map_err(failed)?;
    }
    Ok(Revision(revision))
}

fn ipam(client: &Client) -> Ipam {
    Ipam::new(Arc::clone(client.store()))
}

fn failed(error: crate::Error) -> Error {
    Error::Other {
        message: format!("its addresses could not be released: {error}"),
        source: Some(Box::new(error)),
    }
}
