//! This crate.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use tortie_kernel::nft::{
    Base, Comparison, Element, Expr, Family, Field, MetaKey, Place, Register, Rule, RuleInKernel,
    Set, SetReference, Socket, Table, Transaction, Value, Verdict,
};

use crate::work::{CHAINS, CHANGE, Filter, MEMBERS, PREFIX, address, chain, filters, prefix};
use crate::{Measurement, Outcome, Report, timed};

pub(crate) const MEASUREMENTS: &[Measurement] = &[
    ("tortie/rules(1k)", |report| rules(report, 100)),
    ("tortie/rules(10k)", |report| rules(report, CHAINS)),
    ("tortie/rules(50k)", |report| rules(report, 5000)),
    ("tortie/addresses(10k)", |report| {
        set(report, &addresses(10_000))
    }),
    ("tortie/addresses(100k)", |report| {
        set(report, &addresses(MEMBERS))
    }),
    ("tortie/addresses(1m)", |report| {
        set(report, &addresses(1_000_000))
    }),
    ("tortie/prefixes(10k)", |report| {
        set(report, &prefixes(10_000))
    }),
    ("tortie/prefixes(100k)", |report| {
        set(report, &prefixes(MEMBERS))
    }),
    ("tortie/prefixes(300k)", |report| {
        set(report, &prefixes(300_000))
    }),
    ("tortie/hashed-prefixes(10k)", |report| {
        set(report, &hashed_prefixes(10_000))
    }),
    ("tortie/hashed-prefixes(100k)", |report| {
        set(report, &hashed_prefixes(MEMBERS))
    }),
    ("tortie/hashed-prefixes(300k)", |report| {
        set(report, &hashed_prefixes(300_000))
    }),
];

const RUNS: u32 = 5;
const CHANGES: u32 = 51;

/// Makes an empty transaction of some kind.
type Make = fn() -> Transaction;

/// A set to fill and change.
struct Case {
    set: Set,
    members: u32,
    element: fn(u32) -> Element,
    /// A rule that looks into it.
    rule: Rule,
}

fn table() -> Table {
    Table::new(Family::Ip, "bench")
}

fn rule(filter: &Filter) -> Rule {
    let load = |base, offset, length| Expr::Payload {
        base,
        offset,
        length,
        to: Register::FIRST,
    };
    let equal = |value| Expr::Compare {
        from: Register::FIRST,
        how: Comparison::Equal,
        value,
    };
    Rule::new([
        Expr::Meta {
            key: MetaKey::TransportProtocol,
            to: Register::FIRST,
        },
        equal(Value::byte(6)),
        load(Base::Network, 12, 4),
        equal(Value::address(IpAddr::V4(filter.source))),
        load(Base::Transport, 2, 2),
        equal(Value::network16(filter.port)),
        Expr::Counter,
        Expr::Verdict(Verdict::Accept),
    ])
    .with_comment(&filter.comment)
}

fn add_chain(transaction: &mut Transaction, table: &Table, number: u32) {
    let name = chain(number);
    transaction.add_chain(table, &name);
    for filter in filters(number) {
        transaction.add_rule(table, &name, Place::Last, &rule(&filter));
    }
}

fn add_all(transaction: &mut Transaction, table: &Table, chains: u32) {
    transaction.add_table(table);
    (0..chains).for_each(|number| add_chain(transaction, table, number));
}

fn rules(report: &Report, chains: u32) -> Outcome {
    let table = table();
    let mut socket = Socket::open()?;
    let kinds: [(&str, Make); 2] = [
        ("create", Transaction::new),
        ("create-with-handles", Transaction::with_handles),
    ];
    let mut encoding = Vec::new();
    for (name, make) in kinds {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let (time, encoded) = timed(|| {
                let (time, transaction) = timed(|| {
                    let mut transaction = make();
                    add_all(&mut transaction, &table, chains);
                    Ok(transaction)
                })?;
                socket.commit(&transaction)?;
                Ok(time)
            })?;
            times.push(time);
            encoding.push(encoded);
            delete_table(&mut socket, &table)?;
        }
        report.time(name, times)?;
    }
    report.time("create-of-which-encoding", encoding)?;

    let mut transaction = Transaction::new();
    add_all(&mut transaction, &table, chains);
    socket.commit(&transaction)?;
    for (name, make) in [
        ("add-1-chain-10-rules", Transaction::new as Make),
        (
            "add-1-chain-10-rules-with-handles",
            Transaction::with_handles,
        ),
    ] {
        let mut added = Vec::new();
        for _ in 0..CHANGES {
            let (time, ()) = timed(|| {
                let mut transaction = make();
                add_chain(&mut transaction, &table, chains);
                socket.commit(&transaction)?;
                Ok(())
            })?;
            added.push(time);
            let mut transaction = Transaction::new();
            transaction.delete_chain(&table, &chain(chains));
            socket.commit(&transaction)?;
        }
        report.time(name, added)?;
    }
    read_back(report, &mut socket, &table, chains)
}

