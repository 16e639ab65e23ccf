//! What address management holds for a node or a pool, released before that goes.

use std::sync::Arc;
use std::time::Duration;

use tortie_ipam::Ipam;
use tortie_store::{Client, Error, Key, Kind, Resource, Result};

/// How long others may still give out addresses of a pool that was just disabled: they have read it before.
const SETTLE: Duration = Duration::from_millis(500);

/// Releases what the object has, so that its deletion leaves nothing behind.
pub(in crate::commands) async fn release_belongings(client: &Client, key: &Key) -> Result<()> {
    let ipam = || Ipam::new(Arc::clone(client.store()));
    match key.kind {
        Kind::Node => {
            client.get(key).await?;
            ipam().remove_host(&key.name).await.map_err(failed)?;
        }
        Kind::IpPool => {
            let Resource::IpPool(mut pool) = client.get(key).await? else {
                return Ok(());
            };
            let cidr = pool.spec.cidr.parse();
            if !pool.spec.disabled {
                pool.spec.disabled = true;
                client.update((*pool).into()).await?;
                tokio::time::sleep(SETTLE).await;
            }
            if let Ok(cidr) = cidr {
                ipam().release_pool_affinities(cidr).await.map_err(failed)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn failed(error: tortie_ipam::Error) -> Error {
    Error::Other {
        message: format!("its addresses could not be released: {error}"),
        source: Some(Box::new(error)),
    }
}
