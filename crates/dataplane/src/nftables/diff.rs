//! From what is there to what should be, in one transaction.

use std::sync::Arc;

use hashbrown::HashMap;
use tortie_kernel::nft::{self, Element, Place, Table as KernelTable, Transaction};
use tortie_rules::rule::Rule;
use tortie_rules::{IpVersion, RuleHasher, Table, nftables};

use crate::change::{Batch, MapChange, Members, SetChange};

use super::actual::{Actual, put_digest};
use super::compile::Compiler;
use super::digest::{Digest, RuleDigest};
use super::sets::{self, Fingerprint};
use super::{REWRITTEN_UP_TO, RuleState, SetState, base, full_name};

/// Writes a batch as a transaction, and notes what will then be there.
pub(super) struct Plan<'a> {
    pub(super) table: &'a KernelTable,
    pub(super) ip_version: IpVersion,
    pub(super) transaction: &'a mut Transaction,
    pub(super) actual: &'a mut Actual,
}

/// A rule that is ready for the kernel.
struct Compiled {
    digest: RuleDigest,
    rule: nft::Rule,
}

impl Plan<'_> {
    /// The order matters to the kernel: what is referred to comes before what refers to it, and goes after it.
    pub(super) fn write(&mut self, batch: &Batch) {
        if batch.is_full {
            self.replace_misshapen_sets();
            self.base_chains();
        }
        for change in &batch.sets {
            if change.change != Members::Gone {
                self.set(change);
            }
        }
        for map in &batch.maps {
            self.create_map(map);
        }
        for chain in &batch.chains {
            let name = full_name(chain.table, &chain.name);
            if !self.actual.applied.chains.contains_key(&name) {
                self.transaction.add_chain(self.table, &name);
            }
        }
        for map in &batch.maps {
            self.map(map, batch.is_full);
        }
        for chain in &batch.chains {
            let name = full_name(chain.table, &chain.name);
            self.chain(chain.table, name, &chain.rules);
        }
        if batch.is_full {
            self.hooks(batch);
        }
        let removed = batch.removed_chains.iter();
        let removed: Vec<Arc<str>> = removed.map(|key| full_name(key.table, &key.name)).collect();
        self.delete_chains(&removed);
        for change in &batch.sets {
            if change.change == Members::Gone {
                self.delete_set(&change.name);
            }
        }
        if batch.is_full {
            self.delete_left_overs();
        }
    }

    /// A set of ours with another type than we give it now would be refused. It goes with the rules that use it.
    fn replace_misshapen_sets(&mut self) {
        if self.actual.misshapen_sets.is_empty() {
            return;
        }
        // Rules that look into it must go first. This happens only after an upgrade from something that kept its sets
        // in another way, and all in one transaction.
        self.transaction.delete_table(self.table);
        self.transaction.add_table(self.table);
        *self.actual = Actual::default();
    }

    fn base_chains(&mut self) {
        for (_, chain) in base::chains() {
            let name = Arc::clone(&chain.name);
            let is_there =
                self.actual.base_chains.iter().any(
                    |found| matches!(found, nft::Chain::Base(_, Some(found)) if *found == chain),
                );
            if !is_there {
                if self.actual.applied.chains.remove(&name).is_some() {
                    // Of another kind or priority; it cannot be changed, only replaced.
                    self.transaction.flush_chain(self.table, &name);
                    self.transaction.delete_chain(self.table, &name);
                }
                self.transaction.add_base_chain(self.table, &chain);
            }
            self.actual.left_over_chains.remove(&name);
            self.actual.applied.chains.entry(name).or_default();
        }
    }

    fn hooks(&mut self, batch: &Batch) {
        let mut rules: HashMap<Arc<str>, (Table, Vec<Rule>)> = HashMap::new();
        for (table, chain) in base::chains() {
            rules.insert(Arc::clone(&chain.name), (table, Vec::new()));
        }
        for hook in &batch.hooks {
            let name = full_name(hook.table, hook.chain);
            if let Some((_, rules)) = rules.get_mut(&name) {
                rules.extend(hook.first.iter().chain(&hook.last).cloned());
            }
        }
        for (name, (table, rules)) in rules {
            self.chain(table, name, &rules);
        }
    }

    fn set(&mut self, change: &SetChange) {
        let set = sets::set(&change.name, change.kind, self.ip_version);
        let name = Arc::clone(&set.name);
        self.actual.left_over_sets.remove(&name);
        match &change.change {
            Members::All(members) => {
                let elements: Vec<Element> = members.iter().map(sets::element).collect();
                let fingerprint = Fingerprint::of(&elements);
                let known = self.actual.applied.sets.get(&name);
                match known {
                    Some(known) if known.fingerprint == fingerprint => return,
                    Some(_) => self.transaction.flush_set(self.table, &name),
                    None => self.transaction.add_set(self.table, &set),
                }
                self.transaction.add_elements(self.table, &set, elements);
                self.actual
                    .applied
                    .sets
                    .insert(name, SetState { set, fingerprint });
            }
            Members::Delta { added, removed } => {
                let Some(state) = self.actual.applied.sets.get_mut(&name) else {
                    debug_assert!(false, "a change to a set that is not there: {name}");
                    return;
                };
                let removed: Vec<Element> = removed.iter().map(sets::element).collect();
                let added: Vec<Element> = added.iter().map(sets::element).collect();
                for element in &removed {
                    state.fingerprint.remove(element);
                }
                for element in &added {
                    state.fingerprint.add(element);
                }
                // In this order a network may take the place of another that overlaps it.
                self.transaction.delete_elements(self.table, &set, removed);
                self.transaction.add_elements(self.table, &set, added);
            }
            Members::Gone => {}
        }
    }

    fn create_map(&mut self, change: &MapChange) {
        let name = full_name(change.table, change.name);
        self.actual.left_over_sets.remove(&name);
        if self.actual.applied.sets.contains_key(&name) {
            return;
        }
        let set = sets::map(&name);
        self.transaction.add_set(self.table, &set);
        let fingerprint = Fingerprint::default();
        self.actual
            .applied
            .sets
            .insert(name, SetState { set, fingerprint });
    }

    fn map(&mut self, change: &MapChange, is_full: bool) {
        let name = full_name(change.table, change.name);
        let elements: Vec<Element> = change
            .added
            .iter()
            .map(|(interface, chain)| sets::interface(interface, &full_name(change.table, chain)))
            .collect();
        let Some(state) = self.actual.applied.sets.get_mut(&name) else {
            return;
        };
        if is_full {
            let fingerprint = Fingerprint::of(&elements);
            if state.fingerprint == fingerprint {
                return;
            }
            if state.fingerprint.count > 0 {
                self.transaction.flush_set(self.table, &name);
            }
            state.fingerprint = fingerprint;
        } else {
            for element in &elements {
                state.fingerprint.add(element);
            }
            let removed: Vec<Element> = change
                .removed
                .iter()
                .map(|(interface, chain)| {
                    sets::interface(interface, &full_name(change.table, chain))
                })
                .collect();
            for element in &removed {
                state.fingerprint.remove(element);
            }
            self.transaction
                .delete_elements(self.table, &state.set, removed);
        }
        self.transaction
            .add_elements(self.table, &state.set, elements);
    }

    fn delete_set(&mut self, name: &Arc<str>) {
        if self.actual.applied.sets.remove(name).is_some() {
            self.transaction.delete_set(self.table, name);
        }
        self.actual.left_over_sets.remove(name);
    }

    fn delete_chains(&mut self, names: &[Arc<str>]) {
        // All their rules go first, since they may jump to each other.
        let mut there = Vec::new();
        for name in names {
            self.actual.left_over_chains.remove(name);
            if self.actual.applied.chains.remove(name).is_some() {
                self.transaction.flush_chain(self.table, name);
                there.push(name);
            }
        }
        for name in there {
            self.transaction.delete_chain(self.table, name);
        }
    }

    fn delete_left_overs(&mut self) {
        let chains: Vec<Arc<str>> = self.actual.left_over_chains.drain().collect();
        self.delete_chains(&chains);
        let sets: Vec<Arc<str>> = self.actual.left_over_sets.drain().collect();
        for set in sets {
            self.actual.applied.sets.remove(&set);
            self.transaction.delete_set(self.table, &set);
        }
    }

    /// Writes what is new in a chain.
    fn chain(&mut self, table: Table, name: Arc<str>, rules: &[Rule]) {
        let compiled = self.compile(table, rules);
        self.actual.left_over_chains.remove(&name);
        let old = self.actual.applied.chains.get(&name);
        let old = old.map_or(&[][..], Vec::as_slice);
        let same = |(old, new): (&RuleState, &Compiled)| old.digest == new.digest;
        let before = old
            .iter()
            .zip(&compiled)
            .take_while(|pair| same(*pair))
            .count();
        if before == old.len() && before == compiled.len() {
            self.actual.applied.chains.entry(name).or_default();
            return;
        }
        let rest_old = &old[before..];
        let rest_new = &compiled[before..];
        let pairs = rest_old.iter().rev().zip(rest_new.iter().rev());
        let after = pairs.take_while(|pair| same(*pair)).count();
        let is_large = compiled.len() > REWRITTEN_UP_TO;
        let has_handles = old.iter().all(|rule| rule.handle != 0);
        let is_append = rest_old.is_empty();
        let mut hashed = Hashed::new(&name, table, self.ip_version, rules);
        let mut states: Vec<RuleState> = compiled
            .iter()
            .map(|rule| RuleState {
                digest: rule.digest,
                handle: 0,
            })
            .collect();
        if is_append || (is_large && has_handles) {
            let place = match after {
                0 => Place::Last,
                after => Place::Before(old[old.len() - after].handle),
            };
            for gone in &rest_old[..rest_old.len() - after] {
                self.transaction.delete_rule(self.table, &name, gone.handle);
            }
            let until = compiled.len() - after;
            let new = compiled
                .into_iter()
                .enumerate()
                .skip(before)
                .take(until - before);
            for (index, rule) in new {
                let rule = hashed.with_comment(index, rule);
                self.transaction.add_rule(self.table, &name, place, &rule);
            }
            let kept = old[..before].iter().zip(0..before);
            let moved = old[old.len() - after..].iter().zip(until..);
            for (rule, index) in kept.chain(moved) {
                states[index].handle = rule.handle;
            }
        } else {
            if !old.is_empty() {
                self.transaction.flush_chain(self.table, &name);
            }
            for (index, rule) in compiled.into_iter().enumerate() {
                let rule = hashed.with_comment(index, rule);
                self.transaction
                    .add_rule(self.table, &name, Place::Last, &rule);
            }
        }
        if is_large {
            self.actual.numbered_chains_changed.push(Arc::clone(&name));
        }
        self.actual.applied.chains.insert(name, states);
    }

    fn compile(&self, table: Table, rules: &[Rule]) -> Vec<Compiled> {
        let compiler = Compiler {
            ip_version: self.ip_version,
            table,
        };
        let with_digests = rules.iter().map(|rule| {
            let kernel_rule = nft::Rule::new(compiler.rule(rule));
            let mut digest = Digest::default();
            digest.write(&kernel_rule.encode());
            // The contents of lists are not part of the expressions.
            if has_lists(&kernel_rule) {
                digest.write(nftables::text(rule, table, self.ip_version).as_bytes());
            }
            for comment in &rule.comments {
                digest.write(comment.as_bytes());
            }
            Compiled {
                digest: digest.finish(),
                rule: kernel_rule,
            }
        });
        with_digests.collect()
    }
}

