//! The rules of one IP version: what they are in the kernel, what they should be, and the way there.

mod drift;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hashbrown::HashSet;
use tortie_rules::iptables::{Line, appended, inserted, lines};
use tortie_rules::{Chain, Hook, IpVersion, Table};

use super::InsertMode;
use super::input::{ChainEdit, HookEdit, TableEdit};
use super::program::Failure;
use super::saved::{Chains, RuleHash, SavedTable};
use super::variant::Tools;
use crate::{Batch, ChainKey, Drift, Error, Object};

/// How often writing is tried again, and how long to wait before the first time; then twice as long each time. Others
/// write to the same tables, and then the kernel refuses what was computed from their former state.
const WRITE_RETRIES: u32 = 10;
const WRITE_PAUSE: Duration = Duration::from_millis(1);

/// The same for reading.
const READ_RETRIES: u32 = 3;
const READ_PAUSE: Duration = Duration::from_millis(100);

/// The exit code for input that makes no sense. It may refer to what somebody else removed; once more, and no more.
const CODE_BAD_INPUT: i32 = 2;

/// The exit code of legacy iptables when the kernel refuses a table.
const CODE_REFUSED: i32 = 1;

/// The rules in all tables.
#[derive(Debug)]
pub(super) struct Rules {
    ip_version: IpVersion,
    insert_mode: InsertMode,
    tools: Tools,
    restore_arguments: Vec<String>,
    known: Known,
}

/// What is in the kernel, as far as it is ours.
#[derive(Debug, Default)]
struct Known {
    tables: BTreeMap<Table, Chains>,
    hooks: Vec<HookLines>,
}

/// Our rules in one of the kernel's chains.
#[derive(Debug)]
struct HookLines {
    table: Table,
    chain: &'static str,
    first: Vec<Line>,
    last: Vec<Line>,
}

/// A batch as text.
struct Rendered<'a> {
    chains: Vec<(&'a Chain, Vec<Line>)>,
    removed: &'a [ChainKey],
    /// In a full batch, the rules in the kernel's chains; what else is there goes.
    hooks: Option<&'a [HookLines]>,
}

// === impl Rules ===

impl Rules {
    /// Of this IP version, written with these programs.
    pub(super) fn new(
        ip_version: IpVersion,
        insert_mode: InsertMode,
        tools: Tools,
        restore_arguments: Vec<String>,
    ) -> Self {
        Self {
            ip_version,
            insert_mode,
            tools,
            restore_arguments,
            known: Known::default(),
        }
    }

    /// The programs in use.
    pub(super) fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Makes the changes of a batch.
    pub(super) fn apply(&mut self, batch: &Batch) -> Result<(), Error> {
        let hooks = batch.is_full.then(|| self.hook_lines(&batch.hooks));
        let rendered = Rendered {
            chains: self.chain_lines(&batch.chains),
            removed: &batch.removed_chains,
            hooks: hooks.as_deref(),
        };
        self.write(&rendered)?;
        self.remember(&rendered);
        if let Some(hooks) = hooks {
            self.known.hooks = hooks;
        }
        Ok(())
    }

    /// What differs from a full batch.
    pub(super) fn compare(&self, full: &Batch) -> Result<Vec<Drift>, Error> {
        let mut wanted = Known {
            tables: BTreeMap::new(),
            hooks: self.hook_lines(&full.hooks),
        };
        for (chain, lines) in self.chain_lines(&full.chains) {
            let table = wanted.tables.entry(chain.table).or_default();
            table.insert(Arc::clone(&chain.name), hashes(&lines));
        }
        self.differences(&wanted)
    }

    /// What differs from what was written.
    pub(super) fn check(&self) -> Result<Vec<Drift>, Error> {
        self.differences(&self.known)
    }

    fn differences(&self, wanted: &Known) -> Result<Vec<Drift>, Error> {
        let mut drift = Vec::new();
        let nothing = Chains::new();
        for table in Table::ALL {
            let found = self.read(table)?;
            let chains = wanted.tables.get(&table).unwrap_or(&nothing);
            drift::of_chains(table, chains, &found.chains, &mut drift);
            drift::of_hooks(
                table,
                &self.hook_edits(table, &wanted.hooks, &found),
                &mut drift,
            );
        }
        Ok(drift)
    }

    fn write(&self, rendered: &Rendered<'_>) -> Result<(), Error> {
        let mut pause = WRITE_PAUSE;
        let mut is_sure = rendered.hooks.is_none();
        for attempt in 0.. {
            let input = self.input(rendered, is_sure)?;
            if input.is_empty() {
                break;
            }
            let arguments: Vec<&str> = self.restore_arguments.iter().map(String::as_str).collect();
            let Err(failure) = self.tools.restore.run(&arguments, &input) else {
                break;
            };
            if attempt >= retries(&failure) {
                let named = chain_at(&input, failure.line);
                let object = match failure.code {
                    Some(CODE_REFUSED) => named.or_else(|| self.search(rendered)),
                    _ => named,
                };
                return Err(Error::from(failure).about(object.map(Object::Chain)));
            }
            tracing::warn!(error = %failure.message, "Writing rules failed; trying again");
            thread::sleep(pause);
            pause *= 2;
            is_sure = false;
        }
        Ok(())
    }

    /// The input for all tables that change; from what is known, if that is sure, or else from what the kernel says.
    ///
    /// What the kernel says does not become what is known, or else nobody would notice the damage that others did.
    fn input(&self, rendered: &Rendered<'_>, is_sure: bool) -> Result<String, Error> {
        let mut input = String::new();
        let nothing = Chains::new();
        for table in Table::ALL {
            if !rendered.touches(table) {
                continue;
            }
            let saved = if is_sure {
                SavedTable::default()
            } else {
                self.read(table)?
            };
            let found = if is_sure {
                self.known.tables.get(&table).unwrap_or(&nothing)
            } else {
                &saved.chains
            };
            let edit = self.table_edit(table, rendered, found, &saved);
            edit.write(self.tools.variant, &mut input);
        }
        Ok(input)
    }

