//! The tables, one for each family, and which rules are in them.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use tortie_kernel::nft::{
    BaseChain, ChainKind, Comparison, Expr, Family, FibKey, FibResult, Hook, MetaKey, Place,
    Policy, Register, Rule, Socket, Table, Transaction, Value, Verdict,
};

use super::conditions::{compare, write_network};
use super::rules::Wanted;
use crate::error::{Error, Result};
use crate::network::kernel;

const NAME: &str = "tortie-portmap";

/// Rules of containers: which ports lead to them, and which connections get another source.
const PORTS: &str = "ports";
const SOURCES: &str = "sources";

/// Where destinations and sources of connections are changed.
const DESTINATION_PRIORITY: i32 = -100;
const SOURCE_PRIORITY: i32 = 100;
/// Before anything else, destinations are as they came.
const FIRST_PRIORITY: i32 = -300;

/// The kind of an address that the node has itself.
const LOCAL: u32 = libc::RTN_LOCAL as u32;

/// How often it is begun anew where others change the same.
const ATTEMPTS: usize = 5;

/// The nftables of the node.
pub(super) struct Tables {
    socket: Socket,
}

/// A rule in a table.
struct Found {
    chain: String,
    handle: u64,
    owner: String,
    expressions: Vec<u8>,
}

impl Tables {
    pub(super) fn open() -> Result<Self> {
        let socket = Socket::open().map_err(kernel("nftables cannot be reached"))?;
        Ok(Self { socket })
    }

    /// Gives a container these rules instead of those that it has in their family.
    pub(super) fn put(&mut self, wanted: &Wanted, owner: &str) -> Result<()> {
        let table = table(wanted.family);
        self.commit(
            &format!("ports cannot be mapped in the table `{table}`"),
            |tables| {
                let found = tables.read(&table)?;
                let mut transaction = Transaction::new();
                frame(&mut transaction, &table, &found);
                for rule in found.iter().filter(|rule| rule.owner == owner) {
                    transaction.delete_rule(&table, &rule.chain, rule.handle);
                }
                for (chain, rules) in [(PORTS, &wanted.ports), (SOURCES, &wanted.sources)] {
                    // Each goes before those that are there.
                    for rule in rules.iter().rev() {
                        transaction.add_rule(&table, chain, Place::First, rule);
                    }
                }
                Ok(transaction)
            },
        )
        .map(drop)
    }

    /// Removes the rules of those owners for which this holds, and tells how many they were.
    pub(super) fn remove(&mut self, is_meant: impl Fn(&str) -> bool) -> Result<usize> {
        let mut removed = 0;
        for family in [Family::Ip, Family::Ip6] {
            let table = table(family);
            removed += self.commit(
                &format!("rules of the table `{table}` cannot be removed"),
                |tables| {
                    let mut transaction = Transaction::new();
                    for rule in tables.read(&table)? {
                        if !rule.owner.is_empty() && is_meant(&rule.owner) {
                            transaction.delete_rule(&table, &rule.chain, rule.handle);
                        }
                    }
                    Ok(transaction)
                },
            )?;
        }
        Ok(removed)
    }

    /// Whether a container has all of these rules.
    pub(super) fn has(&mut self, wanted: &Wanted, owner: &str) -> Result<bool> {
        let table = table(wanted.family);
        let found = self.read(&table)?;
        let is_there = |chain: &str, rule: &Rule| {
            let encoded = rule.encode();
            let mut own = found
                .iter()
                .filter(|found| found.owner == owner && found.chain == chain);
            own.any(|found| tortie_kernel::nft::same_rule(&encoded, &found.expressions))
        };
        Ok(wanted.ports.iter().all(|rule| is_there(PORTS, rule))
            && wanted.sources.iter().all(|rule| is_there(SOURCES, rule)))
    }

