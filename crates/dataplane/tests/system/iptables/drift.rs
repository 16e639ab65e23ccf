//! What others did to our rules and sets is found and repaired.

use tortie_dataplane::{Drift, Driver as _};

use crate::iptables::support::{Node, everywhere, full, run};

#[track_caller]
fn check(node: Node, damage: &[&str], expected: &[[&str; 2]]) {
    let batch = full(node);
    let mut driver = node.driver_with(&batch);
    for command in damage {
        node.iptables(command);
    }
    let expected: Vec<_> = expected
        .iter()
        .map(|[object, what]| Drift {
            object: format!("chain {object}"),
            what: (*what).to_owned(),
        })
        .collect();
    assert_eq!(driver.check().unwrap(), expected);
    assert_eq!(driver.compare(&batch).unwrap(), expected);
    driver.apply(&batch).unwrap();
    assert_eq!(driver.check().unwrap(), []);
    assert_eq!(driver.compare(&batch).unwrap(), []);
}

#[test]
fn damaged_chains() {
    everywhere(|node| {
        check(
            node,
            &["-I cali-a 2 -j DROP"],
            &[["filter-cali-a", "rule 2 is not ours"]],
        );
        check(
            node,
            &["-D cali-a 3"],
            &[["filter-cali-a", "has 2 rules instead of 3"]],
        );
        check(
            node,
            &["-D cali-a 1"],
            &[["filter-cali-a", "differs from rule 1 on"]],
        );
        check(
            node,
            &["-X cali-empty"],
            &[["filter-cali-empty", "is missing"]],
        );
        check(
            node,
            &["-t nat -F", "-t nat -X"],
            &[
                ["nat-POSTROUTING", "lacks rules of ours"],
                ["nat-cali-POSTROUTING", "is missing"],
            ],
        );
    });
}

#[test]
fn damaged_sets() {
    everywhere(|node| {
        let mut batch = full(node);
        batch.sets.push(node.networks("unused", 1..2));
        let mut driver = node.driver_with(&batch);
        let (set, unused) = (node.set_name("set"), node.set_name("unused"));
        let [one, two, other] = [1, 2, 77].map(|number| node.address(number).to_string());
        run("ipset", &["del", &set, &one], "");
        run("ipset", &["del", &set, &two], "");
        run("ipset", &["add", &set, &other], "");
        run("ipset", &["destroy", &unused], "");
        let drift = |name: &str, what: &str| Drift {
            object: format!("set {name}"),
            what: what.to_owned(),
        };
        assert_eq!(
            driver.check().unwrap(),
            [
                drift(&set, "has 2 members instead of 3"),
                drift(&unused, "is missing")
            ]
        );
        assert_eq!(
            driver.compare(&batch).unwrap(),
            [
                drift(
                    &set,
                    &format!("lacks {one}, {two}; should not have {other}")
                ),
                drift(&unused, "is missing")
            ]
        );
        driver.apply(&batch).unwrap();
        assert_eq!(driver.compare(&batch).unwrap(), []);

        run("ipset", &["del", &set, &one], "");
        run("ipset", &["add", &set, &other], "");
        assert_eq!(driver.check().unwrap(), [drift(&set, "has other members")]);
    });
}
