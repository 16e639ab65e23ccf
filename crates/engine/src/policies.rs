//! Policies and tiers: which policies apply to which local endpoints, in which order.
//!
//! Local endpoints that match the same selectors have the same policies. They form a *class*, and the ordered list is
//! made once per class: a new pod of a known class costs a lookup, and a change of a policy costs the classes that it
//! applies to.

pub(crate) mod classes;
pub(crate) mod order;
pub(crate) mod packed;

use std::hash::BuildHasher as _;
use std::sync::Arc;

use crate::slab::Slab;
use hashbrown::{DefaultHashBuilder, HashTable};
use tortie_api::names::{PolicyId, PolicyKind};
use tortie_api::rule::PolicyType;
use tortie_selector::Selector;

use crate::id_set::IdSet;
use crate::input;
use crate::names::Names;
use crate::selectors::{SelectorIdx, Selectors};
use classes::Classes;
use order::Tiers;

/// The number of a policy.
pub(crate) type PolicyIdx = u32;

pub(crate) const INGRESS: u8 = 1;
pub(crate) const EGRESS: u8 = 1 << 1;
pub(crate) const UNTRACKED: u8 = 1 << 2;
pub(crate) const PRE_DNAT: u8 = 1 << 3;
pub(crate) const APPLY_ON_FORWARD: u8 = 1 << 4;
/// Active even where it applies to no endpoint.
pub(crate) const ALWAYS_ACTIVE: u8 = 1 << 5;

/// All policies of the cluster.
#[derive(Default)]
pub(crate) struct Policies {
    slots: Slab<Policy>,
    by_key: HashTable<PolicyIdx>,
    hasher: DefaultHashBuilder,
    pub(crate) selectors: Selectors<SelectorUse>,
    pub(crate) classes: Classes,
    pub(crate) tiers: Tiers,
    tier_names: Names,
    /// Policies to look at in the next flush.
    dirty: Vec<PolicyIdx>,
    /// Selectors that may have no policy any more.
    unused_selectors: Vec<SelectorIdx>,
}

pub(crate) struct Policy {
    /// Kind, namespace and name, packed.
    key: Box<[u8]>,
    /// Selector and rules, packed.
    pub(crate) packed: Box<[u8]>,
    /// Its place in the tier; infinite where not given.
    pub(crate) order: f64,
    pub(crate) tier: u32,
    pub(crate) selector: SelectorIdx,
    pub(crate) flags: u8,
    pub(crate) is_deleted: bool,
    is_dirty: bool,
    /// Whether what the data plane gets may differ from what it has.
    pub(crate) is_changed: bool,
    /// What it is while it applies to something here.
    pub(crate) active: Option<Box<ActivePolicy>>,
}

/// A policy that applies to something here.
pub(crate) struct ActivePolicy {
    pub(crate) id: Arc<PolicyId>,
    /// The sets that its rules use, in the order in which they do.
    pub(crate) sets: Box<[u32]>,
}

/// Who uses a policy selector, and what it matches.
#[derive(Default)]
pub(crate) struct SelectorUse {
    pub(crate) policies: IdSet,
    /// The classes of endpoints that match it.
    pub(crate) classes: IdSet,
}

// === impl Policies ===

