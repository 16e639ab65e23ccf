//! The sets of one IP version: what they are in the kernel, what they should be, and the way there.

mod drift;
mod member;
mod saved;
mod script;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use tortie_engine::message::Member;
use tortie_rules::{IpVersion, temp_ip_set_name};

use self::member::{Fingerprint, Fingerprinter, fitting};
use self::saved::{SavedSet, is_ours, parse_sets};
use self::script::Script;
pub use self::script::set_commands;
use super::program::{Failure, Program};
use crate::{Batch, Drift, Error, Members, Object, SetChange, SetKind};

/// How often a command is tried again, and how long to wait before the first time; then twice as long each time.
const RETRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(1);

/// What the kernel says when the same may work a little later.
const PASSING_TROUBLE: [&str; 3] = ["temporarily unavailable", "resource busy", "Interrupted"];

/// A set that differs by at most this many members, or this part of them, is changed in place.
const FEW: usize = 64;
const SMALL_PART: usize = 4;

/// The sets of one IP version.
#[derive(Debug)]
pub(super) struct Sets {
    ip_version: IpVersion,
    ipset: Program,
    /// How many members a set can have.
    capacity: u32,
    known: HashMap<Arc<str>, KnownSet>,
    fingerprinter: Fingerprinter,
    next_temporary: u64,
}

/// A set that is in the kernel.
#[derive(Debug, Clone, Copy)]
struct KnownSet {
    /// None if it is of a type that we do not use.
    kind: Option<SetKind>,
    capacity: u32,
    /// None if it has members that cannot be ours.
    members: Option<Fingerprint>,
    /// Whether it should be there; else it is to be destroyed.
    is_wanted: bool,
}

// === impl Sets ===

impl Sets {
    /// Of this IP version, each with at most so many members.
    pub(super) fn new(ip_version: IpVersion, capacity: u32) -> Result<Self, Error> {
        let ipset = Program::find("ipset").ok_or_else(|| Error::Program {
            program: "ipset".to_owned(),
            message: "not found; it comes with the package `ipset`".to_owned(),
        })?;
        Ok(Self {
            ip_version,
            ipset,
            capacity,
            known: HashMap::new(),
            fingerprinter: Fingerprinter::default(),
            next_temporary: 0,
        })
    }

    /// Makes the changes of a batch, but for sets that go: those are returned, for when no rule uses them any more.
    pub(super) fn update(&mut self, batch: &Batch) -> Result<Vec<Arc<str>>, Error> {
        let mut saved = HashMap::new();
        if batch.is_full {
            saved = self.read()?;
            let known = saved
                .iter()
                .map(|(name, set)| (Arc::clone(name), self.known_from(set)));
            self.known = known.collect();
        }
        let mut script = Script::default();
        let mut doomed = Vec::new();
        for change in &batch.sets {
            match &change.change {
                Members::All(members) => {
                    let members = fitting(members, self.ip_version);
                    let saved = saved.remove(&change.name);
                    doomed.extend(self.replace(change, &members, saved, &mut script));
                }
                Members::Delta { added, removed } => {
                    let added = fitting(added, self.ip_version);
                    let removed = fitting(removed, self.ip_version);
                    self.alter(&change.name, &added, &removed, &mut script);
                }
                Members::Gone => doomed.extend(self.abandon(&change.name)),
            }
        }
        if batch.is_full {
            let unwanted = self.known.iter().filter(|(_, set)| !set.is_wanted);
            doomed = unwanted.map(|(name, _)| Arc::clone(name)).collect();
        }
        if !script.text().is_empty() {
            let text = script.text();
            self.restore(text).map_err(|failure| {
                let set = set_at(text, failure.line);
                Error::from(failure).about(set.map(Object::Set))
            })?;
        }
        Ok(doomed)
    }