    fn table_edit<'a>(
        &self,
        table: Table,
        rendered: &'a Rendered<'_>,
        found: &Chains,
        saved: &'a SavedTable,
    ) -> TableEdit<'a> {
        let chains = rendered
            .chains
            .iter()
            .filter(|(chain, _)| chain.table == table);
        let chains = chains.map(|(chain, lines)| {
            let found = found.get(&chain.name).map(|hashes| &**hashes);
            ChainEdit::new(&chain.name, found, lines, self.tools.variant)
        });
        let (hooks, removed) = if let Some(hooks) = rendered.hooks {
            let wanted = rendered.names(table);
            let stale = found.keys().filter(|name| !wanted.contains(&***name));
            let mut stale: Vec<_> = stale.cloned().collect();
            stale.sort_unstable();
            (self.hook_edits(table, hooks, saved), stale)
        } else {
            let keys = rendered.removed.iter().filter(|key| key.table == table);
            let present = keys.filter(|key| found.contains_key(&key.name));
            (
                Vec::new(),
                present.map(|key| Arc::clone(&key.name)).collect(),
            )
        };
        TableEdit {
            table,
            chains: chains.collect(),
            hooks,
            removed,
        }
    }

    /// What to do in the chains that are not ours.
    fn hook_edits<'a>(
        &self,
        table: Table,
        hooks: &'a [HookLines],
        saved: &'a SavedTable,
    ) -> Vec<HookEdit<'a>> {
        let is_appended = self.insert_mode == InsertMode::Append;
        let hooks = || hooks.iter().filter(|hook| hook.table == table);
        let wanted = hooks().map(|hook| HookEdit {
            chain: hook.chain,
            found: saved.hooked.get(hook.chain),
            first: &hook.first,
            last: &hook.last,
            is_appended,
        });
        let stale = saved.hooked.iter();
        let stale = stale.filter(|(name, _)| hooks().all(|hook| hook.chain != **name));
        let stale = stale.map(|(name, found)| HookEdit {
            chain: name,
            found: Some(found),
            first: &[],
            last: &[],
            is_appended,
        });
        wanted.chain(stale).collect()
    }

    fn read(&self, table: Table) -> Result<SavedTable, Error> {
        let save = &self.tools.save;
        let mut pause = READ_PAUSE;
        let mut retries = READ_RETRIES;
        let text = loop {
            match save.run(&["-t", table.name()], "") {
                Ok(text) => break text,
                Err(failure) if retries == 0 => return Err(failure.into()),
                Err(failure) => {
                    tracing::warn!(error = %failure.message, "Reading rules failed; trying again");
                }
            }
            retries -= 1;
            thread::sleep(pause);
            pause *= 2;
        };
        SavedTable::parse(&text, table).map_err(|message| Error::Program {
            program: save.name().into_owned(),
            message,
        })
    }

    fn remember(&mut self, rendered: &Rendered<'_>) {
        if rendered.hooks.is_some() {
            self.known.tables.clear();
        }
        for (chain, lines) in &rendered.chains {
            let table = self.known.tables.entry(chain.table).or_default();
            table.insert(Arc::clone(&chain.name), hashes(lines));
        }
        for key in rendered.removed {
            if let Some(table) = self.known.tables.get_mut(&key.table) {
                table.remove(&key.name);
            }
        }
    }

    fn chain_lines<'a>(&self, chains: &'a [Chain]) -> Vec<(&'a Chain, Vec<Line>)> {
        let chains = chains.iter();
        chains
            .map(|chain| (chain, lines(chain, self.ip_version)))
            .collect()
    }

    fn hook_lines(&self, hooks: &[Hook]) -> Vec<HookLines> {
        let hooks = hooks.iter().map(|hook| HookLines {
            table: hook.table,
            chain: hook.chain,
            first: inserted(hook.chain, &hook.first, self.ip_version),
            last: appended(hook.chain, &hook.last, self.ip_version),
        });
        hooks.collect()
    }
}

// === impl Rendered ===

impl Rendered<'_> {
    fn touches(&self, table: Table) -> bool {
        self.hooks.is_some()
            || self.chains.iter().any(|(chain, _)| chain.table == table)
            || self.removed.iter().any(|key| key.table == table)
    }

    fn names(&self, table: Table) -> HashSet<&str> {
        let chains = self.chains.iter().filter(|(chain, _)| chain.table == table);
        chains.map(|(chain, _)| &*chain.name).collect()
    }
}

/// The chain that a line of the input is about.
fn chain_at(input: &str, line: Option<usize>) -> Option<ChainKey> {
    let lines: Vec<&str> = input.lines().take(line? + 1).collect();
    let (command, rest) = lines.last()?.split_once(' ')?;
    if !["-A", "-R"].contains(&command) {
        return None;
    }
    let mut tables = lines.iter().rev().filter_map(|line| line.strip_prefix('*'));
    let table = tables.next()?;
    let table = Table::ALL.into_iter().find(|other| other.name() == table)?;
    let name = rest.split(' ').next()?.into();
    Some(ChainKey { table, name })
}

fn hashes(lines: &[Line]) -> Box<[RuleHash]> {
    lines.iter().map(|line| RuleHash::new(&line.hash)).collect()
}

fn retries(failure: &Failure) -> u32 {
    match failure.code {
        Some(CODE_BAD_INPUT) => 1,
        Some(_) => WRITE_RETRIES,
        // It could not be run at all.
        None => 0,
    }
}
