//! On a real etcd.

use tortie_testkit::Etcd;

use crate::confirm::site::{AFTER, BEFORE, Site, until};

#[test]
fn what_is_not_confirmed_is_rolled_back_and_what_is_confirmed_stays() {
    let etcd = Etcd::start().unwrap();
    let site = Site::etcd(etcd.endpoint());
    site.apply(BEFORE);
    let before = site.resources();
    let waiting = site.apply_with_confirm("1", AFTER);
    assert_ne!(site.resources(), before);
    let output = waiting.end();
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(site.resources(), before);

    let waiting = site.apply_with_confirm("600", AFTER);
    let after = site.resources();
    site.ok(&["confirm"]);
    assert_eq!(waiting.end().code, 0);
    assert_eq!(site.resources(), after);
}

#[test]
fn after_a_kill_it_is_rolled_back_but_for_what_others_changed() {
    let etcd = Etcd::start().unwrap();
    let site = Site::etcd(etcd.endpoint());
    site.apply(BEFORE);
    let mut waiting = site.apply_with_confirm("3", AFTER);
    waiting.signal("KILL");
    waiting.process.wait().unwrap();
    site.ok(&["label", "gnp", "kept", "somebody=else"]);
    until("the watcher to roll back", || {
        let pending = site.all_pending();
        (pending.first()?.1["state"] == "rolledBack").then_some(())
    });
    let tiers = site.ok(&["get", "tier", "-o", "name"]);
    assert!(!tiers.contains("locks"), "{tiers}");
    let labels = site.ok(&["get", "gnp", "kept", "-o", "jsonpath={.metadata.labels}"]);
    assert!(
        labels.contains("else") && labels.contains("more"),
        "{labels}"
    );
    let output = site.run(&["confirm"]);
    assert!(
        output
            .stderr
            .contains("GlobalNetworkPolicy(kept) left as it is"),
        "{output:?}"
    );
}
