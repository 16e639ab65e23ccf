//! The iptables data plane: drives `iptables-restore` and `ipset`.
//!
//! Rules are recognised by the hashes in their comments, so that a table is read without understanding rules. Between
//! full batches the driver trusts what it wrote; a full batch reads everything and writes what differs.
//!
//! # Invariants
//! - Rules and sets of others stay as they are, and so does the order among them.
//! - A table changes at once: no packet meets a chain that is only half written. Sets come before the rules that use
//!   them and go after.
//! - Programs run in the network namespace of the calling thread.

mod input;
mod program;
mod rules;
mod saved;
mod sets;
mod variant;

use std::path::PathBuf;
use std::time::Duration;

use tortie_rules::IpVersion;

use self::rules::Rules;
use self::sets::Sets;
pub use self::sets::set_commands;
use self::variant::Tools;
pub use self::variant::{Backend, Variant};
use crate::{Batch, Drift, Driver, Error, Part};

/// How long to wait for the lock if no time is given: without waiting, programs fail when another runs.
const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How the driver works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The version of IP whose rules it writes.
    pub ip_version: IpVersion,
    /// Which kind of iptables.
    pub backend: Backend,
    /// Where the rules that lead to ours are put.
    pub insert_mode: InsertMode,
    /// How long to wait for the lock of iptables; 10 seconds if zero.
    pub lock_timeout: Duration,
    /// How often to try the lock. Newer versions of iptables wait without trying.
    pub lock_probe_interval: Duration,
    /// The lock of legacy iptables. If it may not be written, another is used.
    pub lock_file: PathBuf,
    /// How many members a set can have.
    pub max_ipset_size: u32,
}

/// Where the rules that lead to ours are put in the kernel's chains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum InsertMode {
    /// Before the rules of others.
    #[default]
    Insert,
    /// After the rules of others.
    Append,
}

/// Brings changes into iptables and ipset, for one IP version.
#[derive(Debug)]
pub struct IptablesDriver {
    rules: Rules,
    sets: Sets,
    /// Whether the kernel has what was applied, as far as one knows.
    is_known: bool,
}

// === impl Options ===

impl Options {
    /// The usual ones.
    pub fn new(ip_version: IpVersion) -> Self {
        Self {
            ip_version,
            backend: Backend::Auto,
            insert_mode: InsertMode::Insert,
            lock_timeout: DEFAULT_LOCK_TIMEOUT,
            lock_probe_interval: Duration::from_millis(50),
            lock_file: PathBuf::from("/run/xtables.lock"),
            max_ipset_size: 1 << 20,
        }
    }
}

// === impl IptablesDriver ===

impl IptablesDriver {
    /// Finds the programs. Changes nothing.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let ip_version = options.ip_version;
        let sets = Sets::new(ip_version, options.max_ipset_size)?;
        let tools = Tools::find(ip_version, options.backend, &options.lock_file)?;
        let arguments = restore_arguments(options, &tools);
        tracing::info!(variant = ?tools.variant, program = %tools.restore.name(), "Using iptables");
        Ok(Self {
            rules: Rules::new(ip_version, options.insert_mode, tools, arguments),
            sets,
            is_known: false,
        })
    }

    /// The kind of iptables in use.
    pub fn variant(&self) -> Variant {
        self.rules.tools().variant
    }

    /// Removes all rules of ours. Sets stay: both kinds of iptables look into the same ones.
    pub(crate) fn remove_rules(&mut self) -> Result<(), Error> {
        self.is_known = false;
        self.rules.apply(&Batch {
            is_full: true,
            ..Batch::default()
        })
    }

    fn unknown(&self) -> Error {
        Error::Program {
            program: self.rules.tools().restore.name().into_owned(),
            message: "what is in the kernel is not known until a full batch is applied".to_owned(),
        }
    }
}

impl Driver for IptablesDriver {
    fn part(&self) -> Part {
        Part::Iptables(self.variant())
    }

    fn port(&self) -> Option<u32> {
        None
    }

    fn apply(&mut self, batch: &Batch) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        if !batch.is_full && !self.is_known {
            return Err(self.unknown());
        }
        self.is_known = false;
        let doomed = self.sets.update(batch)?;
        self.rules.apply(batch)?;
        self.sets.destroy(&doomed);
        self.is_known = true;
        Ok(())
    }

    fn compare(&mut self, full: &Batch) -> Result<Vec<Drift>, Error> {
        let mut drift = self.rules.compare(full)?;
        drift.extend(self.sets.compare(full)?);
        drift.sort_unstable();
        Ok(drift)
    }

    fn check(&mut self) -> Result<Vec<Drift>, Error> {
        if !self.is_known {
            return Err(self.unknown());
        }
        let mut drift = self.rules.check()?;
        drift.extend(self.sets.check()?);
        drift.sort_unstable();
        Ok(drift)
    }
}

fn restore_arguments(options: &Options, tools: &Tools) -> Vec<String> {
    let mut arguments = vec!["--noflush".to_owned()];
    if tools.can_wait {
        let timeout = match options.lock_timeout.as_secs() {
            0 => DEFAULT_LOCK_TIMEOUT.as_secs(),
            seconds => seconds,
        };
        let interval = options.lock_probe_interval.as_micros();
        arguments.extend(["--wait".to_owned(), timeout.to_string()]);
        arguments.extend(["--wait-interval".to_owned(), interval.to_string()]);
    }
    arguments
}
