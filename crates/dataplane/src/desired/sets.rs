//! Sets: their members, and what the kernel is told of them.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use ipnet::IpNet;
use tortie_engine::message::{IpSetDelta, IpSetUpdate, Member, SetId, SetType};
use tortie_rules::{Dataplane, IpVersion, SetLayout, ip_set_name, networks_set_name};

use crate::change::{Members, SetChange, SetKind};

/// All sets that policies refer to.
#[derive(Debug, Default)]
pub(super) struct Sets {
    known: HashMap<SetId, Set>,
    /// Sets that are gone and are still in the kernel.
    removed: HashMap<SetId, Set>,
    /// Sets that have something new for the kernel.
    changed: HashSet<SetId>,
}

#[derive(Debug)]
struct Set {
    kind: SetType,
    members: HashSet<Member>,
    /// How many members are networks, for each IP version.
    networks: [usize; 2],
    /// How the kernel has it; `None` if it has not.
    told: Option<[SetLayout; 2]>,
    /// What the kernel has not been told; `None` if that is everything.
    pending: Option<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    added: HashSet<Member>,
    removed: HashSet<Member>,
}

impl Sets {
    /// A set is new, or has other members altogether.
    pub(super) fn update(&mut self, update: IpSetUpdate) {
        let id = update.id;
        let before = self.known.remove(&id).or_else(|| self.removed.remove(&id));
        let members: HashSet<Member> = update.members.into_iter().collect();
        let mut networks = [0; 2];
        for member in members.iter().filter(|member| is_network(member)) {
            networks[version_of(member) as usize] += 1;
        }
        self.changed.insert(id.clone());
        self.known.insert(
            id,
            Set {
                kind: update.r#type,
                members,
                networks,
                told: before.and_then(|set| set.told),
                pending: None,
            },
        );
    }

    /// Some members come and some go.
    pub(super) fn delta(&mut self, delta: IpSetDelta) {
        let Some(set) = self.known.get_mut(&delta.id) else {
            tracing::error!(set = %delta.id, "Members came for a set that is not known");
            return;
        };
        for member in delta.removed {
            set.remove(member);
        }
        for member in delta.added {
            set.add(member);
        }
        self.changed.insert(delta.id);
    }

