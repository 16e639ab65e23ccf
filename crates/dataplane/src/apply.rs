//! The desired state and its drivers together: what is said goes in, and the kernel follows.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tortie_engine::Message;
use tortie_error::Causes;
use tortie_rules::{Config, Dataplane as Kind, IpVersion};

use crate::change::{Batch, Drift, Driver, Error, Part, Refused};
use crate::desired::{DesiredState, InterfaceState};
use crate::iptables::Variant;
use crate::left_over::remove_left_overs;
use crate::refusals::{FIRST_RETRY, Refusals};
use crate::watch::Watch;

/// Brings what the engine says into the kernel, and keeps it there.
///
/// Nothing is written before the first call to [`Dataplane::apply`], which the caller makes once all is known that was
/// there at the start. That first time, and after an error, all is compared and what is left over removed.
///
/// A policy, profile, endpoint or set that the kernel refuses denies, and all else is in force. It is tried again when it
/// changes, and now and then.
pub struct Dataplane {
    desired: DesiredState,
    sides: Vec<Side>,
    first_retry: Duration,
    watch: Option<Watch>,
}

/// One IP version in the kernel.
struct Side {
    version: IpVersion,
    driver: Box<dyn Driver>,
    /// The kernel may not have what we think it has.
    is_uncertain: bool,
    refusals: Refusals,
}

/// How much was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Whether everything was compared.
    pub is_full: bool,
    /// Chains that were written.
    pub chains: usize,
    /// Sets that were changed.
    pub sets: usize,
}

/// Why a batch is not in the kernel.
enum Trouble {
    /// Perhaps because the kernel has not what we think it has.
    NeedsEverything,
    Failed(Error),
}

impl Dataplane {
    /// A data plane in which nothing has been said.
    pub fn new(
        config: &Arc<Config>,
        kind: Kind,
        drivers: Vec<(IpVersion, Box<dyn Driver>)>,
        hostname: &str,
    ) -> Self {
        let versions: Vec<IpVersion> = drivers.iter().map(|(version, _)| *version).collect();
        let mut desired = DesiredState::new(config, kind, &versions, hostname);
        let is_kept_by_nftables = |part| part == Part::Iptables(Variant::Nft);
        if drivers
            .iter()
            .any(|(_, driver)| is_kept_by_nftables(driver.part()))
        {
            desired.hide_behind_header();
        }
        let sides = drivers.into_iter().map(|(version, driver)| Side {
            version,
            driver,
            is_uncertain: true,
            refusals: Refusals::default(),
        });
        Self {
            desired,
            sides: sides.collect(),
            first_retry: FIRST_RETRY,
            watch: None,
        }
    }

    /// What is refused is tried again after this time at first.
    pub fn set_first_retry(&mut self, delay: Duration) {
        self.first_retry = delay;
    }

    /// All that was said.
    pub fn desired(&self) -> &DesiredState {
        &self.desired
    }

    /// The engine says something.
    pub fn on_message(&mut self, message: Message) {
        self.desired.on_message(message);
    }

    /// The interfaces of the host are these now.
    pub fn set_interfaces(&mut self, all: BTreeMap<Arc<str>, InterfaceState>) {
        self.desired.set_interfaces(all);
    }

    /// Renders with other parameters from now on.
    pub fn set_config(&mut self, config: &Arc<Config>) {
        self.desired.set_config(config);
        self.distrust_kernel();
    }

    /// The next [`Dataplane::apply`] compares everything.
    fn distrust_kernel(&mut self) {
        for side in &mut self.sides {
            side.is_uncertain = true;
        }
    }

    /// What the kernel refused; what is there in its place denies.
    pub fn refused(&self) -> Vec<Refused> {
        let sides = self.sides.iter();
        let refusals = sides.flat_map(|side| side.refusals.list(side.version));
        refusals.collect()
    }

    /// What it writes to, if it writes anything.
    pub fn part(&self) -> Option<Part> {
        self.sides.first().map(|side| side.driver.part())
    }

    /// Whether it is time to try again what was refused.
    pub fn is_retry_due(&self) -> bool {
        let now = Instant::now();
        self.sides.iter().any(|side| side.refusals.is_due(now))
    }

    /// Brings all that was said into the kernel. After an error of an IP version the next call compares everything; the
    /// other version is in force then.
    pub fn apply(&mut self) -> Result<Done, Error> {
        let now = Instant::now();
        let mut batches = self.batches(now);
        let mut done = Done {
            is_full: batches.iter().any(|(_, batch)| batch.is_full),
            ..Done::default()
        };
        let mut open: Vec<IpVersion> = self.sides.iter().map(|side| side.version).collect();
        let mut errors = Vec::new();
        while !open.is_empty() {
            for (version, batch) in batches {
                let side = self.sides.iter_mut().find(|side| side.version == version);
                let Some(side) = side.filter(|side| open.contains(&side.version)) else {
                    continue;
                };
                let (chains, sets) = (batch.chains.len(), batch.sets.len());
                match side.apply(&self.desired, batch, self.first_retry, now) {
                    Ok(()) => {
                        done.chains += chains;
                        done.sets += sets;
                    }
                    Err(Trouble::NeedsEverything) => continue,
                    Err(Trouble::Failed(error)) => errors.push(error),
                }
                open.retain(|other| *other != version);
            }
            if open.is_empty() {
                break;
            }
            done.is_full = true;
            batches = self.desired.take_everything();
        }
        if let Some(watch) = &mut self.watch
            && let Err(error) = watch.forget()
        {
            tracing::warn!(error = %Causes(&error), "Changes by others cannot be followed");
        }
        let mut errors = errors.into_iter();
        let Some(first) = errors.next() else {
            return Ok(done);
        };
        for error in errors {
            tracing::error!(error = %Causes(&error), "The kernel could not be changed");
        }
        Err(first)
    }

