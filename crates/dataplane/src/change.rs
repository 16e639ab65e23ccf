//! What a driver is asked to do: changes to chains, sets and maps of one IP version.

use std::fmt;
use std::sync::Arc;

use tortie_engine::message::{Member, PolicyId};
use tortie_rules::{Chain, Hook, IpVersion, Table};

use crate::iptables::Variant;

/// Names a chain of ours.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainKey {
    pub table: Table,
    /// Its name, without the layer that nftables puts in front.
    pub name: Arc<str>,
}

/// Changes that belong together. A driver makes them so that no packet sees a state between, as far as its part of the
/// kernel can do that.
#[derive(Debug, Default)]
pub struct Batch {
    /// This is all there should be: what else of ours is in the kernel is left over and goes.
    pub is_full: bool,
    /// The rules in the kernel's own chains; only in a full batch.
    pub hooks: Vec<Hook>,
    pub sets: Vec<SetChange>,
    /// Chains that are new or changed, with all their rules.
    pub chains: Vec<Chain>,
    /// Chains that are not needed any more. Nothing refers to them once the batch is in.
    pub removed_chains: Vec<ChainKey>,
    /// Changes to maps, which only nftables has.
    pub maps: Vec<MapChange>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetChange {
    /// Its name in the kernel.
    pub name: Arc<str>,
    /// What is in it.
    pub kind: SetKind,
    /// What changes.
    pub change: Members,
}

/// What the members of a set are, and so how the kernel keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetKind {
    /// Single addresses.
    Addresses,
    /// Networks, single addresses among them.
    Networks,
    /// Address, protocol and port.
    Ports,
}

/// How the members of a set change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Members {
    /// The set is new, or is to have these members and no others. They do not overlap in nftables.
    All(Vec<Member>),
    /// Some come and some go.
    Delta {
        /// Those that come; they were not there.
        added: Vec<Member>,
        /// Those that go; they were there.
        removed: Vec<Member>,
    },
    /// The set goes. No rule that stays refers to it.
    Gone,
}

/// A change to a map from interfaces to chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapChange {
    /// The table whose layer it is in.
    pub table: Table,
    /// Its name, without the layer.
    pub name: &'static str,
    /// Interfaces that are new or that go to another chain now. In a full batch, all of them.
    pub added: Vec<(Arc<str>, Arc<str>)>,
    /// Interfaces that are gone, with the chains that they went to.
    pub removed: Vec<(Arc<str>, Arc<str>)>,
}

/// Brings changes into one part of the kernel, for one IP version.
pub trait Driver: Send {
    /// The part of the kernel.
    fn part(&self) -> Part;

    /// The number by which the kernel knows the socket that changes are made through, if it is one of ours.
    fn port(&self) -> Option<u32>;

    /// Makes the changes. After a full batch, the kernel has what the batch says and nothing else of ours. After an
    /// error, the next batch must be full.
    fn apply(&mut self, batch: &Batch) -> Result<(), Error>;

    /// Compares the kernel with a full batch, and changes nothing.
    fn compare(&mut self, full: &Batch) -> Result<Vec<Drift>, Error>;

    /// Whether the kernel still has what was applied. Cheaper than a comparison; may overlook what no rule of ours
    /// refers to.
    fn check(&mut self) -> Result<Vec<Drift>, Error>;
}

/// A part of the kernel that can enforce policy. Packets pass all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    Nftables,
    /// What this kind of iptables writes to.
    Iptables(Variant),
}

/// Something that is not in the kernel as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift {
    /// What it is about: `chain filter-cali-tw-cali123`.
    pub object: String,
    /// What is wrong with it.
    pub what: String,
}

/// Something that the kernel may refuse on its own account.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    Chain(ChainKey),
    /// A set, by its name in the kernel.
    Set(Arc<str>),
}

/// Something that is not in the kernel as it was asked for. What is there in its place denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Whose it is.
    pub owner: Owner,
    /// The IP version in which it is not there.
    pub ip_version: IpVersion,
    /// The chain; none for a set, where every chain that looks into it denies.
    pub chain: Option<Arc<str>>,
    /// Why.
    pub reason: String,
}

/// Whose something in the kernel is, as people call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The kind: `GlobalNetworkPolicy`.
    pub kind: String,
    /// The name, with the namespace.
    pub name: String,
    /// What helps to find it, such as an interface; may be empty.
    pub remark: String,
}

/// Why changes could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused a transaction of nftables.
    #[error("rules could not be written")]
    Nftables(#[from] tortie_kernel::nft::Error),
    /// The kernel refused a change of routes or links.
    #[error("routes and links could not be changed")]
    Route(#[from] tortie_kernel::route::Error),
    /// A program that the iptables data plane drives failed.
    #[error("{program}: {message}")]
    Program {
        program: String,
        /// What it said.
        message: String,
    },
    /// One object was refused, and with it all that was to be written at once.
    #[error("{object} was refused")]
    Object {
        object: Object,
        /// What was said about it.
        #[source]
        error: Box<Error>,
    },
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(key) => write!(f, "chain {}", key.name),
            Self::Set(name) => write!(f, "set {name}"),
        }
    }
}

impl Owner {
    /// The kind of sets.
    pub const SET: &'static str = "IP set";

    pub(crate) fn policy(id: &PolicyId) -> Self {
        Self {
            kind: id.kind.to_string(),
            name: id.qualified_name(),
            remark: String::new(),
        }
    }

    pub(crate) fn profile(name: &str) -> Self {
        Self {
            kind: "Profile".to_owned(),
            name: name.to_owned(),
            remark: String::new(),
        }
    }
}

impl fmt::Display for Owner {
    /// `WorkloadEndpoint shop/web eth0 (cali123)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)?;
        match &*self.remark {
            "" => Ok(()),
            remark => write!(f, " {remark}"),
        }
    }
}

impl Error {
    /// The object that was refused, if it was one.
    pub fn object(&self) -> Option<&Object> {
        match self {
            Self::Object { object, .. } => Some(object),
            _ => None,
        }
    }

    /// About this object, if one is known.
    pub(crate) fn about(self, object: Option<Object>) -> Self {
        match object {
            Some(object) => Self::Object {
                object,
                error: Box::new(self),
            },
            None => self,
        }
    }
}

impl Batch {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        !self.is_full
            && self.sets.is_empty()
            && self.chains.is_empty()
            && self.removed_chains.is_empty()
            && self.maps.iter().all(MapChange::is_empty)
    }
}

impl MapChange {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

impl ChainKey {
    /// The key of a chain.
    pub fn of(chain: &Chain) -> Self {
        Self {
            table: chain.table,
            name: Arc::clone(&chain.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tortie_error::Causes;
    use tortie_kernel::nft;

    use super::*;

    #[test]
    fn a_refusal_names_object_and_operation_once_and_the_error_number() {
        let refused = nft::Error::Refused {
            operation: "add a rule to chain `x` of table `ip calico`".to_owned(),
            subject: None,
            text: String::new(),
            others: 0,
            source: io::Error::from_raw_os_error(22),
        };
        let error = Error::Object {
            object: Object::Set("cali40s:x".into()),
            error: Box::new(refused.into()),
        };
        assert_eq!(
            Causes(&error).to_string(),
            "set cali40s:x was refused: rules could not be written: nftables: the kernel refused to add a rule to chain `x` \
             of table `ip calico`: Invalid argument (os error 22)"
        );
    }
}