    /// Destroys sets. One that somebody else uses stays, until the next full batch.
    pub(super) fn destroy(&mut self, doomed: &[Arc<str>]) {
        if doomed.is_empty() {
            return;
        }
        let mut script = Script::default();
        for name in doomed {
            script.destroy(name);
        }
        let is_done = self.restore(script.text()).is_ok();
        for name in doomed {
            // The first that fails keeps the others from being tried.
            let done = if is_done {
                Ok(())
            } else {
                self.ipset.run(&["destroy", "-exist", name], "").map(drop)
            };
            match done {
                Ok(()) => drop(self.known.remove(name)),
                Err(failure) => {
                    tracing::warn!(set = %name, error = %failure.message, "A set could not be destroyed");
                }
            }
        }
    }

    /// What differs from a full batch.
    pub(super) fn compare(&self, full: &Batch) -> Result<Vec<Drift>, Error> {
        let mut found = self.read()?;
        let mut drift = Vec::new();
        for change in &full.sets {
            let Members::All(members) = &change.change else {
                continue;
            };
            let wanted = fitting(members, self.ip_version);
            let found = found.remove(&change.name);
            drift::of_set(
                &change.name,
                change.kind,
                &wanted,
                found.as_ref(),
                &mut drift,
            );
        }
        drift.extend(found.keys().map(|name| drift::left_over(name)));
        Ok(drift)
    }

    /// What differs from what was written.
    pub(super) fn check(&self) -> Result<Vec<Drift>, Error> {
        let found = self.read()?;
        let mut drift = Vec::new();
        for (name, known) in self.known.iter().filter(|(_, known)| known.is_wanted) {
            let found = found.get(name).map(|set| self.known_from(set));
            drift::of_known(name, known, found.as_ref(), &mut drift);
        }
        let unknown = found.keys().filter(|name| !self.known.contains_key(*name));
        drift.extend(unknown.map(|name| drift::left_over(name)));
        Ok(drift)
    }

    /// Gives a set these members and no others; returns the set that took its place, if one did.
    fn replace(
        &mut self,
        change: &SetChange,
        members: &[Member],
        saved: Option<SavedSet>,
        script: &mut Script,
    ) -> Option<Arc<str>> {
        let name = &change.name;
        let wanted = self.fingerprinter.of(members);
        let known = self.known.get(name).copied();
        let mut set = KnownSet {
            kind: Some(change.kind),
            capacity: self.capacity,
            members: Some(wanted),
            is_wanted: true,
        };
        let Some(known) = known else {
            self.write_new(name, change.kind, members, script);
            self.known.insert(Arc::clone(name), set);
            return None;
        };
        let Some(kind) = known.kind_for(change.kind) else {
            // Sets of different types cannot be swapped.
            script.destroy(name);
            self.write_new(name, change.kind, members, script);
            self.known.insert(Arc::clone(name), set);
            return None;
        };
        set.kind = Some(kind);
        self.known.insert(Arc::clone(name), set);
        if known.capacity == self.capacity {
            if known.members == Some(wanted) {
                return None;
            }
            let saved = saved.filter(|saved| saved.odd == 0);
            let changes = saved.map(|saved| difference(members, &saved.members));
            let is_few = |(added, removed): &(Vec<Member>, Vec<Member>)| {
                added.len() + removed.len() <= FEW.max(members.len() / SMALL_PART)
            };
            if let Some((added, removed)) = changes.filter(is_few) {
                self.write_changes(name, known.members, &added, &removed, script);
                return None;
            }
        }
        let temporary = self.free_temporary_name();
        script.create(
            &temporary,
            kind,
            self.ip_version,
            self.capacity,
            members.len(),
        );
        // In case that this is done for the second time.
        script.flush(&temporary);
        script.add(&temporary, members);
        script.swap(name, &temporary);
        let swapped = KnownSet {
            is_wanted: false,
            ..known
        };
        self.known.insert(Arc::clone(&temporary), swapped);
        Some(temporary)
    }

    fn write_new(&self, name: &str, kind: SetKind, members: &[Member], script: &mut Script) {
        script.create(name, kind, self.ip_version, self.capacity, members.len());
        script.add(name, members);
    }

    /// Adds members to a set and removes some.
    fn alter(&mut self, name: &str, added: &[Member], removed: &[Member], script: &mut Script) {
        let before = self.known.get(name).and_then(|set| set.members);
        self.write_changes(name, before, added, removed, script);
        let (added, removed) = (self.fingerprinter.of(added), self.fingerprinter.of(removed));
        if let Some(set) = self.known.get_mut(name) {
            set.members = set.members.map(|members| members.changed(added, removed));
        }
    }

