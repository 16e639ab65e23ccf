//! Everything with labels and addresses, on any node: endpoints of workloads and hosts, and network sets.
//!
//! There are far more of these than of anything else, and of nearly all only labels and addresses are ever needed. An
//! item is one allocation: its key, the numbers of its profiles, its labels and its networks, packed one after another.

use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::slab::Slab;
use hashbrown::{DefaultHashBuilder, HashTable};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::bytes::{Reader, length, put_number};
use crate::input::EndpointPort;
use crate::message::PortProtocol;
use crate::profiles::{ItemLabels, Profiles};

/// The number of an item.
pub(crate) type ItemIdx = u32;

/// Marks the first byte of a packed IPv6 network, which is its prefix length plus this.
const V6: u8 = 64;

/// All items, by key.
#[derive(Default)]
pub(crate) struct Items {
    slots: Slab<Item>,
    by_key: HashTable<ItemIdx>,
    hasher: DefaultHashBuilder,
}

pub(crate) struct Item {
    packed: Box<[u8]>,
    parents_at: u32,
    labels_at: u32,
    nets_at: u32,
    /// The number of the local endpoint that it is; [`NOT_LOCAL`] if it is none.
    pub(crate) local: u32,
    #[expect(
        clippy::box_collection,
        reason = "eight bytes for the many items without ports"
    )]
    ports: Option<Box<Vec<ItemPort>>>,
}

/// Stands for no local endpoint.
pub(crate) const NOT_LOCAL: u32 = u32::MAX;

/// A port of an item with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemPort {
    pub(crate) name: Box<str>,
    pub(crate) protocol: PortProtocol,
    pub(crate) port: u16,
}

/// Puts an item together.
#[derive(Default)]
pub(crate) struct ItemBuilder {
    pub(crate) packed: Vec<u8>,
    parents_at: u32,
    labels_at: u32,
    nets_at: u32,
    pub(crate) ports: Vec<ItemPort>,
}

// === impl Items ===

impl Items {
    pub(crate) fn find(&self, key: &[u8]) -> Option<ItemIdx> {
        let hash = self.hasher.hash_one(key);
        self.by_key
            .find(hash, |idx| self.slots[*idx as usize].key() == key)
            .copied()
    }

    pub(crate) fn insert(&mut self, item: Item) -> ItemIdx {
        let hash = self.hasher.hash_one(item.key());
        let idx = crate::index(self.slots.insert(item));
        self.by_key.insert_unique(hash, idx, |idx| {
            self.hasher.hash_one(self.slots[*idx as usize].key())
        });
        idx
    }

    /// Puts another item with the same key in the place of one, which is returned.
    pub(crate) fn replace(&mut self, idx: ItemIdx, item: Item) -> Item {
        std::mem::replace(&mut self.slots[idx as usize], item)
    }

    pub(crate) fn remove(&mut self, idx: ItemIdx) -> Item {
        let item = self.slots.remove(idx as usize);
        let hash = self.hasher.hash_one(item.key());
        if let Ok(entry) = self.by_key.find_entry(hash, |held| *held == idx) {
            entry.remove();
        }
        item
    }

    #[inline]
    pub(crate) fn get(&self, idx: ItemIdx) -> &Item {
        &self.slots[idx as usize]
    }

