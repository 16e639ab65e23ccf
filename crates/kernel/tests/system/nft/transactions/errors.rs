//! What is refused, and that nothing is left of it.

use tortie_kernel::nft::{
    Element, Error, Expr, Field, Place, Register, Rule, Set, SetReference, Transaction, Value,
    Verdict,
};

use super::{marked, with_chain};
use crate::nft::support::{append, in_world, table};

/// What fills a transaction.
type Fill<'a> = &'a (dyn Fn(&mut Transaction) + Sync);

#[track_caller]
fn refused(result: Result<(), Error>) -> (String, Option<i32>) {
    let error = result.unwrap_err();
    assert!(error.needs_read_back());
    let errno = error.errno();
    match error {
        Error::Refused { operation, .. } => (operation, errno),
        other => panic!("{other}"),
    }
}

#[test]
fn one_bad_message_leaves_nothing_and_is_named() {
    with_chain(|world| {
        let before = world.nft(&["-a", "list", "ruleset"]);
        let result = world.commit(|transaction| {
            let many: Vec<Rule> = (0..500).map(|i| marked(&format!("{i}"))).collect();
            append(transaction, &table(), "c", &many);
            transaction.add_chain(&table(), "d");
            append(transaction, &table(), "missing", &[marked("x")]);
            append(transaction, &table(), "c", &many);
        });
        assert_eq!(
            refused(result),
            (
                "add a rule to chain `missing` of table `ip t`".to_owned(),
                Some(libc::ENOENT)
            )
        );
        assert_eq!(world.nft(&["-a", "list", "ruleset"]), before);
    });
}

#[test]
fn every_operation_has_a_name() {
    let set = Set::new("s", [Field::Ipv4Addr]);
    let element = || Element::single(Value::network32(1));
    let jump = Rule::new([Expr::Verdict(Verdict::Jump("nowhere".into()))]);
    let lookup = Rule::new([Expr::Lookup {
        set: SetReference::Named("nothing".into()),
        from: Register::FIRST,
        inverted: false,
    }]);
    let cases: [(Fill<'_>, &str, i32); 11] = [
        (
            &|t| t.delete_chain(&table(), "x"),
            "delete chain `x` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| t.delete_set(&table(), "x"),
            "delete set `x` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| t.flush_set(&table(), "x"),
            "delete elements of set `x` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| t.delete_elements(&table(), &set, [element()]),
            "delete elements of set `s` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| {
                t.add_elements(
                    &table(),
                    &Set::new("s", [Field::Ipv6Addr]),
                    [Element::single(Value::from_bytes(&[1; 16]))],
                );
            },
            "add elements to set `s` of table `ip t`",
            libc::EINVAL,
        ),
        (
            &|t| t.delete_rule(&table(), "c", 77),
            "delete rule 77 of chain `c` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| t.flush_chain(&table(), "x"),
            "delete all rules of chain `x` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| _ = t.replace_rule(&table(), "c", 77, &marked("")),
            "replace rule 77 of chain `c` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| _ = t.add_rule(&table(), "c", Place::After(77), &marked("")),
            "add a rule beside rule 77 of chain `c` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| _ = t.add_rule(&table(), "c", Place::Last, &jump),
            "add a rule to chain `c` of table `ip t`",
            libc::ENOENT,
        ),
        (
            &|t| _ = t.add_rule(&table(), "c", Place::Last, &lookup),
            "add a rule to chain `c` of table `ip t`",
            libc::ENOENT,
        ),
    ];
    with_chain(|world| {
        world.must_commit(|transaction| transaction.add_set(&table(), &set));
        for (fill, operation, errno) in cases {
            assert_eq!(
                refused(world.commit(fill)),
                (operation.to_owned(), Some(errno))
            );
        }
    });
    in_world(|world| {
        let cases: [(Fill<'_>, &str); 3] = [
            (&|t| t.delete_table(&table()), "delete table `ip t`"),
            (
                &|t| t.add_chain(&table(), "c"),
                "add chain `c` of table `ip t`",
            ),
            (
                &|t| t.add_set(&table(), &set),
                "add set `s` of table `ip t`",
            ),
        ];
        for (fill, operation) in cases {
            assert_eq!(
                refused(world.commit(fill)),
                (operation.to_owned(), Some(libc::ENOENT))
            );
        }
        let error = world.socket.elements(&table(), &set).unwrap_err();
        assert_eq!(
            error.to_string(),
            "nftables: the kernel refused to list elements of set `s` of table `ip t`"
        );
    });
}

#[test]
fn the_first_of_many_errors_is_told_and_the_others_counted() {
    with_chain(|world| {
        let error = world.commit(|transaction| {
            (0..20_000).for_each(|i| transaction.delete_chain(&table(), &format!("x{i}")));
        });
        match error.unwrap_err() {
            Error::Refused {
                operation, others, ..
            } => {
                assert_eq!(operation, "delete chain `x0` of table `ip t`");
                assert!(others > 100, "{others}");
            }
            other => panic!("{other}"),
        }
        // What was left unread of that does not disturb what follows.
        append_and_check(world);
    });
}

fn append_and_check(world: &mut crate::nft::support::World) {
    world.must_commit(|transaction| append(transaction, &table(), "c", &[marked("fine")]));
    assert_eq!(world.comments(), ["fine"]);
}

#[test]
fn what_no_message_can_hold_is_not_sent() {
    with_chain(|world| {
        let rule = Rule {
            userdata: vec![0; 70_000],
            ..marked("")
        };
        let error = world
            .commit(|t| append(t, &table(), "c", &[marked("a"), rule.clone()]))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "nftables: too long for a message: add a rule to chain `c` of table `ip t`"
        );
        append_and_check(world);
    });
}
