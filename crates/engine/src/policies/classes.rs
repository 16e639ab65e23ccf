//! Classes of local endpoints that match the same policy selectors, and the list of policies of each.

use std::sync::Arc;

use crate::slab::Slab;
use hashbrown::HashMap;

use super::order::{compare_policies, compare_tiers};
use super::{
    APPLY_ON_FORWARD, EGRESS, INGRESS, PRE_DNAT, Policies, PolicyIdx, SelectorUse, UNTRACKED,
};
use crate::id_set::IdSet;
use crate::input::DefaultAction;
use crate::message::{TierInfo, Tiers};
use crate::selectors::{SelectorIdx, Selectors};

/// The number of a class.
pub(crate) type ClassIdx = u32;

/// All classes that have endpoints.
#[derive(Default)]
pub(crate) struct Classes {
    slots: Slab<Class>,
    by_selectors: HashMap<Box<[SelectorIdx]>, ClassIdx>,
    dirty: Vec<ClassIdx>,
    /// Selectors that began or ceased to match anything.
    pub(crate) switched: Vec<SelectorIdx>,
}

struct Class {
    selectors: Box<[SelectorIdx]>,
    endpoints: IdSet,
    lists: Arc<TierLists>,
    is_dirty: bool,
}

/// The tiers of an endpoint with policies, for each of the four points at which a host applies policy.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TierLists {
    pub(crate) normal: Tiers,
    pub(crate) untracked: Tiers,
    pub(crate) pre_dnat: Tiers,
    pub(crate) forward: Tiers,
}

// === impl Classes ===

impl Classes {
    /// Puts an endpoint into the class of what it matches, which must be sorted.
    pub(crate) fn join(
        &mut self,
        endpoint: u32,
        matched: &[SelectorIdx],
        selectors: &mut Selectors<SelectorUse>,
    ) -> ClassIdx {
        if let Some(&class) = self.by_selectors.get(matched) {
            self.slots[class as usize].endpoints.insert(endpoint);
            return class;
        }
        let mut endpoints = IdSet::default();
        endpoints.insert(endpoint);
        let class = crate::index(self.slots.insert(Class {
            selectors: matched.into(),
            endpoints,
            lists: Arc::default(),
            is_dirty: false,
        }));
        self.by_selectors.insert(matched.into(), class);
        for &selector in matched {
            let classes = &mut selectors.owner_mut(selector).classes;
            classes.insert(class);
            if classes.len() == 1 {
                self.switched.push(selector);
            }
        }
        self.touch(class);
        class
    }

    /// Takes an endpoint out of its class; a class without endpoints is forgotten.
    pub(crate) fn leave(
        &mut self,
        endpoint: u32,
        class: ClassIdx,
        selectors: &mut Selectors<SelectorUse>,
    ) {
        let endpoints = &mut self.slots[class as usize].endpoints;
        endpoints.remove(endpoint);
        if !endpoints.is_empty() {
            return;
        }
        let gone = self.slots.remove(class as usize);
        self.by_selectors.remove(&gone.selectors);
        for &selector in &gone.selectors {
            let classes = &mut selectors.owner_mut(selector).classes;
            classes.remove(class);
            if classes.is_empty() {
                self.switched.push(selector);
            }
        }
    }

    /// The selectors that the endpoints of a class match, in order.
    pub(crate) fn selectors(&self, class: ClassIdx) -> &[SelectorIdx] {
        &self.slots[class as usize].selectors
    }

    pub(crate) fn endpoints(&self, class: ClassIdx) -> impl Iterator<Item = u32> {
        self.slots[class as usize].endpoints.iter()
    }

    pub(crate) fn lists(&self, class: ClassIdx) -> &Arc<TierLists> {
        &self.slots[class as usize].lists
    }

    pub(crate) fn touch(&mut self, class: ClassIdx) {
        if let Some(held) = self.slots.get_mut(class as usize)
            && !held.is_dirty
        {
            held.is_dirty = true;
            self.dirty.push(class);
        }
    }