    pub(crate) fn get_mut(&mut self, idx: ItemIdx) -> &mut Item {
        &mut self.slots[idx as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ItemIdx, &Item)> {
        self.slots
            .iter()
            .map(|(idx, item)| (crate::index(idx), item))
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

// === impl Item ===

impl Item {
    pub(crate) fn key(&self) -> &[u8] {
        &self.packed[..self.parents_at as usize]
    }

    /// The numbers of its profiles, packed.
    #[inline]
    pub(crate) fn parents(&self) -> &[u8] {
        &self.packed[self.parents_at as usize..self.labels_at as usize]
    }

    /// Its own labels, packed.
    #[inline]
    pub(crate) fn labels(&self) -> &[u8] {
        &self.packed[self.labels_at as usize..self.nets_at as usize]
    }

    /// Its own labels together with those that it inherits.
    #[inline]
    pub(crate) fn all_labels<'a>(&'a self, profiles: &'a Profiles) -> ItemLabels<'a> {
        ItemLabels {
            own: self.labels(),
            parents: self.parents(),
            profiles,
        }
    }

    /// Its networks.
    pub(crate) fn nets(&self) -> impl Iterator<Item = IpNet> {
        let mut reader = Reader::new(&self.packed[self.nets_at as usize..]);
        std::iter::from_fn(move || (!reader.is_empty()).then(|| take_net(&mut reader)))
    }

    /// Its ports with names.
    pub(crate) fn ports(&self) -> &[ItemPort] {
        self.ports.as_ref().map_or(&[], |ports| ports.as_slice())
    }

    pub(crate) fn same_content(&self, other: &Self) -> bool {
        self.packed == other.packed && self.ports == other.ports
    }
}

// === impl ItemBuilder ===

impl ItemBuilder {
    pub(crate) fn start(&mut self, key: &[u8]) {
        self.packed.clear();
        self.ports.clear();
        self.packed.extend_from_slice(key);
        self.parents_at = length(self.packed.len());
    }

    pub(crate) fn parent(&mut self, profile: u32) {
        put_number(&mut self.packed, profile);
    }

    pub(crate) fn start_labels(&mut self) {
        self.labels_at = length(self.packed.len());
    }

    pub(crate) fn start_nets(&mut self) {
        self.nets_at = length(self.packed.len());
    }

    /// A single address.
    pub(crate) fn address(&mut self, address: IpAddr) {
        self.net(IpNet::from(address));
    }

    /// A network. One of everything becomes its two halves, which is what kernels take.
    pub(crate) fn net(&mut self, net: IpNet) {
        if net.prefix_len() == 0 {
            // A prefix of 0 can be split into two of 1.
            for half in net.subnets(1).into_iter().flatten() {
                put_net(&mut self.packed, half);
            }
        } else {
            put_net(&mut self.packed, net.trunc());
        }
    }

    pub(crate) fn ports(&mut self, ports: &[EndpointPort]) {
        self.ports.extend(ports.iter().map(|port| ItemPort {
            name: port.name.as_str().into(),
            protocol: PortProtocol::of_port(&port.protocol),
            port: port.port,
        }));
    }

    pub(crate) fn build(&mut self) -> Item {
        Item {
            packed: self.packed.as_slice().into(),
            parents_at: self.parents_at,
            labels_at: self.labels_at,
            nets_at: self.nets_at,
            local: NOT_LOCAL,
            ports: (!self.ports.is_empty()).then(|| Box::new(std::mem::take(&mut self.ports))),
        }
    }
}

fn put_net(out: &mut Vec<u8>, net: IpNet) {
    match net {
        IpNet::V4(net) => {
            out.push(net.prefix_len());
            out.extend_from_slice(&net.addr().octets());
        }
        IpNet::V6(net) => {
            out.push(V6 + net.prefix_len());
            out.extend_from_slice(&net.addr().octets());
        }
    }
}

fn take_net(reader: &mut Reader<'_>) -> IpNet {
    let tag = reader.byte();
    if tag < V6 {
        let octets = reader.take(4).try_into().unwrap_or([0; 4]);
        Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), tag).into()
    } else {
        let octets = reader.take(16).try_into().unwrap_or([0; 16]);
        Ipv6Net::new_assert(Ipv6Addr::from_octets(octets), tag - V6).into()
    }
}

/// The numbers of profiles in their packed form.
#[inline]
pub(crate) fn parents(packed: &[u8]) -> impl Iterator<Item = u32> {
    let mut reader = Reader::new(packed);
    std::iter::from_fn(move || (!reader.is_empty()).then(|| reader.number()))
}
