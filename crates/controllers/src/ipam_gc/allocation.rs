//! One address that somebody was given, trimmed to what the collector asks about it.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use tortie_api::ipam_block::AllocationAttribute;
use tortie_ipam::{ReleaseIp, attribute};

/// The handle of addresses that Windows hosts keep for themselves. They go with their block.
const WINDOWS_HANDLE: &str = "windows-reserved-ipam-handle";

/// Where an allocation is: its block and its address.
pub(super) type Place = (IpNet, IpAddr);

/// An address that somebody was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allocation {
    pub(super) handle: Arc<str>,
    /// Tells this allocation from others of the same address to the same handle.
    pub(super) sequence: u64,
    /// Calico's name of the node it was given on.
    pub(super) node: Option<Arc<str>>,
    pub(super) class: Class,
    pub(super) suspicion: Suspicion,
}

/// Who has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Class {
    /// A Windows host.
    Windows,
    /// A node's tunnel device.
    Tunnel,
    /// A pod.
    Pod(Tenant),
    /// A virtual machine, whose pods come and go while it keeps its address.
    Machine(Tenant),
    /// Nobody we know: not ours to release.
    Other,
}

/// What a pod or a virtual machine is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Tenant {
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
}

/// How sure it is that nobody uses an address any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// Somebody does.
    #[default]
    None,
    /// It looks unused since then.
    Since(Timestamp),
    /// Certain, but for a last look.
    Confirmed,
}

// === impl Allocation ===

impl Allocation {
    /// Nothing without a handle: it could not be released by one.
    pub(super) fn new(attributes: &AllocationAttribute, sequence: u64) -> Option<Self> {
        let handle = attributes.handle_id.as_deref()?;
        let node = attributes.active_owner_attrs.get(attribute::NODE);
        let node = node.filter(|node| !node.is_empty());
        Some(Self {
            handle: handle.into(),
            sequence,
            node: node.map(|node| node.as_str().into()),
            class: Class::new(handle, attributes),
            suspicion: Suspicion::None,
        })
    }

    /// Whether this is still the same assignment of the address, to the same holder.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.handle == other.handle
            && self.sequence == other.sequence
            && self.node == other.node
            && self.class == other.class
    }

    /// What releases this allocation and no other.
    pub(super) fn release_of(&self, address: IpAddr) -> ReleaseIp {
        ReleaseIp {
            address,
            handle: Some(self.handle.to_string()),
            sequence_number: Some(self.sequence),
        }
    }
}

// === impl Class ===

impl Class {
    fn new(handle: &str, attributes: &AllocationAttribute) -> Self {
        let owner = &attributes.active_owner_attrs;
        let get = |name| owner.get(name).map(String::as_str).unwrap_or_default();
        if handle == WINDOWS_HANDLE {
            return Self::Windows;
        }
        if attribute::TUNNELS.contains(&get(attribute::TYPE)) {
            return Self::Tunnel;
        }
        let (namespace, pod) = (get(attribute::NAMESPACE), get(attribute::POD));
        if namespace.is_empty() || pod.is_empty() {
            return Self::Other;
        }
        match owner.get(attribute::VMI_NAME) {
            None => Self::Pod(Tenant::new(namespace, pod)),
            Some(machine) => Self::Machine(Tenant::new(namespace, machine)),
        }
    }
}

// === impl Tenant ===

impl Tenant {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}
