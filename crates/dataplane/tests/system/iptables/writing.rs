//! A full batch.

use tortie_dataplane::Driver as _;
use tortie_rules::Table;

use crate::iptables::support::{everywhere, filter, full, mark, members, run, set_names};

#[test]
fn what_is_written_is_read_back() {
    everywhere(|node| {
        node.driver_with(&full(node));
        assert_eq!(
            node.targets(Table::Filter, "cali-FORWARD"),
            ["cali-a", "cali-b"]
        );
        assert_eq!(node.targets(Table::Filter, "cali-a"), ["RETURN"; 3]);
        assert_eq!(node.targets(Table::Raw, "PREROUTING"), ["cali-PREROUTING"]);
        assert_eq!(
            node.chains(Table::Filter),
            ["cali-FORWARD", "cali-a", "cali-b", "cali-empty"]
        );
        assert_eq!(members(&node.set_name("set")).len(), 3);
    });
}

#[test]
fn a_new_driver_finds_everything_in_place() {
    everywhere(|node| {
        let batch = full(node);
        node.driver_with(&batch);
        let marked = Table::ALL.map(|table| node.mark_rules(table));
        node.driver_with(&batch);
        for (table, marked) in Table::ALL.into_iter().zip(&marked) {
            assert_eq!(node.written_rules(table, marked), 0, "{table:?}");
        }
        assert_eq!(set_names(), [&*node.set_name("set")]);
    });
}

#[test]
fn a_full_batch_removes_what_is_left_over() {
    everywhere(|node| {
        let mut batch = full(node);
        node.driver_with(&batch);
        node.iptables("-N cali-old");
        node.iptables("-N cali-older");
        node.iptables("-N felix-old");
        node.iptables("-N calico-dhcp");
        node.iptables("-A cali-old -j cali-older");
        node.iptables("-A INPUT -j cali-old");
        node.iptables("-A OUTPUT -g felix-old");
        let stale = node.set_name("stale");
        let temporary = stale.replace("0stale", "t0");
        for set in [&*stale, &temporary, "others"] {
            run("ipset", &["create", set, "hash:ip"], "");
        }
        // This one goes with its chains.
        let rule = format!("-A cali-older -m set --match-set {stale} src -j DROP");
        if node.ip_version == tortie_rules::IpVersion::V4 {
            node.iptables(&rule);
        }

        let mut driver = node.driver();
        let found = driver.compare(&batch).unwrap();
        let objects: Vec<_> = found.iter().map(|drift| drift.object.as_str()).collect();
        let sets = [format!("set {stale}"), format!("set {temporary}")];
        assert_eq!(
            objects,
            [
                "chain filter-INPUT",
                "chain filter-OUTPUT",
                "chain filter-cali-old",
                "chain filter-cali-older",
                "chain filter-felix-old",
                &sets[0],
                &sets[1],
            ]
        );
        batch.chains.retain(|chain| *chain.name != *"cali-empty");
        driver.apply(&batch).unwrap();
        assert_eq!(driver.check().unwrap(), []);
        assert_eq!(
            node.chains(Table::Filter),
            ["cali-FORWARD", "cali-a", "cali-b", "calico-dhcp"]
        );
        assert!(node.targets(Table::Filter, "INPUT").is_empty());
        assert!(node.targets(Table::Filter, "OUTPUT").is_empty());
        assert_eq!(set_names(), [&*node.set_name("set"), "others"]);
    });
}

#[test]
fn a_full_batch_writes_only_what_differs() {
    everywhere(|node| {
        let mut batch = full(node);
        let mut driver = node.driver_with(&batch);
        let marked = node.mark_rules(Table::Filter);
        batch.chains.push(filter("cali-new", vec![mark(32)]));
        driver.apply(&batch).unwrap();
        assert_eq!(node.written_rules(Table::Filter, &marked), 1);
    });
}

#[test]
fn an_empty_full_batch_leaves_nothing_of_ours() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let nothing = tortie_dataplane::Batch {
            is_full: true,
            ..tortie_dataplane::Batch::default()
        };
        driver.apply(&nothing).unwrap();
        for table in Table::ALL {
            assert!(node.rules(table).is_empty());
            assert!(node.chains(table).is_empty());
        }
        assert!(set_names().is_empty());
    });
}
