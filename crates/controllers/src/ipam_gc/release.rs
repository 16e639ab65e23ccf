//! The collector's writes. Each is a compare-and-swap: what changed meanwhile is left alone.

use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use tortie_api::block_affinity::BlockAffinityState;
use tortie_ipam::block::Block;
use tortie_ipam::{Ipam, Owner};
use tortie_store::{Error, Key, Kind, Precondition, Resource, Result, Revision, Store, ipam_names};

/// What became of a block that was to be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// It is gone, or not the node's.
    Yes,
    /// Somebody has addresses of it.
    InUse,
}

/// Reads a block; nothing if there is none.
pub(super) async fn read(store: &Arc<dyn Store>, net: IpNet) -> Result<Option<Resource>> {
    let key = Key::global(Kind::IpamBlock, ipam_names::of_cidr(&net.to_string()));
    match store.get(&key).await {
        Ok(resource) => Ok(Some(resource)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Frees the addresses of a block that have cooled down.
pub(super) async fn collect_cold(
    store: &Arc<dyn Store>,
    net: IpNet,
    cooldown_seconds: i32,
    now: Timestamp,
) -> Result<()> {
    let Some(Resource::IpamBlock(mut stored)) = read(store, net).await? else {
        return Ok(());
    };
    let Ok(mut block) = Block::load(stored.spec.clone()) else {
        return Ok(());
    };
    if !block.collect(cooldown_seconds, now) {
        return Ok(());
    }
    block.bump();
    stored.spec = block.into_spec();
    match store.update((*stored).into()).await {
        // Whoever changed it has collected as well.
        Err(Error::Conflict(_) | Error::NotFound(_)) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes an empty block from its node and deletes it.
///
/// The claim is marked first and goes last. Whoever stops in between leaves a claim that the node's next request for
/// addresses, or the next attempt here, puts right.
pub(super) async fn give_up(store: &Arc<dyn Store>, node: &str, net: IpNet) -> Result<GivenUp> {
    let owner = Owner::host(node);
    let Some(Resource::IpamBlock(stored)) = read(store, net).await? else {
        return Ok(GivenUp::Yes);
    };
    match Block::load(stored.spec.clone()) {
        Ok(block) if !block.is_of(&owner) => return Ok(GivenUp::Yes),
        Ok(block) if block.is_empty() => {}
        _ => return Ok(GivenUp::InUse),
    }
    let name = ipam_names::of_affinity(node, &net.to_string());
    let affinity = match store.get(&Key::global(Kind::BlockAffinity, name)).await {
        Ok(Resource::BlockAffinity(mut affinity)) => {
            affinity.spec.state = BlockAffinityState::PendingDeletion;
            Some(store.update((*affinity).into()).await?)
        }
        Ok(_) | Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    delete(store, &(*stored).into()).await?;
    if let Some(affinity) = affinity {
        delete(store, &affinity).await?;
    }
    Ok(GivenUp::Yes)
}

async fn delete(store: &Arc<dyn Store>, resource: &Resource) -> Result<()> {
    let precondition = Precondition {
        revision: Some(Revision(resource.metadata().resource_version.clone())),
        uid: None,
    };
    match store.delete(&Key::of(resource), &precondition).await {
        Ok(_) | Err(Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes all blocks from a node that is gone.
pub(super) async fn clean_up(
    store: &Arc<dyn Store>,
    ipam: &Ipam,
    node: &str,
    blocks: Vec<IpNet>,
) -> std::result::Result<(), String> {
    let released = ipam.release_host_affinities(&Owner::host(node), true).await;
    // Blocks whose claim is lost are not found by the node's claims.
    for net in blocks {
        match give_up(store, node, net).await {
            Ok(GivenUp::Yes) => {}
            Ok(GivenUp::InUse) => return Err(format!("addresses of block {net} are in use")),
            Err(error) => return Err(error.to_string()),
        }
    }
    released.map_err(|error| error.to_string())
}
