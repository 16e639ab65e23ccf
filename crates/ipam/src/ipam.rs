//! Addresses in a datastore.
//!
//! ```text
//! callers ─▶ pools, own blocks ─▶ slot of the block: queue ─▶ one of the callers writes for all ─▶ datastore
//!                │ all full                                        ▲
//!                └──▶ one caller per host claims a block ──────────┘
//! ```
//!
//! Callers who want something of the same block wait in its queue. The first of them carries out what all want and writes
//! the block and their handles once; on a datastore that cannot write several objects at once, handles go first, so that
//! no address is ever held without one.

mod affine_blocks;
mod affinities;
mod assign;
mod assign_one;
mod claim;
mod claim_permit;
mod commit;
mod copies;
mod ensure;
mod jobs;
mod lookup;
mod owners;
mod release;
mod remove_host;
mod search;
mod sequential;
mod settings;
mod slots;
mod split;
mod upgrade;
mod utilization;
mod world;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use tortie_store::Store;

pub(crate) use self::owners::MACHINE_MARK;
pub use self::owners::{AddressOwners, machine_handle, machine_of_handle};
pub use self::remove_host::Removed;
pub use self::split::{SplitPool, split_pool};
pub use self::utilization::{BlockUtilization, PoolUtilization};

use self::affinities::Host;
pub(crate) use self::affinities::read_affinity;
use self::copies::Handles;
use self::slots::Slot;
use self::world::{Nodes, World};
use crate::request::Owner;

/// How old what is known of pools, settings, reservations and labels may be.
pub const MAX_AGE: SignedDuration = SignedDuration::from_secs(5);

/// How often an operation starts over because others changed the data under it.
const MAX_TRIES: usize = 100;

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Assigns and releases addresses. Clones share what they remember.
#[derive(Clone)]
pub struct Ipam {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    clock: Clock,
    /// Whether the datastore writes several objects at once; assumed until it refuses.
    writes_together: AtomicBool,
    /// Counts calls and reads, to tell whether something was read before or after a call began.
    ticks: AtomicU64,
    world: Mutex<Option<Arc<World>>>,
    nodes: Mutex<Nodes>,
    slots: Mutex<HashMap<IpNet, Arc<Slot>>>,
    hosts: Mutex<HashMap<Owner, Arc<Host>>>,
    handles: Mutex<Handles>,
}

/// A moment in the life of an [`Ipam`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Tick(u64);

impl Ipam {
    /// Nothing is read yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with_clock(store, Arc::new(Timestamp::now))
    }

    /// With another clock than the machine's.
    pub fn with_clock(store: Arc<dyn Store>, clock: Clock) -> Self {
        let shared = Shared {
            store,
            clock,
            writes_together: AtomicBool::new(true),
            ticks: AtomicU64::new(0),
            world: Mutex::default(),
            nodes: Mutex::default(),
            slots: Mutex::default(),
            hosts: Mutex::default(),
            handles: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }

    fn tick(&self) -> Tick {
        Tick(self.shared.ticks.fetch_add(1, Ordering::Relaxed))
    }

    fn writes_together(&self) -> bool {
        self.shared.writes_together.load(Ordering::Relaxed)
    }

    fn cannot_write_together(&self) {
        self.shared.writes_together.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for Ipam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ipam").finish_non_exhaustive()
    }
}

/// What is behind these locks is whole at any time, also if a holder panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the datastore says that somebody else was faster.
fn is_lost_race(error: &tortie_store::Error) -> bool {
    use tortie_store::Error::{AlreadyExists, Conflict, NotFound};
    matches!(error, AlreadyExists(_) | Conflict(_) | NotFound(_))
}
