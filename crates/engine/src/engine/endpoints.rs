//! Endpoints that are local, the profiles that they use, and the classes that they are in; profiles that change.

use super::Engine;
use crate::input::Profile;
use crate::items::{ItemIdx, NOT_LOCAL};
use crate::labels;
use crate::locals::{LocalEndpoint, LocalIdx};
use crate::policies::packed;
use crate::profiles::ProfileIdx;
use crate::selectors::SelectorIdx;

impl Engine {
    pub(super) fn set_local(&mut self, item: ItemIdx, endpoint: impl FnOnce() -> LocalEndpoint) {
        let endpoint = endpoint();
        let local = self.items.get(item).local;
        if local == NOT_LOCAL {
            self.use_profiles(&endpoint, 1);
            self.match_policies(item);
            let Self {
                locals,
                policies,
                matched,
                ..
            } = self;
            let local = locals.insert(item, endpoint, |local| {
                policies
                    .classes
                    .join(local, matched, &mut policies.selectors)
            });
            self.items.get_mut(item).local = local;
            return;
        }
        if self.locals.get(local).endpoint != endpoint {
            self.use_profiles(&endpoint, 1);
            let old = std::mem::replace(&mut self.locals.get_mut(local).endpoint, endpoint);
            self.use_profiles(&old, -1);
            self.locals.change(local);
            self.rematch(local);
        }
    }

    pub(super) fn remove_local(&mut self, idx: LocalIdx) {
        let local = self.locals.remove(idx);
        let Self { policies, .. } = self;
        policies
            .classes
            .leave(idx, local.class, &mut policies.selectors);
        self.use_profiles(&local.endpoint, -1);
    }

    /// Counts the uses of profiles by local endpoints.
    fn use_profiles(&mut self, endpoint: &LocalEndpoint, by: i32) {
        for name in endpoint.profiles() {
            // The item refers to its profiles, so they have entries.
            let idx = self.profiles.entry(name);
            let profile = self.profiles.get_mut(idx);
            profile.local_uses = profile.local_uses.saturating_add_signed(by);
            self.touch_profile(idx);
        }
    }

    fn touch_profile(&mut self, idx: ProfileIdx) {
        let profile = self.profiles.get_mut(idx);
        if !profile.dirty {
            profile.dirty = true;
            self.dirty_profiles.push(idx);
        }
    }

    /// Leaves in `self.matched` the settled policy selectors that an item matches.
    fn match_policies(&mut self, item: ItemIdx) {
        let item = self.items.get(item);
        let labels = item.all_labels(&self.profiles);
        self.policies.selectors.matches(&labels, &mut self.matched);
    }

    /// Finds the class of a local endpoint again.
    fn rematch(&mut self, idx: LocalIdx) {
        self.match_policies(self.locals.get(idx).item);
        self.move_to_class(idx);
    }

    /// Puts a local endpoint into the class of `self.matched`.
    pub(super) fn move_to_class(&mut self, idx: LocalIdx) {
        let Self {
            locals,
            policies,
            matched,
            ..
        } = self;
        let local = locals.get_mut(idx);
        if policies.classes.selectors(local.class) == &**matched {
            return;
        }
        let old = local.class;
        local.class = policies.classes.join(idx, matched, &mut policies.selectors);
        policies.classes.leave(idx, old, &mut policies.selectors);
        locals.touch(idx);
    }

    pub(super) fn update_profile(&mut self, name: &str, profile: Option<&Profile>) {
        let found = self.profiles.find(name);
        let Some(idx) = found.or_else(|| profile.map(|_| self.profiles.entry(name))) else {
            return;
        };
        let mut new_labels = Vec::new();
        if let Some(profile) = profile {
            labels::pack(&profile.labels, &mut self.names, &mut new_labels);
        }
        let rules = profile.map(|profile| packed::pack("", &profile.inbound, &profile.outbound));
        let held = self.profiles.get_mut(idx);
        if held.rules == rules && *held.labels == *new_labels {
            labels::release(&new_labels, &mut self.names);
            return;
        }
        held.rules = rules;
        if *held.labels == *new_labels {
            labels::release(&new_labels, &mut self.names);
        } else {
            self.relabel_profile(idx, new_labels.into_boxed_slice());
        }
        self.touch_profile(idx);
    }

    /// Gives a profile other labels, and the items that inherit them to other sets and policies.
    fn relabel_profile(&mut self, idx: ProfileIdx, new_labels: Box<[u8]>) {
        let items: Vec<ItemIdx> = self.profiles.get(idx).items.iter().collect();
        let matches = |this: &mut Self| -> Vec<Vec<SelectorIdx>> {
            let Self {
                items: all,
                sets,
                profiles,
                ..
            } = this;
            let of_item = |item: &ItemIdx| {
                let item = all.get(*item);
                sets.matches(&item.all_labels(profiles))
            };
            items.iter().map(of_item).collect()
        };
        let before = matches(self);
        self.sets.profile_left(idx, &self.profiles.get(idx).labels);
        self.sets.profile_came(idx, &new_labels);
        let old = std::mem::replace(&mut self.profiles.get_mut(idx).labels, new_labels);
        labels::release(&old, &mut self.names);
        let after = matches(self);
        for ((item, before), after) in items.iter().zip(&before).zip(&after) {
            self.sets.item_moved(self.items.get(*item), before, after);
        }
        for &item in &items {
            let local = self.items.get(item).local;
            if local != NOT_LOCAL {
                self.rematch(local);
                if self.roles.depends_on_labels() {
                    self.locals.change(local);
                }
            }
        }
    }
}
