//! The members of a set, counted, without those that other members cover.
//!
//! Several objects can give the same member; it stays until the last of them goes. Interval sets in the kernel refuse
//! a network inside another, so where overlaps are left out only the widest networks are *visible*, and what is
//! inside one comes back when it goes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::config::Overlaps;
use crate::message::{Member, PortProtocol};

/// The members of one set.
#[derive(Default)]
pub(crate) struct Members {
    v4: Nets<u32>,
    v6: Nets<u128>,
    ports: BTreeMap<(IpAddr, PortProtocol, u16), u32>,
}

/// What became visible and what ceased to be since the set was last sent.
#[derive(Default)]
pub(crate) struct Delta {
    changes: BTreeMap<Member, bool>,
}

/// Networks of one family; ordered so that a network comes right before all that are inside it.
#[derive(Default)]
struct Nets<A> {
    counts: BTreeMap<(A, u8), u32>,
    /// How many members have each prefix length, longest prefix last.
    lengths: Vec<(u8, u32)>,
}

trait Address: Copy + Ord + Default {
    const BITS: u8;
    fn masked(self, length: u8) -> Self;
    fn last(self, length: u8) -> Self;
    fn net(self, length: u8) -> IpNet;
}

// === impl Members ===

impl Members {
    /// Adds one count of a member.
    pub(crate) fn add(&mut self, member: Member, overlaps: Overlaps, delta: Option<&mut Delta>) {
        match member {
            Member::Net(IpNet::V4(net)) => {
                self.v4
                    .add(net.addr().to_bits(), net.prefix_len(), overlaps, delta);
            }
            Member::Net(IpNet::V6(net)) => {
                self.v6
                    .add(net.addr().to_bits(), net.prefix_len(), overlaps, delta);
            }
            Member::Port(address, protocol, port) => {
                let count = self.ports.entry((address, protocol, port)).or_default();
                *count += 1;
                if let (1, Some(delta)) = (*count, delta) {
                    delta.note(member, true);
                }
            }
        }
    }

    /// Takes one count of a member away.
    pub(crate) fn remove(&mut self, member: Member, overlaps: Overlaps, delta: Option<&mut Delta>) {
        match member {
            Member::Net(IpNet::V4(net)) => {
                self.v4
                    .remove(net.addr().to_bits(), net.prefix_len(), overlaps, delta);
            }
            Member::Net(IpNet::V6(net)) => {
                self.v6
                    .remove(net.addr().to_bits(), net.prefix_len(), overlaps, delta);
            }
            Member::Port(address, protocol, port) => {
                let key = (address, protocol, port);
                let Some(count) = self.ports.get_mut(&key) else {
                    return;
                };
                *count -= 1;
                if *count == 0 {
                    self.ports.remove(&key);
                    if let Some(delta) = delta {
                        delta.note(member, false);
                    }
                }
            }
        }
    }

    /// Fills an empty set with many members at once.
    pub(crate) fn fill(&mut self, mut members: Vec<Member>) {
        members.sort_unstable();
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for member in members {
            match member {
                Member::Net(IpNet::V4(net)) => v4.push((net.addr().to_bits(), net.prefix_len())),
                Member::Net(IpNet::V6(net)) => v6.push((net.addr().to_bits(), net.prefix_len())),
                Member::Port(address, protocol, port) => {
                    *self.ports.entry((address, protocol, port)).or_default() += 1;
                }
            }
        }
        self.v4.fill(v4);
        self.v6.fill(v6);
    }

    /// The members to send, in order.
    pub(crate) fn visible(&self, overlaps: Overlaps) -> Vec<Member> {
        let mut out =
            Vec::with_capacity(self.v4.counts.len() + self.v6.counts.len() + self.ports.len());
        self.v4.visible(overlaps, &mut out);
        self.v6.visible(overlaps, &mut out);
        let port = |&(address, protocol, port): &(_, _, _)| Member::Port(address, protocol, port);
        out.extend(self.ports.keys().map(port));
        out
    }

    /// Whether an address is in one of the networks.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.v4.covers(address.to_bits()),
            IpAddr::V6(address) => self.v6.covers(address.to_bits()),
        }
    }

    /// Whether some member of the IP version is more than a single address.
    pub(crate) fn has_networks(&self, is_ipv4: bool) -> bool {
        if is_ipv4 {
            self.v4.has_networks()
        } else {
            self.v6.has_networks()
        }
    }

    /// The ports of an address that are members, of any protocol.
    pub(crate) fn ports_of(&self, address: IpAddr) -> impl Iterator<Item = u16> {
        let from = (address, PortProtocol::Tcp, 0);
        let ports = self.ports.range(from..).map(|(key, _)| *key);
        ports
            .take_while(move |(member, _, _)| *member == address)
            .map(|(_, _, port)| port)
    }

    /// Whether a port of an address is a member.
    pub(crate) fn contains_port(&self, address: IpAddr, protocol: PortProtocol, port: u16) -> bool {
        self.ports.contains_key(&(address, protocol, port))
    }
}

// === impl Delta ===