    /// A set is not used any more.
    pub(super) fn remove(&mut self, id: &SetId) {
        self.changed.remove(id);
        if let Some(set) = self.known.remove(id)
            && set.told.is_some()
        {
            self.removed.insert(id.clone(), set);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &SetId> {
        self.known.keys()
    }

    /// How many members a set has.
    pub(super) fn size(&self, id: &SetId) -> usize {
        self.known.get(id).map_or(0, |set| set.members.len())
    }

    /// Where nftables keeps the members of a set.
    pub(super) fn layout(&self, id: &SetId, version: IpVersion) -> SetLayout {
        let set = self.known.get(id);
        set.map_or_else(SetLayout::default, |set| set.layout(version))
    }

    /// Sets whose layout is not the one that the kernel has; the rules that look into them must follow.
    pub(super) fn reshaped(&self) -> HashSet<SetId> {
        let changed = self.changed.iter().filter(|id| {
            let set = self.known.get(*id);
            set.is_some_and(|set| set.told.is_some_and(|told| told != set.layouts()))
        });
        changed.cloned().collect()
    }

    pub(super) fn everything(&self, version: IpVersion, dataplane: Dataplane) -> Vec<SetChange> {
        let sets = self.known.iter();
        sets.flat_map(|(id, set)| set.all(id, version, dataplane))
            .collect()
    }

    /// What the kernel has not been told, for one IP version.
    pub(super) fn changes(&self, version: IpVersion, dataplane: Dataplane) -> Vec<SetChange> {
        let mut changes = Vec::new();
        for id in &self.changed {
            if let Some(set) = self.known.get(id) {
                set.changes(id, version, dataplane, &mut changes);
            }
        }
        for (id, set) in &self.removed {
            set.gone(id, version, dataplane, &mut changes);
        }
        changes
    }

    /// The kernel has been told everything.
    pub(super) fn told(&mut self) {
        self.removed.clear();
        for id in self.changed.drain() {
            if let Some(set) = self.known.get_mut(&id) {
                set.told();
            }
        }
    }

    /// The kernel has been told everything anew.
    pub(super) fn all_told(&mut self) {
        self.removed.clear();
        self.changed.clear();
        for set in self.known.values_mut() {
            set.told();
        }
    }
}

impl Set {
    fn add(&mut self, member: Member) {
        if !self.members.insert(member) {
            return;
        }
        self.networks[version_of(&member) as usize] += usize::from(is_network(&member));
        if let Some(pending) = &mut self.pending
            && !pending.removed.remove(&member)
        {
            pending.added.insert(member);
        }
    }

    fn remove(&mut self, member: Member) {
        if !self.members.remove(&member) {
            return;
        }
        self.networks[version_of(&member) as usize] -= usize::from(is_network(&member));
        if let Some(pending) = &mut self.pending
            && !pending.added.remove(&member)
        {
            pending.removed.insert(member);
        }
    }

    fn told(&mut self) {
        self.told = Some(self.layouts());
        self.pending = Some(Pending::default());
    }

    fn layout(&self, version: IpVersion) -> SetLayout {
        SetLayout {
            networks: self.networks[version as usize] > 0,
        }
    }

    fn layouts(&self) -> [SetLayout; 2] {
        [IpVersion::V4, IpVersion::V6].map(|version| self.layout(version))
    }

    fn changes(
        &self,
        id: &SetId,
        version: IpVersion,
        dataplane: Dataplane,
        changes: &mut Vec<SetChange>,
    ) {
        let told = self.told.map(|told| told[version as usize]);
        let had_networks = told.is_some_and(|told| told.networks);
        for part in self.parts(id, self.layout(version), version, dataplane) {
            let of_part = |members: &HashSet<Member>| -> Vec<Member> {
                let members = members.iter().filter(|member| part.holds(member));
                members.copied().collect()
            };
            let is_new = told.is_none() || (part.is_networks && !had_networks);
            let change = match &self.pending {
                Some(pending) if !is_new => {
                    let (added, removed) = (of_part(&pending.added), of_part(&pending.removed));
                    if added.is_empty() && removed.is_empty() {
                        continue;
                    }
                    Members::Delta { added, removed }
                }
                _ => Members::All(of_part(&self.members)),
            };
            changes.push(part.change(change));
        }
        if had_networks && !self.layout(version).networks {
            let parts = self.parts(id, SetLayout { networks: true }, version, dataplane);
            let parts = parts.iter().filter(|part| part.is_networks);
            changes.extend(parts.map(|part| part.change(Members::Gone)));
        }
    }

    fn all(&self, id: &SetId, version: IpVersion, dataplane: Dataplane) -> Vec<SetChange> {
        let parts = self.parts(id, self.layout(version), version, dataplane);
        parts
            .into_iter()
            .map(|part| {
                let members = self.members.iter().filter(|member| part.holds(member));
                let members = members.copied().collect();
                part.change(Members::All(members))
            })
            .collect()
    }

    fn gone(
        &self,
        id: &SetId,
        version: IpVersion,
        dataplane: Dataplane,
        changes: &mut Vec<SetChange>,
    ) {
        let Some(told) = self.told else { return };
        let parts = self.parts(id, told[version as usize], version, dataplane);
        changes.extend(parts.iter().map(|part| part.change(Members::Gone)));
    }

    /// The sets of the kernel that make up this one.
    fn parts(
        &self,
        id: &SetId,
        layout: SetLayout,
        version: IpVersion,
        dataplane: Dataplane,
    ) -> Vec<Part> {
        let name: Arc<str> = ip_set_name(id.as_str(), version, dataplane).into();
        let part = |name, kind, is_networks, is_split| Part {
            name,
            kind,
            version,
            is_networks,
            is_split,
        };
        match (self.kind, dataplane) {
            (SetType::IpAndPort, _) => vec![part(name, SetKind::Ports, false, false)],
            (SetType::Net, Dataplane::Iptables) => {
                vec![part(name, SetKind::Networks, false, false)]
            }
            (SetType::Net, Dataplane::Nftables) => {
                let networks: Arc<str> = networks_set_name(&name).into();
                let mut parts = vec![part(name, SetKind::Addresses, false, true)];
                if layout.networks {
                    parts.push(part(networks, SetKind::Networks, true, true));
                }
                parts
            }
        }
    }
}

/// A set of the kernel.
struct Part {
    name: Arc<str>,
    kind: SetKind,
    version: IpVersion,
    is_networks: bool,
    /// Networks and single addresses are apart.
    is_split: bool,
}

impl Part {
    fn holds(&self, member: &Member) -> bool {
        version_of(member) == self.version
            && (!self.is_split || is_network(member) == self.is_networks)
    }

    fn change(&self, change: Members) -> SetChange {
        SetChange {
            name: Arc::clone(&self.name),
            kind: self.kind,
            change,
        }
    }
}

fn is_network(member: &Member) -> bool {
    matches!(member, Member::Net(net) if net.prefix_len() < net.max_prefix_len())
}

fn version_of(member: &Member) -> IpVersion {
    let is_v4 = match member {
        Member::Net(net) => matches!(net, IpNet::V4(_)),
        Member::Port(address, ..) => address.is_ipv4(),
    };
    if is_v4 { IpVersion::V4 } else { IpVersion::V6 }
}
