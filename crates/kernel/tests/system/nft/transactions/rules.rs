//! Where rules go, and their handles and comments.

use tortie_kernel::nft::{Place, Rule, Transaction};

use super::{marked, with_chain};
use crate::nft::support::{append, table};

#[test]
fn rules_go_where_they_are_told() {
    with_chain(|world| {
        world.must_commit(|transaction| {
            append(transaction, &table(), "c", &[marked("2"), marked("4")]);
            transaction.add_rule(&table(), "c", Place::First, &marked("1"));
        });
        let (two, four) = (world.handle_of("2"), world.handle_of("4"));
        world.must_commit(|transaction| {
            transaction.add_rule(&table(), "c", Place::After(two), &marked("3"));
            transaction.add_rule(&table(), "c", Place::Before(four), &marked("3.5"));
            transaction.add_rule(&table(), "c", Place::Before(four), &marked("3.6"));
        });
        assert_eq!(world.comments(), ["1", "2", "3", "3.5", "3.6", "4"]);
        world.must_commit(|transaction| {
            transaction.delete_rule(&table(), "c", two);
            transaction.replace_rule(&table(), "c", four, &marked("four"));
        });
        assert_eq!(world.comments(), ["1", "3", "3.5", "3.6", "four"]);
        assert_eq!(world.handle_of("four"), four);
        world.must_commit(|transaction| {
            transaction.flush_chain(&table(), "c");
            append(transaction, &table(), "c", &[marked("new")]);
        });
        assert_eq!(world.comments(), ["new"]);
    });
}

#[test]
fn handles_of_new_rules_are_told_if_asked_for() {
    with_chain(|world| {
        let mut transaction = Transaction::with_handles();
        transaction.add_chain(&table(), "d");
        let comments: Vec<String> = (0..3000).map(|i| format!("rule {i}")).collect();
        let asked: Vec<_> = comments
            .iter()
            .map(|comment| transaction.add_rule(&table(), "c", Place::First, &marked(comment)))
            .collect();
        let committed = world.socket.commit(&transaction).unwrap();
        let in_kernel = world.rules(&table(), Some("c"));
        assert_eq!(committed.handles.len(), comments.len());
        // The last that was put first is the first.
        let expected: Vec<_> = asked
            .iter()
            .copied()
            .zip(in_kernel.iter().rev().map(|rule| rule.handle))
            .collect();
        assert_eq!(committed.handles, expected);
    });
}

#[test]
fn comments_are_listed_and_cut_to_what_nft_takes() {
    with_chain(|world| {
        let long = "é".repeat(100);
        let rules = [
            marked("cali:abc; a comment"),
            marked(&long),
            Rule::new(marked("").exprs),
        ];
        world.must_commit(|transaction| append(transaction, &table(), "c", &rules));
        let lines: Vec<String> = world
            .listed_rules(&table(), "c")
            .into_iter()
            .map(|(line, _)| line)
            .collect();
        let rule = "counter packets 0 bytes 0 accept";
        assert_eq!(
            lines,
            [
                format!("{rule} comment \"cali:abc; a comment\""),
                format!("{rule} comment \"{}\"", "é".repeat(63)),
                rule.to_owned(),
            ]
        );
        assert_eq!(
            world.comments(),
            [
                "cali:abc; a comment".to_owned(),
                "é".repeat(63),
                String::new()
            ]
        );
        // What `nft` prints, it takes.
        let listing = world.nft(&["list", "ruleset"]);
        world.must_commit(|transaction| transaction.delete_table(&table()));
        world.nft_load(&listing);
        assert_eq!(world.nft(&["list", "ruleset"]), listing);
    });
}