    fn batches(&mut self, now: Instant) -> Vec<(IpVersion, Batch)> {
        let is_uncertain = |side: &Side| side.is_uncertain || side.refusals.is_due(now);
        if self.sides.iter().any(is_uncertain) {
            return self.prepared(now, DesiredState::take_everything);
        }
        let batches = self.prepared(now, DesiredState::take_changes);
        let needs_everything = |side: &Side| {
            let mut batches = batches.iter();
            let batch = batches.find(|(version, _)| *version == side.version);
            batch.is_some_and(|(_, batch)| side.refusals.needs_everything(batch))
        };
        if self.sides.iter().any(needs_everything) {
            return self.prepared(now, DesiredState::take_everything);
        }
        batches
    }

    fn prepared(
        &mut self,
        now: Instant,
        take: fn(&mut DesiredState) -> Vec<(IpVersion, Batch)>,
    ) -> Vec<(IpVersion, Batch)> {
        let batches = take(&mut self.desired);
        for side in &mut self.sides {
            let mut batches = batches.iter();
            if let Some((_, batch)) = batches.find(|(version, _)| *version == side.version) {
                side.refusals.prepare(batch, now);
            }
        }
        batches
    }

    /// From now on, hears when others change what is ours, where the kernel tells that. To be called once something was
    /// applied.
    pub fn watch_others(&mut self) -> io::Result<()> {
        let own: Vec<u32> = self.sides.iter().filter_map(|s| s.driver.port()).collect();
        self.watch = self
            .part()
            .map_or(Ok(None), |part| Watch::open(part, &own))?;
        Ok(())
    }

    /// Can be read when others changed something.
    pub fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// Whether others changed what is ours, or may have, since this was last asked. [`Dataplane::check`] then tells.
    pub fn is_disturbed(&mut self) -> io::Result<bool> {
        let watch = self.watch.as_mut();
        watch.map_or(Ok(false), Watch::is_disturbed)
    }

    /// Removes what other parts of the kernel have of ours, once everything is in force. Gives what could not be removed.
    pub fn remove_left_overs(&mut self) -> Vec<Error> {
        let mut errors = Vec::new();
        for side in &mut self.sides {
            match remove_left_overs(side.driver.part(), side.version) {
                // Sets that could not be destroyed while those rules looked into them can be now.
                Ok(was_something) => side.is_uncertain |= was_something,
                Err(error) => errors.push(error),
            }
        }
        if self.sides.iter().any(|side| side.is_uncertain) {
            errors.extend(self.apply().err());
        }
        errors
    }

    /// Looks whether the kernel still has what was applied. If not, the next [`Dataplane::apply`] repairs it.
    pub fn check(&mut self) -> Result<Vec<Drift>, Error> {
        let mut all = Vec::new();
        let mut failed = None;
        for side in &mut self.sides {
            match side.driver.check() {
                Ok(drift) => {
                    side.is_uncertain |= !drift.is_empty();
                    all.extend(drift);
                }
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(all), Err)
    }

    /// Compares the kernel with what was said, and changes nothing.
    pub fn compare(&mut self) -> Result<Vec<Drift>, Error> {
        let mut all = Vec::new();
        for (version, batch) in self.everything() {
            let side = self.sides.iter_mut().find(|side| side.version == version);
            if let Some(side) = side {
                all.extend(side.driver.compare(&batch)?);
            }
        }
        Ok(all)
    }

    /// All that the kernel should have, for each IP version. The next [`Dataplane::apply`] compares everything.
    pub fn everything(&mut self) -> Vec<(IpVersion, Batch)> {
        self.distrust_kernel();
        self.desired.take_everything()
    }
}

impl Side {
    fn apply(
        &mut self,
        desired: &DesiredState,
        mut batch: Batch,
        first_retry: Duration,
        now: Instant,
    ) -> Result<(), Trouble> {
        self.is_uncertain = true;
        self.refusals.forget_gone(&batch);
        let mut suspects = BTreeSet::new();
        loop {
            self.refusals.put_stand_ins(&mut batch);
            let error = match self.driver.apply(&batch) {
                Ok(()) => break,
                Err(error) => error,
            };
            if !batch.is_full {
                tracing::warn!(error = %Causes(&error), "A change was refused; comparing everything");
                return Err(Trouble::NeedsEverything);
            }
            let object = error.object();
            let owner = object.and_then(|object| desired.owner_of(self.version, object));
            let (Some(object), Some(owner)) = (object, owner) else {
                return Err(Trouble::Failed(error));
            };
            // Once may be because others changed something in between.
            if suspects.insert(object.clone()) {
                continue;
            }
            let reason = Causes(&error).to_string();
            if !self.refusals.add(object, owner, reason, first_retry, now) {
                return Err(Trouble::Failed(error));
            }
        }
        self.refusals.settle();
        self.is_uncertain = false;
        Ok(())
    }
}
