//! What goes wrong is said with the line that it is about.

use tortie_dataplane::iptables::IptablesDriver;
use tortie_dataplane::{Batch, Driver as _, Members, SetKind};
use tortie_error::Causes;
use tortie_rules::Table;

use crate::iptables::support::{chains, everywhere, filter, full, jump, mark, sets};

#[track_caller]
fn refused(driver: &mut IptablesDriver, batch: &Batch, words: &[&str]) {
    let message = Causes(&driver.apply(batch).unwrap_err()).to_string();
    for word in words {
        assert!(message.contains(word), "{message:?} has no {word:?}");
    }
}

#[test]
fn a_rule_that_is_refused_is_quoted_and_leaves_the_table_as_it_was() {
    everywhere(|node| {
        let batch = full(node);
        let mut driver = node.driver_with(&batch);
        let change = chains(vec![
            filter("cali-a", vec![mark(1), jump("cali-nowhere")]),
            filter("cali-b", vec![mark(1)]),
        ]);
        refused(
            &mut driver,
            &change,
            &["tables", "-restore", "`-", "--jump cali-nowhere`"],
        );
        assert_eq!(driver.compare(&batch).unwrap(), []);
    });
}

#[test]
fn a_set_that_is_missing_is_named() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let change = chains(vec![filter("cali-a", vec![node.drop_from("absent")])]);
        let set = node.set_name("absent");
        refused(
            &mut driver,
            &change,
            &["doesn't exist", &format!("--match-set {set} src")],
        );
    });
}

#[test]
fn a_member_that_is_refused_is_quoted() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let wrong = Members::All(node.addresses(1..2));
        let change = sets(vec![node.set("wrong", SetKind::Ports, wrong)]);
        let line = format!("`add {} {}`", node.set_name("wrong"), node.address(1));
        refused(&mut driver, &change, &["ipset", &line]);
    });
}

#[test]
fn after_an_error_only_a_full_batch_helps() {
    everywhere(|node| {
        let batch = full(node);
        let good = chains(vec![filter("cali-a", vec![mark(1)])]);
        let mut driver = node.driver();
        refused(&mut driver, &good, &["full batch"]);
        driver.check().unwrap_err();
        driver.apply(&batch).unwrap();
        let bad = chains(vec![filter("cali-a", vec![jump("cali-nowhere")])]);
        driver.apply(&bad).unwrap_err();
        refused(&mut driver, &good, &["full batch"]);
        driver.apply(&batch).unwrap();
        driver.apply(&good).unwrap();
        assert_eq!(node.targets(Table::Filter, "cali-a").len(), 1);
    });
}
