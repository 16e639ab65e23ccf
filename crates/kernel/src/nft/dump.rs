//! Reading what the kernel has.

use std::thread;
use std::time::Duration;

use super::describe::FAMILY_HEADER;
use super::element::{Element, Stored, join};
use super::error::{Error, Result};
use super::number::{
    chain, counter, elements, expression, flag, generation, hook, message, rule, set,
    set_description, table,
};
use super::rule::same_rule;
use super::set::Set;
use super::socket::{ATTEMPTS, Socket, request};
use super::table::{BaseChain, ChainKind, Family, Hook, Policy, Table};
use crate::netlink::{Attribute, Message, attributes};

/// A while in which the kernel gets on with fitting a hash table to its new size.
const RESIZING: Duration = Duration::from_millis(10);

/// A number that grows with each change of any table in the network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation(u32);

/// A chain of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chain {
    /// One that rules jump to.
    Regular(String),
    /// One that the kernel enters by itself; none if it is of a kind that is not known here.
    Base(String, Option<BaseChain>),
}

/// A rule of the kernel, borrowed from its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleInKernel<'a> {
    /// The chain that it is in.
    pub chain: &'a str,
    /// Its number, unique in its table.
    pub handle: u64,
    /// What a program keeps with it.
    pub userdata: &'a [u8],
    /// Its expressions, for [`RuleInKernel::is`].
    pub expressions: &'a [u8],
}

/// What a counter has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    pub packets: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetInKernel {
    pub name: String,
    flags: u32,
    key_type: u32,
    key_length: u32,
    data_type: u32,
    size: Option<u32>,
}

impl Socket {
    /// The generation of the whole ruleset.
    pub fn generation(&mut self) -> Result<Generation> {
        let asked = request(message::GET_GENERATION, flag::ACK, 0, |_| {});
        let mut generation = Generation(0);
        self.ask(&asked, |answer| {
            if answer.kind == message::NEW_GENERATION {
                let id = body(answer).find(|a| a.kind == generation::ID);
                generation = Generation(id.map_or(0, |a| a.u32()));
            }
        })?;
        Ok(generation)
    }

    /// The tables of the families known here.
    pub fn tables(&mut self) -> Result<Vec<Table>> {
        self.dump(
            message::GET_TABLE,
            0,
            |_| {},
            |tables: &mut Vec<Table>, answer| {
                let name = body(answer).find(|a| a.kind == table::NAME);
                if let (Some(name), Some(family)) = (name, family(answer)) {
                    tables.push(Table::new(family, name.text()));
                }
            },
        )
    }

    pub fn chains(&mut self, table: &Table) -> Result<Vec<Chain>> {
        self.read_at_once(|socket, chains| socket.read_chains(table, chains))
    }

    fn read_chains(&mut self, table: &Table, chains: &mut Vec<Chain>) -> Result<bool> {
        let asked = request(
            message::GET_CHAIN,
            flag::DUMP,
            table.family.number(),
            |_| {},
        );
        self.ask(&asked, |answer| {
            // The kernel gives those of all tables.
            if body(answer).any(|a| a.kind == chain::TABLE && a.text() == &*table.name) {
                chains.push(Chain::read(table.family, answer));
            }
        })
    }

