//! The nftables driver: one table per IP version, changed by one transaction for each batch.
//!
//! A rule carries a digest of itself in its userdata. Comparing digests tells which rules of a chain are new, after a
//! restart too, so that a change to one rule of a large chain touches that rule alone, and a restart touches nothing
//! that is right already. The hash in a rule's comment is Calico's: it covers the rules before as well, and is written
//! when the rule is.

mod actual;
mod base;
mod compile;
mod diff;
mod digest;
mod sets;

use std::sync::Arc;

use hashbrown::HashMap;
use tortie_kernel::nft::{Family, Set, Socket, Subject, Table as KernelTable, Transaction};
use tortie_rules::{IpVersion, Table, nftables};

use crate::change::{Batch, ChainKey, Drift, Driver, Error, Object, Part};

use actual::Actual;
pub use base::chains as base_chains;
use digest::RuleDigest;

/// The name of the table, as Calico's.
pub const TABLE: &str = "calico";

/// Chains with more rules than this are changed rule by rule; others are written anew.
const REWRITTEN_UP_TO: usize = 32;

/// After so many refusals in a row the table is made anew. Finding one object that is to blame takes fewer.
const RECREATE_TABLE_AFTER: u32 = 6;

/// Drives nftables for one IP version.
#[derive(Debug)]
pub struct NftablesDriver {
    socket: Socket,
    table: KernelTable,
    ip_version: IpVersion,
    /// What was applied; `None` until the first batch, and after an error.
    applied: Option<Applied>,
    /// How many times in a row the kernel refused.
    failures: u32,
}

/// What is in the kernel, as far as we made it.
#[derive(Debug, Default)]
struct Applied {
    /// Chains by their full names.
    chains: HashMap<Arc<str>, Vec<RuleState>>,
    sets: HashMap<Arc<str>, SetState>,
}

/// A rule in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RuleState {
    digest: RuleDigest,
    /// Its handle; zero where it was not read, since its chain is written anew when it changes.
    handle: u64,
}

/// A set in the kernel, with a sum over its members that does not depend on their order.
#[derive(Debug, Clone)]
struct SetState {
    set: Set,
    fingerprint: sets::Fingerprint,
}

fn family(ip_version: IpVersion) -> Family {
    match ip_version {
        IpVersion::V4 => Family::Ip,
        IpVersion::V6 => Family::Ip6,
    }
}

/// Whether a chain's name is one of those that we give in our table.
fn is_ours(name: &str) -> bool {
    let layers = Table::ALL.iter().map(|table| table.name());
    layers.chain(["cali"]).any(|layer| {
        let rest = name.strip_prefix(layer);
        rest.is_some_and(|rest| rest.starts_with('-'))
    })
}

// === impl NftablesDriver ===

impl NftablesDriver {
    /// A driver for the network namespace of the calling thread.
    pub fn open(ip_version: IpVersion) -> Result<Self, Error> {
        Ok(Self {
            socket: Socket::open()?,
            table: KernelTable::new(family(ip_version), TABLE),
            ip_version,
            applied: None,
            failures: 0,
        })
    }

    /// Whether the kernel has nftables and lets us use it.
    pub fn is_usable() -> bool {
        Socket::open().is_ok_and(|mut socket| socket.tables().is_ok())
    }

    /// Whether our table is there.
    pub(crate) fn is_there(&mut self) -> Result<bool, Error> {
        Ok(self.socket.tables()?.contains(&self.table))
    }

    /// Whether there is any table of one of these names.
    pub(crate) fn has_tables(&mut self, names: &[&str]) -> Result<bool, Error> {
        let tables = self.socket.tables()?;
        let mut ours = tables
            .iter()
            .filter(|table| table.family == self.table.family);
        Ok(ours.any(|table| names.contains(&&*table.name)))
    }

    /// Removes our table and all in it.
    pub fn remove_all(&mut self) -> Result<(), Error> {
        self.applied = None;
        let mut transaction = Transaction::new();
        // Adding first makes deletion succeed in any case.
        transaction.add_table(&self.table);
        transaction.delete_table(&self.table);
        self.socket.commit(&transaction)?;
        Ok(())
    }

    fn try_apply(&mut self, batch: &Batch) -> Result<(), Error> {
        let mut transaction = Transaction::new();
        let mut actual = match self.applied.take() {
            Some(applied) if !batch.is_full => Actual::from_applied(applied),
            _ if self.failures >= RECREATE_TABLE_AFTER => {
                // Something is in the way that the comparison does not see. A new table in place of the old one, still
                // at once, gets rid of it.
                transaction.add_table(&self.table);
                transaction.delete_table(&self.table);
                transaction.add_table(&self.table);
                Actual::default()
            }
            _ => {
                let actual = Actual::read(&mut self.socket, &self.table)?;
                transaction.add_table(&self.table);
                actual
            }
        };
        let mut plan = diff::Plan {
            table: &self.table,
            ip_version: self.ip_version,
            transaction: &mut transaction,
            actual: &mut actual,
        };
        plan.write(batch);
        let changed = std::mem::take(&mut actual.numbered_chains_changed);
        self.socket
            .commit(&transaction)
            .map_err(|error| refused(error, batch))?;
        let mut applied = actual.into_applied();
        for chain in changed {
            // The change is in force; what follows only prepares for the next one.
            let handles =
                self.socket
                    .rules(&self.table, Some(&chain), |handles: &mut Vec<u64>, rule| {
                        handles.push(rule.handle);
                    })?;
            let Some(rules) = applied.chains.get_mut(&chain) else {
                continue;
            };
            if rules.len() != handles.len() {
                // Somebody else was faster. Without handles the chain is written anew next time.
                continue;
            }
            for (rule, handle) in rules.iter_mut().zip(handles) {
                rule.handle = handle;
            }
        }
        self.applied = Some(applied);
        Ok(())
    }
}

impl Driver for NftablesDriver {
    fn part(&self) -> Part {
        Part::Nftables
    }

    fn port(&self) -> Option<u32> {
        self.socket.port().ok()
    }

    fn apply(&mut self, batch: &Batch) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        let result = self.try_apply(batch);
        self.failures = if result.is_ok() { 0 } else { self.failures + 1 };
        result
    }

    fn compare(&mut self, full: &Batch) -> Result<Vec<Drift>, Error> {
        let actual = Actual::read(&mut self.socket, &self.table)?;
        let mut wanted = Actual::default();
        let mut nothing = Transaction::new();
        let mut plan = diff::Plan {
            table: &self.table,
            ip_version: self.ip_version,
            transaction: &mut nothing,
            actual: &mut wanted,
        };
        plan.write(full);
        Ok(actual.drift_from(&wanted.into_applied()))
    }

    fn check(&mut self) -> Result<Vec<Drift>, Error> {
        let actual = Actual::read(&mut self.socket, &self.table)?;
        match &self.applied {
            Some(applied) => Ok(actual.drift_from(applied)),
            None => Ok(Vec::new()),
        }
    }
}

/// With the object that was refused, as the batch calls it.
fn refused(error: tortie_kernel::nft::Error, batch: &Batch) -> Error {
    let object = error.subject().and_then(|subject| match subject {
        Subject::Set(name) => Some(Object::Set(name.as_str().into())),
        Subject::Chain(name) => {
            let mut chains = batch.chains.iter();
            let chain = chains.find(|chain| *full_name(chain.table, &chain.name) == **name)?;
            Some(Object::Chain(ChainKey::of(chain)))
        }
    });
    Error::from(error).about(object)
}

/// The full name of a chain.
fn full_name(table: Table, name: &str) -> Arc<str> {
    nftables::chain_name(table, name).into()
}