    fn write_changes(
        &self,
        name: &str,
        before: Option<Fingerprint>,
        added: &[Member],
        removed: &[Member],
        script: &mut Script,
    ) {
        // A network that is split must not be out of the set for a moment; but there must be room.
        let count = before.map_or(0, |before| before.count) + added.len();
        if u32::try_from(count).is_ok_and(|count| count <= self.capacity) {
            script.add(name, added);
            script.delete(name, removed);
        } else {
            script.delete(name, removed);
            script.add(name, added);
        }
    }

    fn abandon(&mut self, name: &Arc<str>) -> Option<Arc<str>> {
        let set = self.known.get_mut(name)?;
        set.is_wanted = false;
        Some(Arc::clone(name))
    }

    fn free_temporary_name(&mut self) -> Arc<str> {
        loop {
            let name = temp_ip_set_name(self.next_temporary, self.ip_version);
            self.next_temporary += 1;
            if !self.known.contains_key(&*name) {
                return name.into();
            }
        }
    }

    fn known_from(&self, set: &SavedSet) -> KnownSet {
        let members = (set.odd == 0).then(|| self.fingerprinter.of(&set.members));
        KnownSet {
            kind: set.kind,
            capacity: set.capacity,
            members,
            is_wanted: false,
        }
    }

    fn read(&self) -> Result<HashMap<Arc<str>, SavedSet>, Error> {
        let text = match self.ipset.run(&["save"], "") {
            Ok(text) => text,
            // A set of somebody else may be of a type that this version cannot show.
            Err(_) => self.read_one_by_one()?,
        };
        Ok(parse_sets(&text, self.ip_version))
    }

    fn read_one_by_one(&self) -> Result<String, Failure> {
        let names = self.ipset.run(&["list", "-name"], "")?;
        let ours = names.lines().filter(|name| is_ours(name, self.ip_version));
        ours.map(|name| self.ipset.run(&["save", name], ""))
            .collect()
    }

    fn restore(&self, script: &str) -> Result<(), Failure> {
        let mut pause = PAUSE;
        let mut retries = RETRIES;
        loop {
            let Err(mut failure) = self.ipset.run(&["restore", "-exist"], script) else {
                return Ok(());
            };
            // The quotes around members mean nothing to people.
            failure.message.retain(|c| c != '"');
            let is_passing = PASSING_TROUBLE
                .iter()
                .any(|words| failure.message.contains(words));
            if retries == 0 || !is_passing {
                return Err(failure);
            }
            tracing::warn!(error = %failure.message, "Writing sets failed; trying again");
            retries -= 1;
            thread::sleep(pause);
            pause *= 2;
        }
    }
}

// === impl KnownSet ===

impl KnownSet {
    /// The kind of this set, if members of the wanted kind fit.
    fn kind_for(&self, wanted: SetKind) -> Option<SetKind> {
        let kind = self.kind?;
        let fits = kind == wanted || (kind, wanted) == (SetKind::Networks, SetKind::Addresses);
        fits.then_some(kind)
    }
}

/// The set that a command is about; not the one that is filled in its place.
fn set_at(script: &str, line: Option<usize>) -> Option<Arc<str>> {
    let name_in = |line: &str| line.split(' ').nth(1).map(Arc::from);
    let name: Arc<str> = name_in(script.lines().nth(line?)?)?;
    let swaps = script.lines().filter(|line| line.starts_with("swap "));
    let mut swaps = swaps.filter(|line| line.split(' ').nth(2) == Some(&name));
    swaps.next().and_then(name_in).or(Some(name))
}

/// What has to come and what has to go.
fn difference(wanted: &[Member], found: &[Member]) -> (Vec<Member>, Vec<Member>) {
    let without = |members: &[Member], others: &[Member]| -> Vec<Member> {
        let others: HashSet<&Member> = others.iter().collect();
        let members = members.iter().filter(|member| !others.contains(member));
        members.copied().collect()
    };
    (without(wanted, found), without(found, wanted))
}
