//! One place per block where callers meet.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::future::{Either, select};
use ipnet::IpNet;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use super::copies::BlockCopy;
use super::jobs::{Job, Outcome};
use super::{Ipam, locked};
use crate::error::{Error, Result};

/// How many blocks are remembered; blocks in use stay. A node has at most some dozens.
const MAX_SLOTS: usize = 512;

/// How many jobs are written at once. With each may come a handle, and etcd writes 128 objects at most.
const MAX_BATCH: usize = 100;

/// A block, what is known of it, and what is wanted of it.
pub(super) struct Slot {
    pub(super) net: IpNet,
    queue: Mutex<Vec<Queued>>,
    /// Whoever holds this may write the block.
    pub(super) copy: AsyncMutex<Option<BlockCopy>>,
}

/// A job and who waits for it.
pub(super) struct Queued {
    pub(super) job: Job,
    pub(super) reply: oneshot::Sender<Result<Outcome>>,
}

impl Ipam {
    pub(super) fn slot(&self, net: IpNet) -> Arc<Slot> {
        slot(&mut locked(&self.shared.slots), net)
    }

    pub(super) fn slots(&self, nets: &[IpNet]) -> Vec<Arc<Slot>> {
        let mut slots = locked(&self.shared.slots);
        nets.iter().map(|net| slot(&mut slots, *net)).collect()
    }

    /// Waits until a job is done, or does it together with all others that wait.
    pub(super) async fn submit(&self, net: IpNet, job: Job) -> Result<Outcome> {
        let slot = self.slot(net);
        let (reply, mut answer) = oneshot::channel();
        locked(&slot.queue).push(Queued { job, reply });
        // Who is answered does not wait for the lock: with many callers it passes through many hands.
        let mut copy = match select(&mut answer, pin!(slot.copy.lock())).await {
            Either::Left((result, _)) => return result.unwrap_or(Err(Error::Interrupted)),
            Either::Right((copy, _)) => copy,
        };
        loop {
            match answer.try_recv() {
                Ok(result) => return result,
                Err(oneshot::error::TryRecvError::Closed) => return Err(Error::Interrupted),
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            slot.gather().await;
            let batch = slot.next_batch();
            if batch.is_empty() {
                return Err(Error::Interrupted);
            }
            self.carry_out(slot.net, &mut copy, batch).await;
        }
    }
}

fn slot(slots: &mut HashMap<IpNet, Arc<Slot>>, net: IpNet) -> Arc<Slot> {
    if slots.len() >= MAX_SLOTS && !slots.contains_key(&net) {
        slots.retain(|_, slot| Arc::strong_count(slot) > 1);
    }
    let slot = slots.entry(net).or_insert_with(|| {
        Arc::new(Slot {
            net,
            queue: Mutex::default(),
            copy: AsyncMutex::default(),
        })
    });
    Arc::clone(slot)
}

impl Slot {
    /// Lets those get in who were just answered, or waited for this block to be claimed; as long as more of them come.
    async fn gather(&self) {
        let mut count = 0;
        let mut quiet = 0;
        while quiet < 2 && count < MAX_BATCH {
            tokio::task::yield_now().await;
            let now = locked(&self.queue).len();
            quiet = if now == count { quiet + 1 } else { 0 };
            count = now;
        }
    }

    /// The longest waiting jobs, without those whose callers went away.
    fn next_batch(&self) -> Vec<Queued> {
        let mut queue = locked(&self.queue);
        queue.retain(|queued| !queued.reply.is_closed());
        let count = queue.len().min(MAX_BATCH);
        queue.drain(..count).collect()
    }
}
