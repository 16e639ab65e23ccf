//! One address that somebody was given, trimmed to what the collector asks about it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use tortie_api::ipam_block::AllocationAttribute;
use tortie_ipam::{ReleaseIp, attribute, machine_of_handle};

use crate::packed::Packed;
use crate::shared::share;

/// The handle of addresses that Windows hosts keep for themselves. They go with their block.
const WINDOWS_HANDLE: &str = "windows-reserved-ipam-handle";

/// Where an allocation is: its block and its address.
pub(super) type Place = (IpNet, IpAddr);

/// An address that somebody was given. There is one for each pod, so it is kept tight.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Allocation {
    /// The handle and the tenant's namespace, then the tenant's name.
    texts: Packed<2>,
    /// Tells this allocation from others of the same address to the same handle.
    pub(super) sequence: u64,
    /// Calico's name of the node it was given on.
    pub(super) node: Option<Arc<str>>,
    holder: Holder,
    pub(super) suspicion: Suspicion,
}

/// What kind of holder an address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Windows,
    Tunnel,
    Pod,
    Machine,
    Other,
}

/// Who has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Class {
    /// A Windows host.
    Windows,
    /// A node's tunnel device.
    Tunnel,
    Pod(Tenant),
    /// A virtual machine, whose pods come and go while it keeps its address.
    Machine(Tenant),
    /// Nobody we know: not ours to release.
    Other,
}

/// The allocations of a block, in order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Allocations(Vec<(IpAddr, Allocation)>);

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
    /// Nothing without a handle: it could not be released by one. A virtual machine that is nowhere counts as being on the
    /// node that has the block.
    pub(super) fn new(
        attributes: &AllocationAttribute,
        sequence: u64,
        block_node: Option<&Arc<str>>,
    ) -> Option<Self> {
        let handle = attributes.handle_id.as_deref()?;
        let (holder, namespace, name) = holder_of(handle, attributes);
        let node = attributes.active_owner_attrs.get(attribute::NODE);
        let node = node.filter(|node| !node.is_empty()).map(|node| share(node));
        let node = match holder {
            Holder::Machine => node.or_else(|| block_node.cloned()),
            _ => node,
        };
        Some(Self {
            texts: Packed::new([handle, namespace], name),
            sequence,
            node,
            holder,
            suspicion: Suspicion::None,
        })
    }

    pub(super) fn handle(&self) -> &str {
        self.texts.head(0)
    }

    /// Who has it.
    pub(super) fn class(&self) -> Class {
        let tenant = || Tenant::new(self.texts.head(1), self.texts.tail());
        match self.holder {
            Holder::Windows => Class::Windows,
            Holder::Tunnel => Class::Tunnel,
            Holder::Pod => Class::Pod(tenant()),
            Holder::Machine => Class::Machine(tenant()),
            Holder::Other => Class::Other,
        }
    }

    /// Whether a virtual machine has it.
    pub(super) fn is_of_machine(&self) -> bool {
        self.holder == Holder::Machine
    }

    /// Whether this is still the same assignment of the address, to the same holder.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.sequence == other.sequence
            && self.holder == other.holder
            && self.node == other.node
            && self.texts == other.texts
    }

    /// What releases this allocation and no other.
    pub(super) fn release_of(&self, address: IpAddr) -> ReleaseIp {
        ReleaseIp {
            address,
            handle: Some(self.handle().to_owned()),
            sequence_number: Some(self.sequence),
        }
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("handle", &self.handle())
            .field("sequence", &self.sequence)
            .field("node", &self.node)
            .field("class", &self.class())
            .field("suspicion", &self.suspicion)
            .finish_non_exhaustive()
    }
}

/// Who holds an address: namespace and name are empty unless it is a pod or a virtual machine.
fn holder_of<'a>(
    handle: &'a str,
    attributes: &'a AllocationAttribute,
) -> (Holder, &'a str, &'a str) {
    let owner = &attributes.active_owner_attrs;
    // Without a pod, only the handle tells which virtual machine has it.
    if owner.is_empty()
        && let Some((namespace, machine)) = machine_of_handle(handle)
    {
        return (Holder::Machine, namespace, machine);
    }
    let get = |name| owner.get(name).map(String::as_str).unwrap_or_default();
    if handle == WINDOWS_HANDLE {
        return (Holder::Windows, "", "");
    }
    if attribute::TUNNELS.contains(&get(attribute::TYPE)) {
        return (Holder::Tunnel, "", "");
    }
    let (namespace, pod) = (get(attribute::NAMESPACE), get(attribute::POD));
    if namespace.is_empty() || pod.is_empty() {
        return (Holder::Other, "", "");
    }
    match owner.get(attribute::VMI_NAME) {
        None => (Holder::Pod, namespace, pod),
        Some(machine) => (Holder::Machine, namespace, machine),
    }
}

// === impl Allocations ===

impl Allocations {
    /// Of allocations in any order, each address once.
    pub(super) fn new(mut all: Vec<(IpAddr, Allocation)>) -> Self {
        all.sort_unstable_by_key(|(address, _)| *address);
        all.shrink_to_fit();
        Self(all)
    }

    pub(super) fn get(&self, address: IpAddr) -> Option<&Allocation> {
        let index = self.find(address)?;
        self.0.get(index).map(|(_, allocation)| allocation)
    }

    pub(super) fn get_mut(&mut self, address: IpAddr) -> Option<&mut Allocation> {
        let index = self.find(address)?;
        self.0.get_mut(index).map(|(_, allocation)| allocation)
    }

    pub(super) fn remove(&mut self, address: IpAddr) -> Option<Allocation> {
        let index = self.find(address)?;
        Some(self.0.remove(index).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (IpAddr, &Allocation)> {
        self.0
            .iter()
            .map(|(address, allocation)| (*address, allocation))
    }

    pub(super) fn into_vec(self) -> Vec<(IpAddr, Allocation)> {
        self.0
    }

    fn find(&self, address: IpAddr) -> Option<usize> {
        self.0
            .binary_search_by_key(&address, |(address, _)| *address)
            .ok()
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
