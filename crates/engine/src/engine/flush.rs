//! What changed, in the order in which a data plane can apply it.

use std::sync::Arc;

use tortie_api::rule::Action;

use super::{Engine, NamedLabels};
use crate::compile;
use crate::input::Rule;
use crate::locals::{LocalEndpoint, LocalId, LocalIdx};
use crate::message::{Message, Policy, PolicyId, Profile, SetId};
use crate::policies::{ALWAYS_ACTIVE, ActivePolicy, PRE_DNAT, PolicyIdx, UNTRACKED, packed};
use crate::profiles::{ProfileIdx, SentRules};
use crate::roles::Role;
use crate::sets::definition::BROKEN;

impl Engine {
    /// Like [`Self::flush`], one message at a time, so that they need not all be held at once.
    pub fn flush_to(&mut self, sink: &mut dyn FnMut(Message)) {
        self.network.flush_config(self.is_in_sync, sink);
        if !self.is_in_sync {
            return;
        }
        self.drop_unused_selectors();
        self.settle_selectors();
        let (policies, gone_policies) = self.settle_policies();
        let (profiles, gone_profiles) = self.settle_profiles();
        for class in self.policies.order_classes() {
            for local in self.policies.classes.endpoints(class) {
                self.locals.touch(local);
            }
        }
        self.sets
            .resolve(&self.items, &self.profiles, &mut self.names);

        let gone_sets = self.sets.flush(&mut self.names, sink);
        for idx in policies {
            if let Some((id, policy)) = self.policy_message(idx) {
                sink(Message::ActivePolicyUpdate(id, Arc::new(policy)));
            }
        }
        for idx in profiles {
            let profile = Arc::new(self.profile_message(idx));
            sink(Message::ActiveProfileUpdate(
                Arc::clone(&self.profiles.get(idx).name),
                profile,
            ));
        }
        self.flush_endpoints(sink);
        for name in gone_profiles {
            sink(Message::ActiveProfileRemove(name));
        }
        for id in gone_policies {
            sink(Message::ActivePolicyRemove(id));
        }
        for id in gone_sets {
            sink(Message::IpSetRemove(id));
        }
        self.network.flush(self.is_in_sync, sink);
        if !std::mem::replace(&mut self.has_sent_in_sync, true) {
            sink(Message::InSync);
        }
    }

    /// Takes selectors that no policy has any more out of the classes that match them.
    fn drop_unused_selectors(&mut self) {
        for selector in self.policies.take_unused_selectors() {
            let classes: Vec<u32> = self
                .policies
                .selectors
                .owner(selector)
                .classes
                .iter()
                .collect();
            for class in classes {
                self.matched.clear();
                let matched = self.policies.classes.selectors(class).iter().copied();
                self.matched
                    .extend(matched.filter(|held| *held != selector));
                let locals: Vec<LocalIdx> = self.policies.classes.endpoints(class).collect();
                for local in locals {
                    self.move_to_class(local);
                }
            }
            self.policies.selectors.remove(selector, &mut self.names);
        }
    }

    /// Finds the local endpoints that new policy selectors match, and the policies that this switches on or off.
    fn settle_selectors(&mut self) {
        if self.policies.selectors.has_fresh() {
            let mut fresh = Vec::new();
            for idx in self.locals.indexes() {
                let local = self.locals.get(idx);
                let item = self.items.get(local.item);
                let labels = item.all_labels(&self.profiles);
                self.policies.selectors.fresh_matches(&labels, &mut fresh);
                if !fresh.is_empty() {
                    self.matched.clear();
                    self.matched
                        .extend_from_slice(self.policies.classes.selectors(local.class));
                    self.matched.append(&mut fresh);
                    self.matched.sort_unstable();
                    self.move_to_class(idx);
                }
            }
            self.policies.selectors.settle();
        }
        for selector in std::mem::take(&mut self.policies.classes.switched) {
            // One that was dropped has no policies to switch.
            if let Some(used) = self.policies.selectors.get(selector) {
                let policies: Vec<PolicyIdx> = used.policies.iter().collect();
                for policy in policies {
                    self.policies.touch(policy);
                }
            }
        }
    }

    /// Makes policies active and inactive; gives those to send and those to remove.
    fn settle_policies(&mut self) -> (Vec<PolicyIdx>, Vec<Arc<PolicyId>>) {
        let (mut updates, mut gone) = (Vec::new(), Vec::new());
        for idx in self.policies.take_dirty() {
            if self.policies.is_needed(idx) {
                let policy = self.policies.get_mut(idx);
                if policy.active.is_some() && !policy.is_changed {
                    continue;
                }
                policy.is_changed = false;
                let (_, inbound, outbound) = packed::unpack(&policy.packed);
                let sets = acquire_sets(&mut self.sets, &mut self.names, &inbound, &outbound);
                let policy = self.policies.get_mut(idx);
                if let Some(active) = &mut policy.active {
                    let old = std::mem::replace(&mut active.sets, sets);
                    old.iter().for_each(|set| self.sets.release(*set));
                } else {
                    let id = Arc::new(policy.id());
                    policy.active = Some(Box::new(ActivePolicy { id, sets }));
                }
                updates.push(idx);
                continue;
            }
            let policy = self.policies.get_mut(idx);
            let is_deleted = policy.is_deleted;
            if let Some(active) = policy.active.take() {
                policy.is_changed = true;
                active.sets.iter().for_each(|set| self.sets.release(*set));
                gone.push(active.id);
            }
            if is_deleted {
                self.policies.forget(idx);
            }
        }
        (updates, gone)
    }

