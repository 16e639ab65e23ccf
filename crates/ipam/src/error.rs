//! What can go wrong, in Calico's words where Calico has words for it.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::ip_pool::IpPoolAllowedUse;

use crate::request::{Assigned, Released};

/// The result of an operation on addresses.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on addresses failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The datastore failed.
    #[error(transparent)]
    Store(#[from] tortie_store::Error),
    /// No pool is enabled for this IP version, or none has blocks of a usable size.
    #[error("cannot find a qualified ippool")]
    NoQualifiedPool,
    /// The pools that select the node do not allow the use.
    #[error("cannot find a qualified ippool, no pools match the required use ({0:?})")]
    NoPoolForUse(IpPoolAllowedUse),
    /// No pool selects the node and the namespace.
    #[error("no configured Calico pools for node {0}")]
    NoPoolForNode(String),
    /// A pool that was asked for cannot be used.
    #[error("the given pool ({0}) does not exist, or is not enabled")]
    PoolNotEnabled(IpNet),
    /// A pool of the other IP version was asked for.
    #[error("provided IPv{0} IPPools list contains one or more IPv{1} IPPools")]
    PoolOfOtherVersion(u8, u8),
    /// The selector of a pool cannot be read.
    #[error("pool {pool} has an invalid selector: {reason}")]
    Selector {
        /// The pool's name.
        pool: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The host may not have more blocks, and those it has are full.
    #[error("cannot allocate new block due to per host block limit")]
    BlockLimit,
    /// Blocks are not claimed automatically, and those of the host are full.
    #[error("failed to find or claim a block")]
    NoBlock,
    /// All blocks of all pools that the host may use belong to others.
    #[error("No Free Blocks")]
    NoFreeBlocks,
    /// The address is in no enabled pool.
    #[error("The provided IP address is not in a configured pool")]
    NotInPool,
    /// The network is in no enabled pool.
    #[error("The requested CIDR ({0}) is not within any configured pools.")]
    NetNotInPool(IpNet),
    /// The network is smaller than one block of its pool.
    #[error("The requested CIDR ({0}) is smaller than the minimum.")]
    NetTooSmall(IpNet),
    /// The pool of the address does not allow the use.
    #[error(
        "IP address {address} is in IP pool {pool:?}, which is not allowed for use \"{used:?}\" (allowedUses: [{allowed}])"
    )]
    UseNotAllowed {
        address: IpAddr,
        /// The pool's name.
        pool: String,
        /// What it was to be used for.
        used: IpPoolAllowedUse,
        /// What the pool allows, with spaces between.
        allowed: String,
    },
    /// Somebody has the address already.
    #[error("resource already exists: {0} with error: Address already assigned in block")]
    AlreadyAssigned(IpAddr),
    /// Nobody has the address.
    #[error("resource does not exist: {0} with error: IP is unassigned")]
    Unassigned(IpAddr),
    /// The address was released a short while ago.
    #[error("address {0} is in cooldown")]
    CoolingDown(IpAddr),
    /// There is no such handle.
    #[error("resource does not exist: IPAMHandleKey(id={0}) with error: <nil>")]
    NoHandle(String),
    /// A handle has as many addresses as it may have.
    #[error(
        "handle {handle} already has {current} allocation(s), cannot allocate more (maxAlloc={max})"
    )]
    MaxPerHandle {
        handle: String,
        /// How many it has.
        current: u32,
        /// How many it may have.
        max: u32,
    },
    /// A handle that may not get more addresses has another one than that asked for.
    #[error(
        "handle {handle} already has IP(s) allocated, cannot assign additional IP {address} (maxAllocPerIPVersion={max})"
    )]
    HandleHasOther {
        handle: String,
        /// The address asked for.
        address: IpAddr,
        /// How many it may have.
        max: u32,
    },
    /// A release that was asked for on grounds of outdated knowledge; nothing was released.
    #[error("update conflict: {address}")]
    Outdated {
        address: IpAddr,
        /// What does not agree.
        #[source]
        reason: Mismatch,
    },
    /// The block belongs to another host, and addresses are not to be taken from others.
    #[error("Block host affinity does not match")]
    NotOurs,
    /// The block belongs to nobody, and addresses are to be taken from own blocks only.
    #[error("Attempt to assign from block {0} with no affinity")]
    NoAffinity(IpNet),
    /// Addresses of the block are in use.
    #[error("block '{0}' is not empty")]
    BlockNotEmpty(IpNet),
    /// The block belongs to another.
    #[error("{0} already claimed by {1}")]
    Claimed(IpNet, String),
    /// The configuration contradicts itself.
    #[error("{0}")]
    Configuration(&'static str),
    /// A stored block, handle or affinity cannot be used.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// Which object.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Others changed the same objects again and again.
    #[error("Max retries hit - excessive concurrent IPAM requests")]
    TooMuchContention,
    /// The request was carried out together with another, whose caller gave up in the middle.
    #[error("the outcome is not known; release by handle, then try again")]
    Interrupted,
    /// The request cannot be carried out as it stands.
    #[error("{0}")]
    Refused(String),
    /// Some addresses were assigned before it failed; they are held until they are released.
    #[error("{source}")]
    PartlyAssigned {
        /// What was assigned.
        assigned: Box<Assigned>,
        /// What failed.
        source: Box<Error>,
    },
    /// Some addresses were released before it failed.
    #[error("{source}")]
    PartlyReleased {
        /// What was released.
        released: Box<Released>,
        /// What failed.
        source: Box<Error>,
    },
}

/// In what the knowledge of a caller who releases an address is outdated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Another has the address now.
    #[error(
        "the given handle ({requested}) does not match ({found}) when attempting to release IP"
    )]
    Handle {
        /// Who was to release it.
        requested: String,
        /// Who has it.
        found: String,
    },
    /// The address was given out anew.
    #[error(
        "the given sequence number ({requested}) does not match ({found}) when attempting to release IP"
    )]
    Sequence {
        /// Which allocation was to be released.
        requested: u64,
        /// Which allocation there is.
        found: u64,
    },
}

impl Error {
    /// What had been assigned when it failed.
    pub fn assigned(&self) -> Option<&Assigned> {
        match self {
            Self::PartlyAssigned { assigned, .. } => Some(assigned),
            _ => None,
        }
    }

    /// What had been released when it failed.
    pub fn released(&self) -> Option<&Released> {
        match self {
            Self::PartlyReleased { released, .. } => Some(released),
            _ => None,
        }
    }

    /// The failure itself, without what was done before it.
    pub fn cause(&self) -> &Self {
        match self {
            Self::PartlyAssigned { source, .. } | Self::PartlyReleased { source, .. } => source,
            error => error,
        }
    }

    /// Whether what was asked for does not exist: a handle, or an assignment.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.cause(),
            Self::NoHandle(_) | Self::Unassigned(_) | Self::Store(tortie_store::Error::NotFound(_))
        )
    }
}
