//! Reading while others write, and large batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tortie_kernel::nft::{
    Counted, Expr, Generation, Place, Rule, RuleInKernel, Socket, Transaction, Verdict,
};

use super::{marked, with_chain};
use crate::nft::support::{append, table};

#[test]
fn counters_are_read_and_do_not_make_another_rule() {
    with_chain(|world| {
        world.nft_load("add rule ip t c counter packets 5 bytes 700 accept");
        world.nft_load("add rule ip t c accept");
        let wanted = marked("").encode();
        let read =
            |all: &mut Vec<_>, rule: RuleInKernel<'_>| all.push((rule.counted(), rule.is(&wanted)));
        let found: Vec<(Option<Counted>, bool)> = world.socket.rules(&table(), None, read).unwrap();
        let counted = Counted {
            packets: 5,
            bytes: 700,
        };
        assert_eq!(found, [(Some(counted), true), (None, false)]);
    });
}

#[test]
fn rules_of_one_chain_or_of_the_table() {
    with_chain(|world| {
        world.must_commit(|transaction| {
            transaction.add_chain(&table(), "d");
            append(transaction, &table(), "c", &[marked("1"), marked("2")]);
            append(transaction, &table(), "d", &[marked("3")]);
        });
        let chains: Vec<String> = world
            .rules(&table(), None)
            .into_iter()
            .map(|r| r.chain)
            .collect();
        assert_eq!(chains, ["c", "c", "d"]);
        assert_eq!(world.rules(&table(), Some("d")).len(), 1);
        assert_eq!(world.rules(&table(), Some("missing")), []);
    });
}

#[test]
fn generations_follow_changes() {
    with_chain(|world| {
        let mut generation = || -> Generation { world.socket.generation().unwrap() };
        let first = generation();
        assert_eq!(generation(), first);
        world.must_commit(|transaction| append(transaction, &table(), "c", &[marked("")]));
        assert_ne!(world.socket.generation().unwrap(), first);
    });
}

/// A writer replaces all rules again and again; a reader must never see some of one and some of another.
#[test]
fn a_dump_never_mixes_two_states() {
    const RULES: usize = 400;
    let fill = |transaction: &mut Transaction, comment: &str| {
        transaction.flush_chain(&table(), "c");
        let rules = vec![marked(comment); RULES];
        append(transaction, &table(), "c", &rules);
    };
    with_chain(|world| {
        world.must_commit(|transaction| fill(transaction, "even"));
        let done = AtomicBool::new(false);
        let (seen, commits) = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut socket = Socket::open().unwrap();
                let states = ["odd", "even"].map(|comment| {
                    let mut transaction = Transaction::new();
                    fill(&mut transaction, comment);
                    transaction
                });
                let mut commits = 0;
                // An end in any case, also where the reader fails.
                while commits < 5000 && !done.load(Ordering::Relaxed) {
                    socket.commit(&states[commits % 2]).unwrap();
                    commits += 1;
                    thread::sleep(Duration::from_millis(3));
                }
                commits
            });
            let seen: Vec<Vec<String>> = (0..300).map(|_| world.comments()).collect();
            done.store(true, Ordering::Relaxed);
            (seen, writer.join().unwrap())
        });
        assert!(commits > 10);
        for comments in seen {
            assert_eq!(comments.len(), RULES);
            assert!(comments.iter().all(|c| *c == comments[0]), "{comments:?}");
        }
    });
}

#[test]
fn a_batch_of_twenty_megabytes() {
    const CHAINS: usize = 500;
    const RULES: usize = 120;
    let rule = Rule::new([
        Expr::Counter,
        Expr::Counter,
        Expr::Counter,
        Expr::Verdict(Verdict::Accept),
    ])
    .with_comment(&"x".repeat(120));
    with_chain(|world| {
        let mut transaction = Transaction::new();
        for chain in 0..CHAINS {
            let chain = format!("chain-{chain}");
            transaction.add_chain(&table(), &chain);
            for _ in 0..RULES {
                transaction.add_rule(&table(), &chain, Place::Last, &rule);
            }
        }
        assert!(transaction.bytes() > 20_000_000, "{}", transaction.bytes());
        world.socket.commit(&transaction).unwrap();
        let encoded = rule.encode();
        let same =
            |count: &mut usize, rule: RuleInKernel<'_>| *count += usize::from(rule.is(&encoded));
        assert_eq!(
            world.socket.rules(&table(), None, same).unwrap(),
            CHAINS * RULES
        );
    });
}
