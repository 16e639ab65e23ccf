//! Each expression: what the kernel makes of it, how `nft` lists it, and that `nft` would have written the same.

mod actions;
mod connections;
mod lookups;
mod packets;

use tortie_kernel::nft::{
    BaseChain, ChainKind, Comparison, Expr, Family, Hook, MetaKey, Place, Register, Rule, Table,
    Transaction, Value, same_rule,
};

use crate::nft::support::{World, base_chain, in_world};

/// Where a rule is tried.
struct Ground {
    family: Family,
    chain: BaseChain,
}

const FIRST: Register = Register::FIRST;

fn ground(family: Family, kind: ChainKind, hook: Hook, priority: i32) -> Ground {
    Ground {
        family,
        chain: base_chain(kind, hook, priority),
    }
}

/// A filter of forwarded packets.
fn forward(family: Family) -> Ground {
    ground(family, ChainKind::Filter, Hook::Forward, 0)
}

/// Checks a rule of forwarded IPv4 packets.
#[track_caller]
fn check(exprs: impl IntoIterator<Item = Expr>, text: &str) {
    check_on(&forward(Family::Ip), exprs, text);
}

/// Checks that the kernel takes the rule and dumps it as it was encoded, that `nft` lists it so, and that what `nft` makes
/// of that text is the same rule.
#[track_caller]
fn check_on(ground: &Ground, exprs: impl IntoIterator<Item = Expr>, text: &str) {
    let rule = Rule::new(exprs);
    let (listed, ours, theirs) = in_world(|world| {
        let listed = {
            let ours = Table::new(ground.family, "ours");
            prepare(world, ground, &ours, Some(&rule));
            world.listed_rules(&ours, &ground.chain.name)
        };
        let theirs = Table::new(ground.family, "theirs");
        prepare(world, ground, &theirs, None);
        let chain = &ground.chain.name;
        world.nft_load(&format!("add rule {theirs} {chain} {text}"));
        let ours = world.rules(&Table::new(ground.family, "ours"), Some(chain));
        let theirs = world.rules(&theirs, Some(chain));
        (listed, ours, theirs)
    });
    let lines: Vec<&str> = listed.iter().map(|(line, _)| &**line).collect();
    assert_eq!(lines, [text]);
    let encoded = rule.encode();
    assert!(
        same_rule(&encoded, &ours[0].expressions),
        "{text}: encoded\n{encoded:02x?}\nand dumped\n{:02x?}",
        ours[0].expressions
    );
    assert!(
        same_rule(&encoded, &theirs[0].expressions),
        "{text}: encoded\n{encoded:02x?}\nand written by nft\n{:02x?}",
        theirs[0].expressions
    );
    if !text.contains('{') {
        assert_eq!(encoded, ours[0].expressions, "{text}: all bytes");
    }
}

/// Makes a table with the chain, the sets `addresses`, `services` and `gates`, and perhaps a rule.
#[track_caller]
fn prepare(world: &mut World, ground: &Ground, table: &Table, rule: Option<&Rule>) {
    let mut transaction = Transaction::new();
    transaction.add_table(table);
    transaction.add_base_chain(table, &ground.chain);
    transaction.add_chain(table, "other");
    for set in lookups::sets() {
        transaction.add_set(table, &set);
    }
    if let Some(rule) = rule {
        transaction.add_rule(table, &ground.chain.name, Place::Last, rule);
    }
    world.socket.commit(&transaction).unwrap();
}

fn meta(key: MetaKey) -> Expr {
    Expr::Meta { key, to: FIRST }
}

fn compare(how: Comparison, value: Value) -> Expr {
    Expr::Compare {
        from: FIRST,
        how,
        value,
    }
}

fn equal(value: Value) -> Expr {
    compare(Comparison::Equal, value)
}

fn mask(mask: Value, xor: Value) -> Expr {
    Expr::Bitwise {
        from: FIRST,
        to: FIRST,
        mask,
        xor,
    }
}

/// What rules about ports begin with.
fn tcp() -> [Expr; 2] {
    [meta(MetaKey::TransportProtocol), equal(Value::byte(6))]
}
