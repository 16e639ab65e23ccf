//! Rules in the kernel's own chains, and those of others beside them.

use tortie_dataplane::Driver as _;
use tortie_dataplane::iptables::{InsertMode, IptablesDriver, Options};
use tortie_rules::Table;

use crate::iptables::support::{Node, everywhere, full};

fn forward(node: Node) -> Vec<String> {
    let targets = node.targets(Table::Filter, "FORWARD");
    let first_word = |target: String| target.split(' ').next().unwrap_or_default().to_owned();
    targets.into_iter().map(first_word).collect()
}

fn add_foreign_rules(node: Node) {
    node.iptables("-N OTHERS");
    node.iptables("-A OTHERS -j DROP");
    node.iptables("-A FORWARD -p tcp -j OTHERS");
    node.iptables("-A FORWARD -j LOG");
}

#[test]
fn our_rules_surround_those_of_others() {
    everywhere(|node| {
        add_foreign_rules(node);
        node.driver_with(&full(node));
        assert_eq!(
            forward(node),
            ["cali-FORWARD", "RETURN", "OTHERS", "LOG", "ACCEPT", "MARK"]
        );
        assert_eq!(node.targets(Table::Filter, "OTHERS"), ["DROP"]);
    });
}

#[test]
fn our_rules_come_last_if_they_are_to_be_appended() {
    everywhere(|node| {
        add_foreign_rules(node);
        let options = Options {
            insert_mode: InsertMode::Append,
            ..node.options()
        };
        let batch = full(node);
        let expected = ["OTHERS", "LOG", "cali-FORWARD", "RETURN", "ACCEPT", "MARK"];
        let mut driver = IptablesDriver::new(&options).unwrap();
        driver.apply(&batch).unwrap();
        assert_eq!(forward(node), expected);
        assert_eq!(driver.compare(&batch).unwrap(), []);
        // From the other mode back to this one.
        node.driver_with(&batch);
        assert_ne!(forward(node), expected);
        driver.apply(&batch).unwrap();
        assert_eq!(forward(node), expected);
    });
}

#[test]
fn our_rules_return_to_their_places() {
    everywhere(|node| {
        let batch = full(node);
        let mut driver = node.driver_with(&batch);
        node.iptables("-I FORWARD -j DROP");
        node.iptables("-A FORWARD -j LOG");
        let found = driver.check().unwrap();
        assert_eq!(found[0].object, "chain filter-FORWARD");
        assert_eq!(found[0].what, "has rules of ours in the wrong place");
        assert_eq!(found.len(), 1);
        driver.apply(&batch).unwrap();
        assert_eq!(
            forward(node),
            ["cali-FORWARD", "RETURN", "DROP", "LOG", "ACCEPT", "MARK"]
        );
        node.iptables("-D FORWARD 1");
        let found = driver.check().unwrap();
        assert_eq!(found[0].what, "lacks rules of ours");
        driver.apply(&batch).unwrap();
        assert_eq!(driver.check().unwrap(), []);
    });
}
