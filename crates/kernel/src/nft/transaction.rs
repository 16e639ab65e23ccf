//! Changes that take effect together.

use super::describe::{describe, subject};
use super::element::Element;
use super::error::Subject;
use super::expr::write_all;
use super::number::{chain, elements, flag, hook, message, rule, set, table};
use super::rule::Rule;
use super::set::{Form, Set};
use super::table::{BaseChain, Table};
use crate::netlink::{Message, Writer, messages};

/// How much of elements one message holds, so that the list and the rest fit the 16 bits of its length.
const ELEMENT_BYTES: usize = 60_000;

/// What the names of sets that belong to one rule begin with.
const OWN_SET: &str = "__";

/// Changes that take effect together, in this order, or not at all.
///
/// They are written as they are added, so that committing only sends. Adding a table, chain, set or element that is
/// there already with the same properties changes nothing; deleting what is not there is refused.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    out: Writer,
    /// Where each message begins. A message's number is its sequence number.
    starts: Vec<usize>,
    /// The first message that was too long to be written.
    oversized: Option<usize>,
    next_set: u32,
    with_handles: bool,
}

/// One change of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operation(pub(super) usize);

/// A place in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// At the end.
    Last,
    /// At the beginning.
    First,
    /// Before the rule with this handle.
    Before(u64),
    /// Behind the rule with this handle.
    After(u64),
}

impl Transaction {
    /// A transaction that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A transaction whose commit tells the handles of new rules.
    pub fn with_handles() -> Self {
        Self {
            with_handles: true,
            ..Self::default()
        }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// How many messages it has.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    pub fn add_table(&mut self, table: &Table) {
        self.message(message::NEW_TABLE, flag::CREATE, table, |out| {
            out.string(table::NAME, &table.name);
            out.u32(table::FLAGS, 0);
        });
    }

    pub fn delete_table(&mut self, table: &Table) {
        self.message(message::DELETE_TABLE, 0, table, |out| {
            out.string(table::NAME, &table.name);
        });
    }

    /// Adds a chain that rules jump to.
    pub fn add_chain(&mut self, table: &Table, name: &str) {
        self.message(message::NEW_CHAIN, flag::CREATE, table, |out| {
            out.string(chain::TABLE, &table.name);
            out.string(chain::NAME, name);
        });
    }

    /// Adds a chain that the kernel enters by itself, or changes the policy of one.
    pub fn add_base_chain(&mut self, table: &Table, base: &BaseChain) {
        self.message(message::NEW_CHAIN, flag::CREATE, table, |out| {
            out.string(chain::TABLE, &table.name);
            out.string(chain::NAME, &base.name);
            out.nest(chain::HOOK, |out| {
                out.u32(hook::NUMBER, base.hook.number(table.family));
                out.u32(hook::PRIORITY, base.priority.cast_unsigned());
            });
            out.u32(chain::POLICY, base.policy.number());
            out.string(chain::TYPE, base.kind.name());
        });
    }

    /// Deletes a chain and its rules. No rule that stays may jump to it.
    pub fn delete_chain(&mut self, table: &Table, name: &str) {
        self.message(message::DELETE_CHAIN, 0, table, |out| {
            out.string(chain::TABLE, &table.name);
            out.string(chain::NAME, name);
        });
    }

    /// Deletes all rules of a chain.
    pub fn flush_chain(&mut self, table: &Table, name: &str) {
        self.message(message::DELETE_RULE, 0, table, |out| {
            out.string(rule::TABLE, &table.name);
            out.string(rule::CHAIN, name);
        });
    }

    pub fn add_rule(&mut self, table: &Table, chain: &str, place: Place, rule: &Rule) -> Operation {
        let (flags, position) = match place {
            Place::Last => (flag::APPEND, None),
            Place::First => (0, None),
            Place::Before(handle) => (0, Some(handle)),
            Place::After(handle) => (flag::APPEND, Some(handle)),
        };
        let attribute = position.map(|handle| (rule::POSITION, handle));
        self.new_rule(table, chain, flag::CREATE | flags, attribute, rule)
    }

    /// Puts a rule in the place of the one with this handle, and gives it that handle.
    pub fn replace_rule(
        &mut self,
        table: &Table,
        chain: &str,
        handle: u64,
        rule: &Rule,
    ) -> Operation {
        let attribute = Some((rule::HANDLE, handle));
        self.new_rule(table, chain, flag::REPLACE, attribute, rule)
    }

    /// Deletes the rule with this handle.
    pub fn delete_rule(&mut self, table: &Table, chain: &str, handle: u64) {
        self.message(message::DELETE_RULE, 0, table, |out| {
            out.string(rule::TABLE, &table.name);
            out.string(rule::CHAIN, chain);
            out.u64(rule::HANDLE, handle);
        });
    }

    /// Adds a set or map with no elements.
    pub fn add_set(&mut self, table: &Table, set: &Set) {
        self.new_set(table, &set.name, &set.form());
    }

    /// Deletes a set. No rule that stays may look into it.
    pub fn delete_set(&mut self, table: &Table, name: &str) {
        self.message(message::DELETE_SET, 0, table, |out| {
            out.string(set::TABLE, &table.name);
            out.string(set::NAME, name);
        });
    }