/// Whether a rule has sets of its own.
fn has_lists(rule: &nft::Rule) -> bool {
    rule.exprs.iter().any(|expr| match expr {
        nft::Expr::Lookup { set, .. } => matches!(set, nft::SetReference::Inline(_)),
        _ => false,
    })
}

/// Calico's hashes of the rules of a chain, computed as far as they are needed.
struct Hashed<'a> {
    hasher: RuleHasher,
    table: Table,
    ip_version: IpVersion,
    rules: &'a [Rule],
    next: usize,
}

impl<'a> Hashed<'a> {
    fn new(chain: &str, table: Table, ip_version: IpVersion, rules: &'a [Rule]) -> Self {
        Self {
            hasher: RuleHasher::new(chain),
            table,
            ip_version,
            rules,
            next: 0,
        }
    }

    /// The rule at an index with its userdata. Indexes must grow.
    fn with_comment(&mut self, index: usize, compiled: Compiled) -> nft::Rule {
        let mut hash = String::new();
        while self.next <= index {
            let text = nftables::text(&self.rules[self.next], self.table, self.ip_version);
            hash = self.hasher.next(&text);
            self.next += 1;
        }
        let comment = nftables::comment(&hash, &self.rules[index].comments);
        let mut rule = compiled.rule.with_comment(&comment);
        put_digest(compiled.digest, &mut rule.userdata);
        rule
    }
}