impl Policies {
    /// A policy changed. One whose selector does not parse is treated as absent.
    pub(crate) fn update(
        &mut self,
        id: &PolicyId,
        policy: Option<&input::Policy>,
        names: &mut Names,
    ) {
        let key = pack_key(id);
        let found = self.find_key(&key);
        let parsed =
            policy.and_then(|policy| Some((policy, Selector::parse(&policy.selector).ok()?)));
        let Some((policy, selector)) = parsed else {
            if let Some(idx) = found {
                self.delete(idx);
            }
            return;
        };
        let packed = packed::pack(&policy.selector, &policy.inbound, &policy.outbound);
        let flags = flags(policy);
        let order = policy.order.unwrap_or(f64::INFINITY);
        let tier_name = if policy.tier.is_empty() {
            "default"
        } else {
            &policy.tier
        };
        let tier = self.tier_names.acquire(tier_name);
        if let Some(idx) = found {
            let held = &self.slots[idx as usize];
            if held.packed == packed
                && held.flags == flags
                && held.order.total_cmp(&order).is_eq()
                && held.tier == tier
                && !held.is_deleted
            {
                self.tier_names.release(tier);
                return;
            }
        }
        let selector = self
            .selectors
            .acquire(&selector, names, SelectorUse::default);
        let idx = match found {
            Some(idx) => {
                let held = &mut self.slots[idx as usize];
                let (old_selector, old_tier) = (held.selector, held.tier);
                let was_deleted = std::mem::take(&mut held.is_deleted);
                held.is_changed |=
                    held.packed != packed || held.flags != flags || held.tier != tier;
                held.packed = packed;
                held.flags = flags;
                held.order = order;
                held.tier = tier;
                held.selector = selector;
                self.tier_names.release(old_tier);
                if old_selector != selector && !was_deleted {
                    self.leave_selector(idx, old_selector);
                }
                idx
            }
            None => self.insert(Policy {
                key,
                packed,
                order,
                tier,
                selector,
                flags,
                is_deleted: false,
                is_dirty: false,
                is_changed: true,
                active: None,
            }),
        };
        self.selectors.owner_mut(selector).policies.insert(idx);
        self.touch_classes(selector);
        self.touch(idx);
    }

    fn insert(&mut self, policy: Policy) -> PolicyIdx {
        let hash = self.hasher.hash_one(&policy.key);
        let idx = crate::index(self.slots.insert(policy));
        self.by_key.insert_unique(hash, idx, |idx| {
            self.hasher.hash_one(&self.slots[*idx as usize].key)
        });
        idx
    }

    fn delete(&mut self, idx: PolicyIdx) {
        let policy = &mut self.slots[idx as usize];
        if !std::mem::replace(&mut policy.is_deleted, true) {
            let selector = policy.selector;
            self.leave_selector(idx, selector);
            self.touch(idx);
        }
    }

    fn leave_selector(&mut self, idx: PolicyIdx, selector: SelectorIdx) {
        self.touch_classes(selector);
        let policies = &mut self.selectors.owner_mut(selector).policies;
        policies.remove(idx);
        if policies.is_empty() {
            self.unused_selectors.push(selector);
        }
    }

    pub(crate) fn update_tier(&mut self, name: &str, tier: Option<&input::Tier>) {
        let id = self.tier_names.acquire(name);
        let was_known = self.tiers.contains(id);
        self.tiers.update(id, tier);
        // A tier that exists keeps its name in use once.
        if was_known {
            self.tier_names.release(id);
        }
        if tier.is_none() {
            self.tier_names.release(id);
        }
        self.classes.touch_all();
    }

    /// Notes that a policy may have changed what it is or whether it is active.
    pub(crate) fn touch(&mut self, idx: PolicyIdx) {
        let policy = &mut self.slots[idx as usize];
        if !policy.is_dirty {
            policy.is_dirty = true;
            self.dirty.push(idx);
        }
    }

    fn touch_classes(&mut self, selector: SelectorIdx) {
        let Self {
            selectors, classes, ..
        } = self;
        for class in selectors.owner(selector).classes.iter() {
            classes.touch(class);
        }
    }

    /// Selectors that no policy has any more, to be taken out of the classes that match them.
    pub(crate) fn take_unused_selectors(&mut self) -> Vec<SelectorIdx> {
        let mut unused = std::mem::take(&mut self.unused_selectors);
        unused.sort_unstable();
        unused.dedup();
        unused.retain(|idx| self.selectors.owner(*idx).policies.is_empty());
        unused
    }

    /// The policies to look at, in order of their keys.
    pub(crate) fn take_dirty(&mut self) -> Vec<PolicyIdx> {
        let mut dirty = std::mem::take(&mut self.dirty);
        for &idx in &dirty {
            self.slots[idx as usize].is_dirty = false;
        }
        dirty.sort_unstable_by(|a, b| {
            self.slots[*a as usize]
                .key
                .cmp(&self.slots[*b as usize].key)
        });
        dirty
    }