/// Reads all rules and compares each with the one that should be there.
fn read_back(report: &Report, socket: &mut Socket, table: &Table, chains: u32) -> Outcome {
    let wanted: Vec<Vec<u8>> = (0..chains)
        .flat_map(filters)
        .map(|f| rule(&f).encode())
        .collect();
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let (time, same) = timed(|| {
            Ok(socket.rules(
                table,
                None,
                |same: &mut Vec<bool>, rule: RuleInKernel<'_>| {
                    same.push(wanted.get(same.len()).is_some_and(|wanted| rule.is(wanted)));
                },
            )?)
        })?;
        if same.len() != wanted.len() || same.contains(&false) {
            return Err("what was read is not what was written".into());
        }
        times.push(time);
    }
    report.time("read-and-compare", times)?;
    let mut times = Vec::new();
    for number in (0..chains).take(usize::try_from(CHANGES)?) {
        let name = chain(number);
        let count = |count: &mut usize, _: RuleInKernel<'_>| *count += 1;
        times.push(timed(|| Ok(socket.rules(table, Some(&name), count)?))?.0);
    }
    report.time("read-1-chain", times)
}

fn lookup(set: &str, mask: Option<u32>) -> Rule {
    let load = Expr::Payload {
        base: Base::Network,
        offset: 12,
        length: 4,
        to: Register::FIRST,
    };
    let masked = mask.map(|mask| Expr::Bitwise {
        from: Register::FIRST,
        to: Register::FIRST,
        mask: Value::network32(mask),
        xor: Value::network32(0),
    });
    let lookup = Expr::Lookup {
        set: SetReference::Named(set.into()),
        from: Register::FIRST,
        inverted: false,
    };
    let accept = Expr::Verdict(Verdict::Accept);
    Rule::new([load].into_iter().chain(masked).chain([lookup, accept]))
}

fn addresses(members: u32) -> Case {
    Case {
        set: Set::new("s", [Field::Ipv4Addr]),
        members,
        element: |number| Element::single(IpAddr::V4(address(number))),
        rule: lookup("s", None),
    }
}

fn prefixes(members: u32) -> Case {
    Case {
        set: Set::interval("s", [Field::Ipv4Addr]),
        members,
        element: |number| Element::prefix(IpNet::V4(Ipv4Net::new_assert(prefix(number), PREFIX))),
        rule: lookup("s", None),
    }
}

/// All prefixes of one length, as the addresses that are left of packets' addresses when masked.
fn hashed_prefixes(members: u32) -> Case {
    Case {
        set: Set::new("s", [Field::Ipv4Addr]),
        members,
        element: |number| Element::single(IpAddr::V4(prefix(number))),
        rule: lookup("s", Some(u32::MAX << (32 - PREFIX))),
    }
}

fn set(report: &Report, case: &Case) -> Outcome {
    let table = table();
    let mut socket = Socket::open()?;
    let mut created = Vec::new();
    for run in 0..RUNS {
        let (time, ()) = timed(|| {
            let mut transaction = Transaction::new();
            transaction.add_table(&table);
            transaction.add_chain(&table, "c");
            transaction.add_set(&table, &case.set);
            transaction.add_rule(&table, "c", Place::Last, &case.rule);
            transaction.add_elements(&table, &case.set, (0..case.members).map(case.element));
            socket.commit(&transaction)?;
            Ok(())
        })?;
        created.push(time);
        if run + 1 < RUNS {
            delete_table(&mut socket, &table)?;
        }
    }
    report.time("create", created)?;

    let (mut added, mut deleted) = (Vec::new(), Vec::new());
    for run in 0..CHANGES.min(if case.set.interval { 11 } else { CHANGES }) {
        // Not those that were added before, which may still be around.
        let first = case.members + run * CHANGE;
        let change = || (first..first + CHANGE).map(case.element);
        let (time, ()) = timed(|| {
            let mut transaction = Transaction::new();
            transaction.add_elements(&table, &case.set, change());
            socket.commit(&transaction)?;
            Ok(())
        })?;
        added.push(time);
        let (time, ()) = timed(|| {
            let mut transaction = Transaction::new();
            transaction.delete_elements(&table, &case.set, change());
            socket.commit(&transaction)?;
            Ok(())
        })?;
        deleted.push(time);
    }
    report.time("add-100", added)?;
    report.time("delete-100", deleted)?;
    if case.members > MEMBERS {
        return Ok(());
    }
    let (time, elements) = timed(|| Ok(socket.elements(&table, &case.set)?))?;
    if elements.len() != usize::try_from(case.members)? {
        return Err("what was read is not what was written".into());
    }
    report.time("read", vec![time])
}

/// Deletes the table, and lets the kernel free what was in it.
fn delete_table(socket: &mut Socket, table: &Table) -> Outcome {
    let mut transaction = Transaction::new();
    transaction.delete_table(table);
    socket.commit(&transaction)?;
    std::thread::sleep(Duration::from_millis(200));
    Ok(())
}
