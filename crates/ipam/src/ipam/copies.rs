//! Blocks and handles as they were when they were last seen.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::meta::Metadata;
use tortie_api::{IpamBlock, IpamHandle};
use tortie_store::{Error as StoreError, Key, Kind, Resource, Revision, ipam_names};

use super::{Ipam, Tick, locked};
use crate::block::Block;
use crate::error::{Error, Result};

/// How many handles are remembered. One is some 300 bytes, and a node has a few hundred pods.
const MAX_HANDLES: usize = 8192;

/// A block with its revision.
#[derive(Debug, Clone)]
pub(super) struct BlockCopy {
    metadata: Metadata,
    pub(super) block: Arc<Block>,
    /// Whether addresses of it were released and are not free yet.
    pub(super) has_cooling: bool,
    /// When it was read, or written.
    pub(super) tick: Tick,
}

/// The object that a block is stored as, without the block.
#[derive(Debug, Clone)]
pub(super) struct BlockObject {
    metadata: Metadata,
}

/// Handles that were written here, by their ids; the oldest go first.
#[derive(Debug, Default)]
pub(super) struct Handles {
    by_id: HashMap<String, IpamHandle>,
    order: VecDeque<String>,
}

impl BlockCopy {
    pub(super) fn new(object: IpamBlock, tick: Tick) -> Result<Self> {
        let IpamBlock { metadata, spec, .. } = object;
        Ok(Self::of(metadata, Block::load(spec)?, tick))
    }

    fn of(metadata: Metadata, block: Block, tick: Tick) -> Self {
        Self {
            metadata,
            has_cooling: block.has_cooling(),
            block: Arc::new(block),
            tick,
        }
    }

    /// A block that is yet to be written.
    pub(super) fn unwritten(block: Block, tick: Tick) -> Self {
        let name = ipam_names::of_cidr(&block.net().to_string());
        let metadata = Metadata {
            name,
            ..Metadata::default()
        };
        Self::of(metadata, block, tick)
    }

    /// A block as the datastore answers that it was written. None if it answers with something else.
    pub(super) fn written(answer: Resource, net: IpNet, tick: Tick) -> Option<Self> {
        let Resource::IpamBlock(object) = answer else {
            return None;
        };
        let IpamBlock { metadata, spec, .. } = *object;
        Some(Self::of(metadata, Block::of_whole(spec, net), tick))
    }

    /// The block, to be changed, and what it is stored as.
    pub(super) fn into_parts(self) -> (BlockObject, Block) {
        let object = BlockObject {
            metadata: self.metadata,
        };
        (object, Arc::unwrap_or_clone(self.block))
    }

    pub(super) fn revision(&self) -> Revision {
        Revision(self.metadata.resource_version.clone())
    }

    /// As it is stored.
    pub(super) fn resource(&self) -> Resource {
        self.resource_with(Block::clone(&self.block))
    }

    /// The same object with another content, to be written.
    pub(super) fn resource_with(&self, block: Block) -> Resource {
        resource(self.metadata.clone(), block)
    }
}

impl BlockObject {
    /// With this content.
    pub(super) fn resource_with(self, block: Block) -> Resource {
        resource(self.metadata, block)
    }

    /// As it was when it was seen at that moment.
    pub(super) fn copy_with(self, block: Block, tick: Tick) -> BlockCopy {
        BlockCopy::of(self.metadata, block, tick)
    }
}

fn resource(metadata: Metadata, block: Block) -> Resource {
    IpamBlock {
        metadata,
        spec: block.into_spec(),
        ..IpamBlock::default()
    }
    .into()
}

pub(super) fn block_key(net: IpNet) -> Key {
    Key::global(Kind::IpamBlock, ipam_names::of_cidr(&net.to_string()))
}

impl Handles {
    pub(super) fn get(&self, id: &str) -> Option<&IpamHandle> {
        self.by_id.get(id)
    }

    pub(super) fn insert(&mut self, handle: IpamHandle) {
        let id = handle.spec.handle_id.clone();
        if self.by_id.insert(id.clone(), handle).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > MAX_HANDLES {
            if let Some(oldest) = self.order.pop_front() {
                self.by_id.remove(&oldest);
            }
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        if self.by_id.remove(id).is_some() {
            // Handles mostly go in the order in which they came.
            if let Some(at) = self.order.iter().position(|known| known == id) {
                self.order.remove(at);
            }
        }
    }
}

impl Ipam {
    /// Reads a block; none if there is none.
    pub(super) async fn read_block(&self, net: IpNet) -> Result<Option<BlockCopy>> {
        let tick = self.tick();
        match self.store().get(&block_key(net)).await {
            Ok(Resource::IpamBlock(object)) => BlockCopy::new(*object, tick).map(Some),
            Ok(_) | Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads blocks at once; none where there is none. An inner error is of a block that cannot be read.
    pub(super) async fn read_blocks(
        &self,
        nets: &[IpNet],
    ) -> Result<Vec<Result<Option<BlockCopy>>>> {
        let tick = self.tick();
        let keys: Vec<Key> = nets.iter().copied().map(block_key).collect();
        let found = self.store().get_many(&keys).await?;
        let read = |found| match found {
            Ok(Resource::IpamBlock(object)) => BlockCopy::new(*object, tick).map(Some),
            Ok(_) | Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        };
        Ok(found.into_iter().map(read).collect())
    }

    /// Reads a handle; none if there is none.
    pub(super) async fn read_handle(&self, id: &str) -> Result<Option<IpamHandle>> {
        let key = Key::global(Kind::IpamHandle, id);
        match self.store().get(&key).await {
            Ok(Resource::IpamHandle(handle)) => Ok(Some(*handle)),
            Ok(_) | Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The handle as it was last seen, or else as it is. What is seen may be outdated, so only writes that say so if it
    /// is may rest on it.
    pub(super) async fn known_handle(&self, id: &str) -> Result<Option<IpamHandle>> {
        if self.writes_together()
            && let Some(handle) = locked(&self.shared.handles).get(id)
        {
            return Ok(Some(handle.clone()));
        }
        self.read_handle(id).await
    }

    pub(super) fn forget_handle(&self, id: &str) {
        locked(&self.shared.handles).remove(id);
    }
}

/// A failure of the datastore told to another caller as well.
pub(super) fn retell(error: &Error) -> Error {
    let message = error.to_string();
    match error {
        Error::Store(error) if error.is_retryable() => Error::Store(StoreError::Unavailable {
            message,
            source: None,
        }),
        _ => Error::Store(StoreError::message(message)),
    }
}
