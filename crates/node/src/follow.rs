//! Keeps the addresses of tunnel devices in step with pools and with the node's labels.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::select;
use tortie_ipam::Ipam;
use tortie_store::{Change, Client, Kind, Query};

use crate::tunnel::{self, Outcome};

/// The pause after something failed.
const PAUSE: Duration = Duration::from_secs(5);

/// Several changes that come together are looked at together.
const SETTLE: Duration = Duration::from_millis(100);

/// Gives tunnels their addresses, and again whenever pools or the node change, until the caller drops it.
pub async fn follow(client: &Client, ipam: &Ipam, node: &str) -> ! {
    loop {
        if let Err(error) = until_broken(client, ipam, node).await {
            tracing::warn!("{error}; trying again in {PAUSE:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn until_broken(client: &Client, ipam: &Ipam, node: &str) -> Result<(), tunnel::Error> {
    let mut watches = Vec::new();
    for kind in [Kind::IpPool, Kind::Node] {
        let query = Query::all(kind);
        let list = client.list(&query).await?;
        watches.push(client.watch(&query, &list.revision).await?);
    }
    let (Some(nodes), Some(pools)) = (watches.pop(), watches.pop()) else {
        return Ok(());
    };
    let mut changes = select(pools, nodes);
    loop {
        for (tunnel, outcome) in tunnel::ensure(client, ipam, node).await? {
            match outcome {
                Outcome::NotNeeded | Outcome::Kept(_) => {}
                Outcome::Assigned(address) => {
                    tracing::info!(%address, "the {} device has an address", tunnel.name());
                }
                Outcome::Released(address) => {
                    tracing::info!(%address, "the {} device needs no address", tunnel.name());
                }
            }
        }
        loop {
            let Some(event) = changes.next().await.transpose()? else {
                return Ok(());
            };
            if concerns(&event.change, node) {
                break;
            }
        }
        tokio::time::sleep(SETTLE).await;
    }
}

/// Whether a change may be a reason for another address: other nodes' are none.
fn concerns(change: &Change, node: &str) -> bool {
    let key = match change {
        Change::Put(resource) => tortie_store::Key::of(resource),
        Change::Delete(key) => key.clone(),
        Change::Invalid(invalid) => invalid.key.clone(),
        Change::Bookmark => return false,
    };
    key.kind != Kind::Node || key.name == node
}