    /// Forgets a deleted policy.
    pub(crate) fn forget(&mut self, idx: PolicyIdx) {
        let policy = self.slots.remove(idx as usize);
        let hash = self.hasher.hash_one(&policy.key);
        if let Ok(entry) = self.by_key.find_entry(hash, |held| *held == idx) {
            entry.remove();
        }
        self.tier_names.release(policy.tier);
    }

    /// Whether a policy applies to something here.
    pub(crate) fn is_needed(&self, idx: PolicyIdx) -> bool {
        let policy = self.get(idx);
        !policy.is_deleted
            && (policy.flags & ALWAYS_ACTIVE != 0
                || !self.selectors.owner(policy.selector).classes.is_empty())
    }

    pub(crate) fn get(&self, idx: PolicyIdx) -> &Policy {
        &self.slots[idx as usize]
    }

    pub(crate) fn get_mut(&mut self, idx: PolicyIdx) -> &mut Policy {
        &mut self.slots[idx as usize]
    }

    pub(crate) fn find(&self, id: &PolicyId) -> Option<PolicyIdx> {
        self.find_key(&pack_key(id))
            .filter(|idx| !self.get(*idx).is_deleted)
    }

    fn find_key(&self, key: &[u8]) -> Option<PolicyIdx> {
        let hash = self.hasher.hash_one(key);
        self.by_key
            .find(hash, |idx| *self.slots[*idx as usize].key == *key)
            .copied()
    }

    pub(crate) fn tier_name(&self, tier: u32) -> &str {
        self.tier_names.text(tier)
    }
}

// === impl Policy ===

impl Policy {
    pub(crate) fn id(&self) -> PolicyId {
        unpack_key(&self.key)
    }

    /// Name, namespace and kind, of which the first that differs decides between policies of the same order.
    pub(crate) fn name_parts(&self) -> (&[u8], &[u8], PolicyKind) {
        let (kind, rest) = split_key(&self.key);
        let at = rest
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(rest.len());
        (rest.get(at + 1..).unwrap_or_default(), &rest[..at], kind)
    }
}

fn flags(policy: &input::Policy) -> u8 {
    let governs =
        |direction: PolicyType| policy.types.is_empty() || policy.types.contains(&direction);
    [
        (governs(PolicyType::Ingress), INGRESS),
        (governs(PolicyType::Egress), EGRESS),
        (policy.untracked, UNTRACKED),
        (policy.pre_dnat, PRE_DNAT),
        (policy.apply_on_forward, APPLY_ON_FORWARD),
        (policy.assume_needed_on_every_node, ALWAYS_ACTIVE),
    ]
    .into_iter()
    .filter(|(is_set, _)| *is_set)
    .fold(0, |flags, (_, flag)| flags | flag)
}

fn pack_key(id: &PolicyId) -> Box<[u8]> {
    let kind = (0_u8..)
        .zip(PolicyKind::ALL)
        .find(|(_, kind)| *kind == id.kind);
    let mut key = Vec::with_capacity(id.namespace.len() + id.name.len() + 2);
    key.push(kind.map_or(0, |(at, _)| at));
    key.extend_from_slice(id.namespace.as_bytes());
    key.push(0);
    key.extend_from_slice(id.name.as_bytes());
    key.into_boxed_slice()
}

fn split_key(key: &[u8]) -> (PolicyKind, &[u8]) {
    let (kind, rest) = key.split_first().unwrap_or((&0, &[]));
    (PolicyKind::ALL[usize::from(*kind)], rest)
}

fn unpack_key(key: &[u8]) -> PolicyId {
    let (kind, rest) = split_key(key);
    let text = String::from_utf8_lossy(rest);
    let (namespace, name) = text.split_once('\0').unwrap_or(("", &text));
    PolicyId {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}
