//! Batches that are not full.

use tortie_dataplane::iptables::Variant;
use tortie_dataplane::{Batch, ChainKey, Driver as _, Members, SetKind};
use tortie_rules::Table;

use crate::iptables::support::{chains, everywhere, filter, full, jump, mark, set_names};

#[test]
fn a_change_touches_one_chain() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let marked = node.mark_rules(Table::Filter);
        let change = filter("cali-a", vec![mark(1), mark(64), mark(4), mark(128)]);
        driver.apply(&chains(vec![change])).unwrap();
        assert_eq!(node.targets(Table::Filter, "cali-a").len(), 4);
        // The hashes of rules after the first that changed do so too.
        let written = match node.variant {
            Variant::Legacy => 3,
            Variant::Nft => 4,
        };
        assert_eq!(node.written_rules(Table::Filter, &marked), written);
        assert_eq!(driver.check().unwrap(), []);
    });
}

#[test]
fn chains_grow_shrink_and_change_at_any_place() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let contents: [&[u32]; 9] = [
            &[1, 2, 4, 8],
            &[1, 2],
            &[1, 4, 2],
            &[8, 4, 2],
            &[8, 4, 2, 1, 16],
            &[],
            &[1],
            &[2],
            &[2, 1],
        ];
        for marks in contents {
            let rules: Vec<_> = marks.iter().copied().map(mark).collect();
            driver
                .apply(&chains(vec![filter("cali-a", rules)]))
                .unwrap();
            assert_eq!(driver.check().unwrap(), [], "{marks:?}");
            let rules = node.rules(Table::Filter);
            let written = rules.iter().filter(|rule| rule.contains("-A cali-a "));
            let written: Vec<_> = written
                .map(|rule| {
                    rule.split("--mark 0x")
                        .nth(1)
                        .unwrap()
                        .split('/')
                        .next()
                        .unwrap()
                })
                .map(|mark| u32::from_str_radix(mark, 16).unwrap())
                .collect();
            assert_eq!(written, marks);
        }
    });
}

#[test]
fn rules_that_are_appended_leave_the_others_alone() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let marked = node.mark_rules(Table::Filter);
        let change = filter(
            "cali-FORWARD",
            vec![jump("cali-a"), jump("cali-b"), mark(1)],
        );
        driver.apply(&chains(vec![change])).unwrap();
        assert_eq!(node.written_rules(Table::Filter, &marked), 1);
    });
}

#[test]
fn chains_come_and_go_with_the_rules_that_lead_to_them() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let mut change = chains(vec![
            filter("cali-FORWARD", vec![jump("cali-c")]),
            filter("cali-c", vec![jump("cali-d")]),
            filter("cali-d", vec![node.drop_from("new")]),
        ]);
        let key = |name: &str| ChainKey {
            table: Table::Filter,
            name: name.into(),
        };
        change.removed_chains = vec![key("cali-a"), key("cali-b"), key("cali-never-there")];
        change.sets = vec![
            node.networks("new", 1..9),
            node.set("set", SetKind::Networks, Members::Gone),
        ];
        driver.apply(&change).unwrap();
        assert_eq!(
            node.chains(Table::Filter),
            ["cali-FORWARD", "cali-c", "cali-d", "cali-empty"]
        );
        assert_eq!(set_names(), [&*node.set_name("new")]);
        assert_eq!(driver.check().unwrap(), []);
    });
}

#[test]
fn what_is_left_over_stays_until_a_full_batch() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        node.iptables("-N cali-stranger");
        driver
            .apply(&chains(vec![filter("cali-a", vec![mark(2)])]))
            .unwrap();
        assert!(
            node.chains(Table::Filter)
                .contains(&"cali-stranger".to_owned())
        );
        driver.apply(&full(node)).unwrap();
        assert!(
            !node
                .chains(Table::Filter)
                .contains(&"cali-stranger".to_owned())
        );
    });
}

#[test]
fn nothing_is_written_or_read_when_nothing_changes() {
    everywhere(|node| {
        let batch = full(node);
        let mut driver = node.driver_with(&batch);
        // Whoever looked would find that the rules are gone.
        node.iptables("-F");
        let same = Batch {
            chains: batch.chains.clone(),
            sets: batch.sets.clone(),
            ..Batch::default()
        };
        driver.apply(&same).unwrap();
        driver.apply(&Batch::default()).unwrap();
        assert!(node.rules(Table::Filter).is_empty());
    });
}

#[test]
fn a_change_goes_in_although_others_changed_the_chain() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        // The rule that is to be replaced is not there any more.
        node.iptables("-F cali-a");
        node.iptables("-F cali-b");
        let change = filter("cali-a", vec![mark(1), mark(2), mark(64)]);
        driver.apply(&chains(vec![change])).unwrap();
        assert_eq!(node.targets(Table::Filter, "cali-a").len(), 3);
        let damage = driver.check().unwrap();
        assert_eq!(damage[0].object, "chain filter-cali-b");
        assert_eq!(damage.len(), 1);
    });
}