impl Delta {
    /// A member became visible or ceased to be; what happens and is undone leaves nothing.
    fn note(&mut self, member: Member, visible: bool) {
        match self.changes.entry(member) {
            std::collections::btree_map::Entry::Occupied(held) if *held.get() != visible => {
                held.remove();
            }
            entry => {
                entry.or_insert(visible);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Members that are new and members that are gone, each in order.
    pub(crate) fn split(self) -> (Vec<Member>, Vec<Member>) {
        let (added, removed): (Vec<_>, Vec<_>) =
            self.changes.into_iter().partition(|(_, visible)| *visible);
        let members = |changes: Vec<(Member, bool)>| changes.into_iter().map(|(m, _)| m).collect();
        (members(added), members(removed))
    }
}

// === impl Nets ===

impl<A: Address> Nets<A> {
    fn has_networks(&self) -> bool {
        self.lengths.iter().any(|(length, _)| *length < A::BITS)
    }

    fn add(&mut self, address: A, length: u8, overlaps: Overlaps, delta: Option<&mut Delta>) {
        let count = self.counts.entry((address, length)).or_default();
        *count += 1;
        if *count > 1 {
            return;
        }
        self.count_length(length, 1);
        let Some(delta) = delta else { return };
        if overlaps.leaves_out(length == A::BITS) && self.is_covered(address, length) {
            return;
        }
        delta.note(Member::Net(address.net(length)), true);
        self.for_each_covered_by(address, length, overlaps, |net| delta.note(net, false));
    }

    fn remove(&mut self, address: A, length: u8, overlaps: Overlaps, delta: Option<&mut Delta>) {
        let Some(count) = self.counts.get_mut(&(address, length)) else {
            return;
        };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.counts.remove(&(address, length));
        self.uncount_length(length, 1);
        let Some(delta) = delta else { return };
        if overlaps.leaves_out(length == A::BITS) && self.is_covered(address, length) {
            return;
        }
        delta.note(Member::Net(address.net(length)), false);
        self.for_each_covered_by(address, length, overlaps, |net| delta.note(net, true));
    }

    /// Builds the map in one go from sorted members, which leaves no half-empty nodes.
    fn fill(&mut self, sorted: Vec<(A, u8)>) {
        let mut counted: Vec<((A, u8), u32)> = Vec::with_capacity(sorted.len());
        for net in sorted {
            match counted.last_mut() {
                Some((last, count)) if *last == net => *count += 1,
                _ => {
                    counted.push((net, 1));
                    self.count_length(net.1, 1);
                }
            }
        }
        self.counts = counted.into_iter().collect();
    }

    fn visible(&self, overlaps: Overlaps, out: &mut Vec<Member>) {
        let mut covered_to: Option<A> = None;
        for &(address, length) in self.counts.keys() {
            let is_covered = covered_to.is_some_and(|last| address <= last);
            if is_covered && overlaps.leaves_out(length == A::BITS) {
                continue;
            }
            if !is_covered {
                covered_to = Some(address.last(length));
            }
            out.push(Member::Net(address.net(length)));
        }
    }

    /// Whether a strictly wider member contains this network.
    fn is_covered(&self, address: A, length: u8) -> bool {
        self.lengths
            .iter()
            .take_while(|(wider, _)| *wider < length)
            .any(|(wider, _)| self.counts.contains_key(&(address.masked(*wider), *wider)))
    }

    fn covers(&self, address: A) -> bool {
        self.lengths.iter().any(|(length, _)| {
            self.counts
                .contains_key(&(address.masked(*length), *length))
        })
    }

    /// Members strictly inside a network that are left out because of it: no other member inside it covers them.
    fn for_each_covered_by(
        &self,
        address: A,
        length: u8,
        overlaps: Overlaps,
        mut call: impl FnMut(Member),
    ) {
        if overlaps == Overlaps::Sent
            || length == A::BITS
            || self
                .lengths
                .last()
                .is_none_or(|(longest, _)| *longest <= length)
        {
            return;
        }
        let inside = (address, length + 1)..=(address.last(length), A::BITS);
        let mut covered_to: Option<A> = None;
        for &(inner, inner_length) in self.counts.range(inside).map(|(net, _)| net) {
            if covered_to.is_some_and(|last| inner <= last) {
                continue;
            }
            covered_to = Some(inner.last(inner_length));
            if overlaps.leaves_out(inner_length == A::BITS) {
                call(Member::Net(inner.net(inner_length)));
            }
        }
    }

    fn count_length(&mut self, length: u8, by: u32) {
        match self
            .lengths
            .binary_search_by_key(&length, |(held, _)| *held)
        {
            Ok(at) => self.lengths[at].1 += by,
            Err(at) => self.lengths.insert(at, (length, by)),
        }
    }

    fn uncount_length(&mut self, length: u8, by: u32) {
        if let Ok(at) = self
            .lengths
            .binary_search_by_key(&length, |(held, _)| *held)
        {
            self.lengths[at].1 -= by;
            if self.lengths[at].1 == 0 {
                self.lengths.remove(at);
            }
        }
    }
}

// === impl Address ===

impl Address for u32 {
    const BITS: u8 = 32;

    fn masked(self, length: u8) -> Self {
        self & Self::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
    }

    fn last(self, length: u8) -> Self {
        self | Self::MAX.checked_shr(u32::from(length)).unwrap_or(0)
    }

    fn net(self, length: u8) -> IpNet {
        Ipv4Net::new_assert(Ipv4Addr::from_bits(self), length).into()
    }
}

impl Address for u128 {
    const BITS: u8 = 128;

    fn masked(self, length: u8) -> Self {
        self & Self::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
    }

    fn last(self, length: u8) -> Self {
        self | Self::MAX.checked_shr(u32::from(length)).unwrap_or(0)
    }

    fn net(self, length: u8) -> IpNet {
        Ipv6Net::new_assert(Ipv6Addr::from_bits(self), length).into()
    }
}

#[cfg(test)]
mod tests;
