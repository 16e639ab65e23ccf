//! Tables and chains.

use tortie_kernel::nft::{
    BaseChain, Chain, ChainKind, Expr, Family, Hook, Place, Policy, Rule, Table, Verdict,
};

use super::with_chain;
use crate::nft::support::{in_world, table};

#[test]
fn base_chains_are_read_as_they_were_added() {
    let base = |name: &str, kind, hook, priority, policy| BaseChain {
        name: name.into(),
        kind,
        hook,
        priority,
        policy,
    };
    let chains = [
        base(
            "pre",
            ChainKind::Filter,
            Hook::Prerouting,
            -300,
            Policy::Accept,
        ),
        base("in", ChainKind::Filter, Hook::Input, 0, Policy::Drop),
        base("fwd", ChainKind::Filter, Hook::Forward, 7, Policy::Accept),
        base("out", ChainKind::Route, Hook::Output, -150, Policy::Accept),
        base(
            "post",
            ChainKind::Nat,
            Hook::Postrouting,
            100,
            Policy::Accept,
        ),
    ];
    for family in [Family::Ip, Family::Ip6, Family::Inet] {
        let table = Table::new(family, "t");
        let (read, listed) = in_world(|world| {
            world
                .commit(|transaction| {
                    transaction.add_table(&Table::new(family, "another"));
                    transaction.add_chain(&Table::new(family, "another"), "x");
                    transaction.add_table(&table);
                    for chain in &chains {
                        transaction.add_base_chain(&table, chain);
                    }
                    transaction.add_chain(&table, "regular");
                })
                .unwrap();
            (
                world.socket.chains(&table).unwrap(),
                world.nft(&["list", "table", &family.to_string(), "t"]),
            )
        });
        let mut expected: Vec<Chain> = chains
            .iter()
            .map(|c| Chain::Base(c.name.to_string(), Some(c.clone())))
            .collect();
        expected.push(Chain::Regular("regular".to_owned()));
        assert_eq!(read, expected);
        assert!(
            listed.contains("type filter hook input priority filter; policy drop;"),
            "{listed}"
        );
        assert!(
            listed.contains("type route hook output priority mangle; policy accept;"),
            "{listed}"
        );
    }
}

#[test]
fn arp_has_hooks_of_its_own() {
    let table = Table::new(Family::Arp, "t");
    let chain = BaseChain {
        name: "out".into(),
        kind: ChainKind::Filter,
        hook: Hook::Output,
        priority: 0,
        policy: Policy::Accept,
    };
    in_world(|world| {
        world
            .commit(|transaction| {
                transaction.add_table(&table);
                transaction.add_base_chain(&table, &chain);
            })
            .unwrap();
        let listed = world.nft(&["list", "table", "arp", "t"]);
        assert!(
            listed.contains("type filter hook output priority filter"),
            "{listed}"
        );
        assert_eq!(
            world.socket.chains(&table).unwrap(),
            [Chain::Base("out".into(), Some(chain.clone()))]
        );
        let wrong = BaseChain {
            hook: Hook::Forward,
            ..chain.clone()
        };
        world
            .commit(|transaction| transaction.add_base_chain(&table, &wrong))
            .unwrap_err();
    });
}

#[test]
fn a_policy_can_be_changed() {
    in_world(|world| {
        for policy in [Policy::Accept, Policy::Drop] {
            let chain = BaseChain {
                name: "in".into(),
                kind: ChainKind::Filter,
                hook: Hook::Input,
                priority: 0,
                policy,
            };
            world
                .commit(|transaction| {
                    transaction.add_table(&table());
                    transaction.add_base_chain(&table(), &chain);
                })
                .unwrap();
            assert_eq!(
                world.socket.chains(&table()).unwrap(),
                [Chain::Base("in".into(), Some(chain))]
            );
        }
    });
}

#[test]
fn tables_are_deleted_with_all_in_them_and_made_anew() {
    with_chain(|world| {
        world.nft_load("add table bridge unknown");
        world.must_commit(|transaction| transaction.add_table(&Table::new(Family::Ip6, "u")));
        let tables = [table(), Table::new(Family::Ip6, "u")];
        assert_eq!(world.socket.tables().unwrap(), tables);
        world.must_commit(|transaction| {
            transaction.delete_table(&table());
            transaction.add_table(&table());
        });
        assert_eq!(world.socket.chains(&table()).unwrap(), []);
        world.must_commit(|transaction| transaction.delete_table(&table()));
        assert_eq!(world.socket.tables().unwrap(), tables[1..]);
    });
}

#[test]
fn a_chain_is_deleted_together_with_the_rule_that_jumps_to_it() {
    with_chain(|world| {
        world.must_commit(|transaction| {
            transaction.add_chain(&table(), "d");
            let jump = Rule::new([Expr::Verdict(Verdict::Jump("d".into()))]);
            transaction.add_rule(&table(), "c", Place::Last, &jump);
        });
        let refused = world
            .commit(|transaction| transaction.delete_chain(&table(), "d"))
            .unwrap_err();
        assert_eq!(refused.errno(), Some(libc::EBUSY));
        world.must_commit(|transaction| {
            transaction.flush_chain(&table(), "c");
            transaction.delete_chain(&table(), "d");
        });
        assert_eq!(
            world.socket.chains(&table()).unwrap(),
            [Chain::Regular("c".into())]
        );
    });
}
