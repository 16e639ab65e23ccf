//! Finding the members of sets that came into use.

use std::collections::BTreeMap;

use super::{FEW_ITEMS, SetIdx, Sets};
use crate::items::Items;
use crate::message::Member;
use crate::names::Names;
use crate::profiles::Profiles;
use crate::selectors::{Filed, SelectorIdx};

impl Sets {
    /// Finds the members of all fresh sets.
    pub(crate) fn resolve(&mut self, items: &Items, profiles: &Profiles, names: &mut Names) {
        let fresh = std::mem::take(&mut self.fresh);
        // Those that ceased to be used meanwhile are not worth it.
        let fresh: Vec<SetIdx> = fresh
            .into_iter()
            .filter(|idx| {
                self.slots
                    .get(*idx as usize)
                    .is_some_and(|set| set.uses > 0)
            })
            .collect();
        let mut found: BTreeMap<SetIdx, Vec<Member>> =
            fresh.iter().map(|idx| (*idx, Vec::new())).collect();
        let must_look_at_all = self.is_first
            || items.len() <= FEW_ITEMS
            || fresh
                .iter()
                .any(|idx| *self.filed(*idx) == Filed::Everywhere);
        if !fresh.is_empty() {
            if must_look_at_all {
                self.resolve_by_scan(&fresh, items, profiles, &mut found);
            } else {
                self.track(&fresh, items, profiles, names);
                self.resolve_by_index(&fresh, items, profiles, &mut found);
            }
        }
        for (idx, members) in found {
            let set = &mut self.slots[idx as usize];
            set.members.fill(members);
            set.is_fresh = false;
        }
        self.selectors.settle();
        self.is_first = false;
    }

    fn filed(&self, idx: SetIdx) -> &Filed {
        match self.slots[idx as usize].content.selector() {
            Some(selector) => self.selectors.filed(selector),
            None => &Filed::Nowhere,
        }
    }

    fn resolve_by_scan(
        &mut self,
        fresh: &[SetIdx],
        items: &Items,
        profiles: &Profiles,
        found: &mut BTreeMap<SetIdx, Vec<Member>>,
    ) {
        // A new set can also be over a selector that others already use.
        let on_settled: Vec<(SetIdx, SelectorIdx)> = fresh
            .iter()
            .filter_map(|idx| Some((*idx, self.slots[*idx as usize].content.selector()?)))
            .filter(|(_, selector)| !self.selectors.is_fresh(*selector))
            .collect();
        let mut matched = Vec::new();
        for (_, item) in items.iter() {
            let labels = item.all_labels(profiles);
            self.selectors.fresh_matches(&labels, &mut matched);
            for &selector in &matched {
                for idx in self.selectors.owner(selector).iter() {
                    if let Some(members) = found.get_mut(&idx) {
                        let content = &self.slots[idx as usize].content;
                        content.for_each_member(item, |member| members.push(member));
                    }
                }
            }
            for (idx, selector) in &on_settled {
                if self.selectors.is_match(*selector, &labels)
                    && let Some(members) = found.get_mut(idx)
                {
                    let content = &self.slots[*idx as usize].content;
                    content.for_each_member(item, |member| members.push(member));
                }
            }
        }
    }

    /// Makes sure that items and profiles can be found by the labels that fresh sets are filed under.
    fn track(&mut self, fresh: &[SetIdx], items: &Items, profiles: &Profiles, names: &mut Names) {
        let mut new: Vec<u32> = fresh
            .iter()
            .filter_map(|idx| self.filed(*idx).name())
            .filter(|name| !self.item_postings.is_tracked(*name))
            .collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return;
        }
        for &name in &new {
            names.retain(name);
            self.item_postings.track(name);
            self.profile_postings.track(name);
        }
        let Self {
            selectors,
            item_postings,
            profile_postings,
            ..
        } = self;
        let hash = |value: &[u8]| selectors.value_hash(value);
        let wanted = |name: u32| new.binary_search(&name).is_ok();
        for (idx, item) in items.iter() {
            item_postings.insert(item.labels(), idx, hash, wanted);
        }
        for (idx, profile) in profiles.iter() {
            profile_postings.insert(&profile.labels, idx, hash, wanted);
        }
    }

    fn resolve_by_index(
        &mut self,
        fresh: &[SetIdx],
        items: &Items,
        profiles: &Profiles,
        found: &mut BTreeMap<SetIdx, Vec<Member>>,
    ) {
        let mut candidates = Vec::new();
        for &idx in fresh {
            let content = &self.slots[idx as usize].content;
            let (Some(selector), Some(members)) = (content.selector(), found.get_mut(&idx)) else {
                continue;
            };
            candidates.clear();
            let filed = self.selectors.filed(selector);
            self.item_postings.find(filed, |item| candidates.push(item));
            self.profile_postings.find(filed, |profile| {
                candidates.extend(profiles.get(profile).items.iter());
            });
            candidates.sort_unstable();
            candidates.dedup();
            for &candidate in &candidates {
                let item = items.get(candidate);
                let labels = item.all_labels(profiles);
                if self.selectors.is_match(selector, &labels) {
                    content.for_each_member(item, |member| members.push(member));
                }
            }
        }
    }
}