    /// The rules of a table, or of one of its chains, in their order.
    ///
    /// Each goes to `visit`, with what it made of those before. Where rules change meanwhile, it begins again with a new
    /// `T`. A table or chain that is not there has no rules.
    pub fn rules<T: Default>(
        &mut self,
        table: &Table,
        chain: Option<&str>,
        mut visit: impl FnMut(&mut T, RuleInKernel<'_>),
    ) -> Result<T> {
        self.read_at_once(|socket, result| {
            let mut visit = |rule: RuleInKernel<'_>| visit(result, rule);
            if let Some(chain) = chain {
                return socket.read_rules(table, chain, &mut visit);
            }
            // The kernel could be asked for all rules of the table, but it counts through them from the first for each page
            // of its answer.
            let mut chains = Vec::new();
            let mut changed = socket.read_chains(table, &mut chains)?;
            for chain in &chains {
                changed |= socket.read_rules(table, chain.name(), &mut visit)?;
            }
            Ok(changed)
        })
    }

    fn read_rules(
        &mut self,
        table: &Table,
        chain: &str,
        visit: &mut impl FnMut(RuleInKernel<'_>),
    ) -> Result<bool> {
        let asked = request(
            message::GET_RULE,
            flag::DUMP,
            table.family.number(),
            |out| {
                out.string(rule::TABLE, &table.name);
                out.string(rule::CHAIN, chain);
            },
        );
        self.ask(&asked, |answer| visit(RuleInKernel::read(answer)))
    }

    /// The sets and maps of a table that have names. A table that is not there has none.
    pub fn sets(&mut self, table: &Table) -> Result<Vec<SetInKernel>> {
        let found = self.dump(
            message::GET_SET,
            table.family.number(),
            |out| out.string(set::TABLE, &table.name),
            |sets: &mut Vec<SetInKernel>, answer| {
                let found = SetInKernel::read(answer);
                if found.flags & set::FLAG_ANONYMOUS == 0 {
                    sets.push(found);
                }
            },
        );
        match found {
            Err(error) if error.errno() == Some(libc::ENOENT) => Ok(Vec::new()),
            found => found,
        }
    }

    /// The elements of a set, sorted, as they would be added. Ranges that touch stay apart.
    ///
    /// The kernel walks a large set from its beginning for each of the pages of its answer, so that reading one takes longer
    /// than writing it.
    pub fn elements(&mut self, table: &Table, set: &Set) -> Result<Vec<Element>> {
        for _ in 0..ATTEMPTS {
            if let Some(elements) = join(self.stored_elements(table, set)?, &set.form()) {
                return Ok(elements);
            }
            thread::sleep(RESIZING);
        }
        Err(Error::KeptChanging { attempts: ATTEMPTS })
    }

    fn stored_elements(&mut self, table: &Table, set: &Set) -> Result<Vec<Stored>> {
        self.dump(
            message::GET_ELEMENTS,
            table.family.number(),
            |out| {
                out.string(elements::TABLE, &table.name);
                out.string(elements::SET, &set.name);
            },
            |stored: &mut Vec<Stored>, answer| {
                let lists = body(answer).filter(|a| a.kind == elements::LIST);
                stored.extend(
                    lists
                        .flat_map(|list| list.nested())
                        .filter_map(|a| Stored::read(&a)),
                );
            },
        )
    }
}

impl Chain {
    pub fn name(&self) -> &str {
        match self {
            Self::Regular(name) | Self::Base(name, _) => name,
        }
    }

    fn read(family: Family, answer: &Message<'_>) -> Self {
        let find = |kind: u16| body(answer).find(|a| a.kind == kind);
        let name = find(chain::NAME).map_or("", |a| a.text());
        let Some(hook) = find(chain::HOOK) else {
            return Self::Regular(name.to_owned());
        };
        let of_hook = |kind: u16| hook.nested().find(|a| a.kind == kind).map(|a| a.u32());
        let base = || {
            let policy = find(chain::POLICY)?.u32();
            Some(BaseChain {
                name: name.into(),
                kind: ChainKind::from_name(find(chain::TYPE)?.text())?,
                hook: Hook::from_number(of_hook(hook::NUMBER)?, family)?,
                priority: of_hook(hook::PRIORITY)?.cast_signed(),
                policy: if policy == Policy::Accept.number() {
                    Policy::Accept
                } else {
                    Policy::Drop
                },
            })
        };
        Self::Base(name.to_owned(), base())
    }
}

impl<'a> RuleInKernel<'a> {
    /// Whether it is the rule that [`Rule::encode`](super::Rule::encode) gave these bytes for; see [`same_rule`].
    pub fn is(&self, encoded: &[u8]) -> bool {
        same_rule(encoded, self.expressions)
    }

    /// What its first counter has counted.
    pub fn counted(&self) -> Option<Counted> {
        let counter = attributes(self.expressions).find(|expr| {
            expr.nested()
                .any(|a| a.kind == expression::NAME && a.text() == "counter")
        })?;
        let data = counter.nested().find(|a| a.kind == expression::DATA)?;
        let number = |kind: u16| data.nested().find(|a| a.kind == kind).map(|a| a.u64());
        Some(Counted {
            packets: number(counter::PACKETS)?,
            bytes: number(counter::BYTES)?,
        })
    }

    /// The comment that `nft` would show.
    pub fn comment(&self) -> Option<&'a str> {
        const COMMENT: u8 = 0;
        let mut rest = self.userdata;
        while let [kind, length, values @ ..] = rest {
            let (value, others) = values.split_at_checked(usize::from(*length))?;
            if *kind == COMMENT {
                return std::str::from_utf8(value.strip_suffix(&[0])?).ok();
            }
            rest = others;
        }
        None
    }

    fn read(answer: &Message<'a>) -> Self {
        let mut found = Self::default();
        for attribute in body(answer) {
            match attribute.kind {
                rule::CHAIN => found.chain = attribute.text(),
                rule::HANDLE => found.handle = attribute.u64(),
                rule::USERDATA => found.userdata = attribute.value,
                rule::EXPRESSIONS => found.expressions = attribute.value,
                _ => {}
            }
        }
        found
    }
}

impl SetInKernel {
    /// Whether it has the name and the form of this set, so that elements can be added instead of making it anew.
    pub fn is(&self, set: &Set) -> bool {
        let form = set.form();
        *self.name == *set.name
            && self.flags == form.flags()
            && self.key_type == form.key_type()
            && self.key_length == form.key_length()
            && self.data_type == form.data_type()
            && self.size == form.size()
    }

    fn read(answer: &Message<'_>) -> Self {
        let mut found = Self::default();
        for attribute in body(answer) {
            match attribute.kind {
                set::NAME => attribute.text().clone_into(&mut found.name),
                set::FLAGS => found.flags = attribute.u32(),
                set::KEY_TYPE => found.key_type = attribute.u32(),
                set::KEY_LENGTH => found.key_length = attribute.u32(),
                set::DATA_TYPE => found.data_type = attribute.u32(),
                set::DESCRIPTION => {
                    let size = attribute.nested().find(|a| a.kind == set_description::SIZE);
                    found.size = size.map(|a| a.u32());
                }
                _ => {}
            }
        }
        found
    }
}

fn family(answer: &Message<'_>) -> Option<Family> {
    Family::from_number(*answer.payload.first()?)
}

/// The attributes behind the family's header.
fn body<'a>(answer: &Message<'a>) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
    attributes(answer.payload.get(FAMILY_HEADER..).unwrap_or_default())
}