    /// Reads, decides and writes; again where somebody else has changed meanwhile what was read. Gives the number of changes.
    fn commit(
        &mut self,
        failed: &str,
        decide: impl Fn(&mut Self) -> Result<Transaction>,
    ) -> Result<usize> {
        let mut attempt = 1;
        loop {
            let transaction = decide(self)?;
            match self.socket.commit(&transaction) {
                Ok(_) => return Ok(transaction.len()),
                Err(error) if error.needs_read_back() && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(kernel(failed)(error)),
            }
        }
    }

    /// All rules of a table; none if it is not there.
    fn read(&mut self, table: &Table) -> Result<Vec<Found>> {
        let rules = self
            .socket
            .rules(table, None, |rules: &mut Vec<Found>, rule| {
                rules.push(Found {
                    chain: rule.chain.to_owned(),
                    handle: rule.handle,
                    owner: rule.comment().unwrap_or_default().to_owned(),
                    expressions: rule.expressions.to_vec(),
                });
            });
        let failed = format!("the table `{table}` cannot be read");
        let unreadable: fn(_, _) -> Error = |failed: String, error| kernel(failed)(error);
        rules.map_err(|error| unreadable(failed, error))
    }
}

fn table(family: Family) -> Table {
    Table::new(family, NAME)
}

/// The chains that are always there, and the way to them.
fn frame(transaction: &mut Transaction, table: &Table, found: &[Found]) {
    transaction.add_table(table);
    transaction.add_chain(table, PORTS);
    for (name, hook) in [("prerouting", Hook::Prerouting), ("output", Hook::Output)] {
        let chain = base(name, ChainKind::Nat, hook, DESTINATION_PRIORITY);
        transaction.add_base_chain(table, &chain);
        only_rule(transaction, table, name, &to_ports(), found);
    }
    let sources = base(SOURCES, ChainKind::Nat, Hook::Postrouting, SOURCE_PRIORITY);
    transaction.add_base_chain(table, &sources);
    if table.family == Family::Ip {
        let guard = base("guard", ChainKind::Filter, Hook::Prerouting, FIRST_PRIORITY);
        transaction.add_base_chain(table, &guard);
        only_rule(transaction, table, "guard", &stop_localhost(), found);
    }
}

fn base(name: &str, kind: ChainKind, hook: Hook, priority: i32) -> BaseChain {
    BaseChain {
        name: name.into(),
        kind,
        hook,
        priority,
        policy: Policy::Accept,
    }
}

/// Lets a chain have this rule alone.
fn only_rule(
    transaction: &mut Transaction,
    table: &Table,
    chain: &str,
    rule: &Rule,
    found: &[Found],
) {
    let encoded = rule.encode();
    let there: Vec<&Found> = found.iter().filter(|found| found.chain == chain).collect();
    let is_so =
        matches!(there[..], [one] if tortie_kernel::nft::same_rule(&encoded, &one.expressions));
    if !is_so {
        transaction.flush_chain(table, chain);
        transaction.add_rule(table, chain, Place::Last, rule);
    }
}

/// Connections to the node itself.
fn to_ports() -> Rule {
    Rule::new([
        Expr::Fib {
            with: &[FibKey::Destination],
            result: FibResult::AddressType,
            to: Register::FIRST,
        },
        compare(Comparison::Equal, Value::host32(LOCAL)),
        Expr::Verdict(Verdict::Jump(PORTS.into())),
    ])
}

/// The interfaces to containers take packets of the loopback network, for connections that begin on the node. What comes
/// from outside with such a destination would reach services that only the node itself is to reach.
fn stop_localhost() -> Rule {
    let mut exprs = vec![
        Expr::Meta {
            key: MetaKey::InputInterfaceName,
            to: Register::FIRST,
        },
        compare(Comparison::NotEqual, Value::interface("lo")),
    ];
    let localhost = Ipv4Net::new_assert(Ipv4Addr::LOCALHOST, 8).trunc();
    write_network(localhost.into(), true, Comparison::Equal, &mut exprs);
    exprs.push(Expr::Verdict(Verdict::Drop));
    Rule::new(exprs)
}