    fn settle_profiles(&mut self) -> (Vec<ProfileIdx>, Vec<Arc<str>>) {
        let (mut updates, mut gone) = (Vec::new(), Vec::new());
        let mut dirty = std::mem::take(&mut self.dirty_profiles);
        dirty.sort_unstable_by(|a, b| self.profiles.get(*a).name.cmp(&self.profiles.get(*b).name));
        for idx in dirty {
            let profile = self.profiles.get_mut(idx);
            profile.dirty = false;
            if profile.local_uses == 0 {
                if let Some(sent) = profile.sent.take() {
                    gone.push(Arc::clone(&profile.name));
                    sent.sets.iter().for_each(|set| self.sets.release(*set));
                }
                self.profiles.tidy(idx);
                continue;
            }
            if profile
                .sent
                .as_ref()
                .is_some_and(|sent| sent.rules == profile.rules)
            {
                continue;
            }
            let rules = profile.rules.clone();
            let (inbound, outbound) = profile_rules(rules.as_deref());
            let sets = acquire_sets(&mut self.sets, &mut self.names, &inbound, &outbound);
            let profile = self.profiles.get_mut(idx);
            if let Some(old) = profile.sent.replace(Box::new(SentRules { rules, sets })) {
                old.sets.iter().for_each(|set| self.sets.release(*set));
            }
            updates.push(idx);
        }
        (updates, gone)
    }

    fn flush_endpoints(&mut self, sink: &mut dyn FnMut(Message)) {
        if std::mem::take(&mut self.roles.is_dirty) {
            for idx in self.locals.indexes() {
                self.locals.change(idx);
            }
        }
        for idx in self.locals.take_dirty() {
            let local = self.locals.get(idx);
            let lists = Arc::clone(self.policies.classes.lists(local.class));
            let role = self.role(idx);
            if let Some(message) = self.locals.message(idx, &lists, role) {
                sink(message);
            }
        }
        for id in std::mem::take(&mut self.locals.gone) {
            sink(match id {
                LocalId::Workload(id) => Message::WorkloadEndpointRemove(id),
                LocalId::Host(id) => Message::HostEndpointRemove(id),
            });
        }
    }

    fn role(&self, idx: LocalIdx) -> Role {
        let local = self.locals.get(idx);
        let LocalEndpoint::Workload(key, endpoint) = &local.endpoint else {
            return Role::default();
        };
        let item = self.items.get(local.item);
        let labels = item.all_labels(&self.profiles);
        let names = &self.names;
        self.roles.of(key, endpoint, &NamedLabels { labels, names })
    }

    /// A policy that applies to something here, as the data plane gets it.
    pub(crate) fn policy_message(&self, idx: PolicyIdx) -> Option<(Arc<PolicyId>, Policy)> {
        let held = self.policies.get(idx);
        let active = held.active.as_ref()?;
        let (selector, inbound, outbound) = packed::unpack(&held.packed);
        let mut sets = self.set_ids(&active.sets);
        let mut compile = |rules: &[Rule]| -> Vec<_> {
            rules
                .iter()
                .map(|rule| compile::rule(rule, &mut sets))
                .collect()
        };
        let policy = Policy {
            tier: self.policies.tier_name(held.tier).to_owned(),
            namespace: active.id.namespace.clone(),
            inbound_rules: compile(&inbound),
            outbound_rules: compile(&outbound),
            untracked: held.flags & UNTRACKED != 0,
            pre_dnat: held.flags & PRE_DNAT != 0,
            original_selector: tortie_selector::normalise(selector),
            perf_hints: if held.flags & ALWAYS_ACTIVE != 0 {
                vec!["AssumeNeededOnEveryNode"]
            } else {
                Vec::new()
            },
        };
        Some((Arc::clone(&active.id), policy))
    }

    /// A profile that is used here, as the data plane gets it.
    pub(crate) fn profile_message(&self, idx: ProfileIdx) -> Profile {
        let Some(sent) = &self.profiles.get(idx).sent else {
            return Profile::default();
        };
        let (inbound, outbound) = profile_rules(sent.rules.as_deref());
        let mut sets = self.set_ids(&sent.sets);
        let mut compile = |rules: &[Rule]| -> Vec<_> {
            rules
                .iter()
                .map(|rule| compile::rule(rule, &mut sets))
                .collect()
        };
        Profile {
            inbound_rules: compile(&inbound),
            outbound_rules: compile(&outbound),
        }
    }

    fn set_ids<'a>(&'a self, sets: &'a [u32]) -> impl Iterator<Item = Option<SetId>> + 'a {
        sets.iter()
            .map(|set| (*set != BROKEN).then(|| self.sets.id(*set).clone()))
    }
}

/// The rules of a profile; a profile that is missing denies everything.
pub(crate) fn profile_rules(packed_rules: Option<&[u8]>) -> (Vec<Rule>, Vec<Rule>) {
    if let Some(rules) = packed_rules {
        let (_, inbound, outbound) = packed::unpack(rules);
        return (inbound, outbound);
    }
    let deny = || {
        vec![Rule {
            action: Action::Deny,
            ..Rule::default()
        }]
    };
    (deny(), deny())
}

fn acquire_sets(
    sets: &mut crate::sets::Sets,
    names: &mut crate::names::Names,
    inbound: &[Rule],
    outbound: &[Rule],
) -> Box<[u32]> {
    let mut acquired = Vec::new();
    for rule in inbound.iter().chain(outbound) {
        let start = acquired.len();
        for definition in compile::definitions(rule) {
            acquired.push(sets.acquire(&definition, names));
        }
        // A rule that lacks one set denies everything, without a use for the others.
        if acquired[start..].contains(&BROKEN) {
            for set in &mut acquired[start..] {
                sets.release(std::mem::replace(set, BROKEN));
            }
        }
    }
    acquired.into_boxed_slice()
}