    /// Deletes all elements of a set.
    pub fn flush_set(&mut self, table: &Table, name: &str) {
        self.message(message::DELETE_ELEMENTS, 0, table, |out| {
            out.string(elements::TABLE, &table.name);
            out.string(elements::SET, name);
        });
    }

    /// Adds elements to a set. Ranges must not overlap each other or those that are there.
    pub fn add_elements(
        &mut self,
        table: &Table,
        set: &Set,
        added: impl IntoIterator<Item = Element>,
    ) {
        let form = set.form();
        self.elements(
            message::NEW_ELEMENTS,
            table,
            (&set.name, None),
            &form,
            added,
        );
    }

    /// Deletes elements of a set, by their keys.
    pub fn delete_elements(
        &mut self,
        table: &Table,
        set: &Set,
        deleted: impl IntoIterator<Item = Element>,
    ) {
        let form = set.form();
        self.elements(
            message::DELETE_ELEMENTS,
            table,
            (&set.name, None),
            &form,
            deleted,
        );
    }

    /// The messages, and where the last of them begins.
    pub(super) fn encoded(&self) -> (&[u8], usize) {
        (
            self.out.as_bytes(),
            self.starts.last().copied().unwrap_or_default(),
        )
    }

    /// The first operation that was too long to be written.
    pub(super) fn oversized(&self) -> Option<usize> {
        self.oversized
    }

    pub(super) fn wants_handles(&self) -> bool {
        self.with_handles
    }

    /// Says what the message with this number asks for.
    pub(super) fn describe(&self, number: usize) -> String {
        let asked = self.asked(number);
        asked.map_or_else(|| "do it all at once".to_owned(), |asked| describe(&asked))
    }

    /// What the message with this number makes or changes.
    pub(super) fn subject(&self, number: usize) -> Option<Subject> {
        let found = subject(&self.asked(number)?)?;
        match found {
            // A rule's own sets come before the rule.
            Subject::Set(name) if name.starts_with(OWN_SET) => {
                let later = (number + 1..self.starts.len()).filter_map(|number| self.asked(number));
                let mut rules = later.filter(|asked| asked.kind == message::NEW_RULE);
                subject(&rules.next()?)
            }
            found => Some(found),
        }
    }

    fn asked(&self, number: usize) -> Option<Message<'_>> {
        let start = self.starts.get(number)?;
        messages(self.out.as_bytes().get(*start..)?).next()
    }

    fn new_rule(
        &mut self,
        table: &Table,
        chain: &str,
        flags: u16,
        place: Option<(u16, u64)>,
        rule: &Rule,
    ) -> Operation {
        let first_set = self.next_set;
        for set in rule.inline_sets() {
            let form = set.form();
            let id = self.new_set(table, set.name(), &form);
            let named = (set.name(), Some(id));
            self.elements(
                message::NEW_ELEMENTS,
                table,
                named,
                &form,
                set.elements().iter().cloned(),
            );
        }
        let echo = if self.with_handles { flag::ECHO } else { 0 };
        self.message(message::NEW_RULE, flags | echo, table, |out| {
            out.string(rule::TABLE, &table.name);
            out.string(rule::CHAIN, chain);
            if let Some((attribute, handle)) = place {
                out.u64(attribute, handle);
            }
            out.nest(rule::EXPRESSIONS, |out| {
                write_all(&rule.exprs, Some(first_set), out);
            });
            if !rule.userdata.is_empty() {
                out.bytes(rule::USERDATA, &rule.userdata);
            }
        })
    }

    /// Adds a set, and tells the number by which the rest of the transaction may know it.
    fn new_set(&mut self, table: &Table, name: &str, form: &Form<'_>) -> u32 {
        let id = self.next_set;
        self.next_set += 1;
        self.message(message::NEW_SET, flag::CREATE, table, |out| {
            out.string(set::TABLE, &table.name);
            form.write(name, id, out);
        });
        id
    }

    fn elements(
        &mut self,
        kind: u16,
        table: &Table,
        (set, id): (&str, Option<u32>),
        form: &Form<'_>,
        elements: impl IntoIterator<Item = Element>,
    ) {
        let flags = if kind == message::NEW_ELEMENTS {
            flag::CREATE
        } else {
            0
        };
        let mut elements = elements.into_iter().peekable();
        while elements.peek().is_some() {
            self.message(kind, flags, table, |out| {
                out.string(elements::TABLE, &table.name);
                out.string(elements::SET, set);
                if let Some(id) = id {
                    out.u32(elements::SET_ID, id);
                }
                out.nest(elements::LIST, |out| {
                    let start = out.len();
                    while out.len() - start < ELEMENT_BYTES
                        && let Some(element) = elements.next()
                    {
                        element.write(form, out);
                    }
                });
            });
        }
    }

    fn message(
        &mut self,
        kind: u16,
        flags: u16,
        table: &Table,
        fill: impl FnOnce(&mut Writer),
    ) -> Operation {
        let number = self.starts.len();
        self.starts.push(self.out.len());
        // A sequence number that repeats after four thousand million messages misleads no more than an error's text.
        #[expect(clippy::cast_possible_truncation, reason = "it may repeat")]
        let sequence = number as u32;
        self.out
            .message(kind, flag::REQUEST | flags, sequence, |out| {
                out.raw(&[table.family.number(), 0, 0, 0]);
                fill(out);
            });
        if self.out.is_oversized() {
            self.oversized.get_or_insert(number);
        }
        Operation(number)
    }
}