    pub(crate) fn touch_all(&mut self) {
        let all: Vec<usize> = self.slots.iter().map(|(class, _)| class).collect();
        for class in all {
            self.touch(crate::index(class));
        }
    }
}

impl Policies {
    /// Makes the lists of classes that may have changed; gives those that did.
    pub(crate) fn order_classes(&mut self) -> Vec<ClassIdx> {
        let mut changed = Vec::new();
        for idx in std::mem::take(&mut self.classes.dirty) {
            let Some(class) = self.classes.slots.get(idx as usize) else {
                continue;
            };
            if !class.is_dirty {
                continue;
            }
            let lists = self.lists(&class.selectors);
            let class = &mut self.classes.slots[idx as usize];
            class.is_dirty = false;
            if *class.lists != lists {
                class.lists = Arc::new(lists);
                changed.push(idx);
            }
        }
        changed
    }

    /// The policies behind selectors, in order.
    pub(crate) fn ordered(&self, selectors: &[SelectorIdx]) -> Vec<PolicyIdx> {
        let mut policies: Vec<PolicyIdx> = selectors
            .iter()
            .flat_map(|selector| self.selectors.owner(*selector).policies.iter())
            .collect();
        policies.sort_unstable_by(|a, b| {
            let (a, b) = (self.get(*a), self.get(*b));
            if a.tier == b.tier {
                compare_policies(a, b)
            } else {
                compare_tiers(self, a.tier, b.tier)
            }
        });
        policies
    }

    fn lists(&self, selectors: &[SelectorIdx]) -> TierLists {
        let (mut normal, mut untracked) = (Vec::new(), Vec::new());
        let (mut pre_dnat, mut forward) = (Vec::new(), Vec::new());
        let policies = self.ordered(selectors);
        for of_tier in policies.chunk_by(|a, b| self.get(*a).tier == self.get(*b).tier) {
            let Some(tier) = of_tier.first().map(|first| self.get(*first).tier) else {
                continue;
            };
            let name: Arc<str> = self.tier_name(tier).into();
            let list = |default_action| TierInfo {
                name: Arc::clone(&name),
                default_action,
                ..TierInfo::default()
            };
            // Whatever these leave undecided goes on to the normal policies.
            let (mut of_untracked, mut of_pre_dnat) = (
                list(Some(DefaultAction::Pass)),
                list(Some(DefaultAction::Pass)),
            );
            let default_action = self.tiers.default_action(tier);
            let (mut of_normal, mut of_forward) = (list(default_action), list(default_action));
            for &idx in of_tier {
                let flags = self.get(idx).flags;
                if flags & UNTRACKED != 0 {
                    self.push(&mut of_untracked, idx, INGRESS | EGRESS);
                } else if flags & PRE_DNAT != 0 {
                    self.push(&mut of_pre_dnat, idx, INGRESS);
                } else {
                    if flags & APPLY_ON_FORWARD != 0 {
                        self.push(&mut of_forward, idx, INGRESS | EGRESS);
                    }
                    self.push(&mut of_normal, idx, INGRESS | EGRESS);
                }
            }
            for (lists, of_tier) in [
                (&mut normal, of_normal),
                (&mut untracked, of_untracked),
                (&mut pre_dnat, of_pre_dnat),
                (&mut forward, of_forward),
            ] {
                if !of_tier.ingress_policies.is_empty() || !of_tier.egress_policies.is_empty() {
                    lists.push(of_tier);
                }
            }
        }
        TierLists {
            normal: normal.into(),
            untracked: untracked.into(),
            pre_dnat: pre_dnat.into(),
            forward: forward.into(),
        }
    }

    fn push(&self, list: &mut TierInfo, idx: PolicyIdx, directions: u8) {
        let policy = self.get(idx);
        let Some(active) = &policy.active else {
            return;
        };
        if policy.flags & directions & INGRESS != 0 {
            list.ingress_policies.push(Arc::clone(&active.id));
        }
        if policy.flags & directions & EGRESS != 0 {
            list.egress_policies.push(Arc::clone(&active.id));
        }
    }
}
