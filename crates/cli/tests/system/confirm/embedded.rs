//! On the embedded datastore, which one process at a time can open.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use tortie_store::embedded::EmbeddedStore;

use crate::confirm::site::{AFTER, BEFORE, ROLLED_BACK, Site, until};

#[test]
fn what_is_not_confirmed_is_rolled_back_to_what_it_was() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let before = site.resources();
    let waiting = site.apply_with_confirm("1", AFTER);
    assert_ne!(site.resources(), before, "it is applied first");
    let output = waiting.end();
    assert_eq!(output.code, 1, "{output:?}");
    for line in [
        "GlobalNetworkPolicy(kept) restored",
        "GlobalNetworkPolicy(locks.everybody-out) deleted again",
        "Tier(locks) deleted again",
    ] {
        assert!(
            output.stdout.lines().any(|found| found == line),
            "no `{line}` in {output:?}"
        );
    }
    assert_eq!(site.resources(), before);
    assert!(site.all_pending().is_empty());
}

#[test]
fn what_is_confirmed_stays() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let waiting = site.apply_with_confirm("600", AFTER);
    let list = site.ok(&["confirm", "--list"]);
    assert!(
        list.contains(&waiting.id) && list.contains("s left"),
        "{list}"
    );
    assert!(list.contains("Tier(locks) created"), "{list}");
    assert!(list.contains("GlobalNetworkPolicy(kept) changed"), "{list}");
    let after = site.resources();
    let id = waiting.id.clone();
    assert_eq!(
        site.ok(&["confirm"]),
        format!("Confirmed {id}: 3 resource(s) stay as applied\n")
    );
    let output = waiting.end();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.ends_with("Confirmed\n"), "{output:?}");
    until("the watcher to end", || {
        crate::confirm::site::watcher_of(&id)
            .is_none()
            .then_some(())
    });
    assert_eq!(site.resources(), after);
    let output = site.run(&["confirm"]);
    assert_eq!(
        (output.code, &*output.stderr),
        (1, "Error: nothing waits for confirmation\n")
    );
}

#[test]
fn what_is_kept_only_its_owner_can_read() {
    let site = Site::embedded();
    let waiting = site.apply_with_confirm("600", AFTER);
    for path in std::fs::read_dir(site.pending()).unwrap() {
        let path = path.unwrap().path();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    site.ok(&["confirm", &waiting.id]);
    assert_eq!(waiting.end().code, 0);
}

#[test]
fn a_store_that_another_process_has_open_is_waited_for() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let before = site.resources();
    let waiting = site.apply_with_confirm("1", AFTER);
    let store = EmbeddedStore::open(site.data_file()).unwrap();
    until("the deadline", || {
        let pending = site.all_pending();
        (pending.first()?.1["state"] == "rollingBack").then_some(())
    });
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(site.all_pending()[0].1["state"], "rollingBack");
    drop(store);
    assert_eq!(waiting.end().code, 1);
    assert_eq!(site.resources(), before);
}

#[test]
fn what_somebody_else_changed_is_left_and_said() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let waiting = site.apply_with_confirm("3", AFTER);
    site.ok(&["patch", "gnp", "kept", "-p", "{\"spec\": {\"order\": 77}}"]);
    site.ok(&["delete", "gnp", "locks.everybody-out"]);
    let output = waiting.end();
    assert_eq!(output.code, 3, "{output:?}");
    let last = "Not rolled back: 1 of 3 resource(s) are not what they were before\n";
    assert!(output.stderr.ends_with(last), "{output:?}");
    let left = "GlobalNetworkPolicy(kept) left as it is: somebody else changed it since\n";
    assert!(output.stderr.contains(left), "{output:?}");
    assert!(
        output.stdout.contains("Tier(locks) deleted again"),
        "{output:?}"
    );
    let kept = site.ok(&[
        "get",
        "gnp",
        "kept",
        "-o",
        "jsonpath={.spec.order} {.spec.selector}",
    ]);
    assert_eq!(kept.trim(), "77 all()");
}

#[test]
fn all_is_rolled_back_where_not_all_can_be_applied() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let before = site.resources();
    let bad = format!(
        "{AFTER}---\napiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\n\
         metadata: {{name: nowhere.policy}}\nspec: {{tier: nowhere}}\n"
    );
    let output = site.run(&["apply", "--confirm", "600", "-f", &site.file(&bad)]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("nowhere"), "{output:?}");
    assert!(output.stderr.ends_with(ROLLED_BACK), "{output:?}");
    assert_eq!(site.resources(), before);
    let refused = AFTER.replace("selector: all()", "selector: all(");
    let output = site.run(&["apply", "--confirm", "600", "-f", &site.file(&refused)]);
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(site.resources(), before);
    assert!(site.all_pending().is_empty());
}

#[test]
fn what_changes_nothing_needs_no_confirmation() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let output = site.run(&["apply", "--confirm", "600", "-f", &site.file(BEFORE)]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.stdout.ends_with("there is nothing to confirm\n"),
        "{output:?}"
    );
    assert!(site.all_pending().is_empty());
    let twice = format!("{BEFORE}---\n{BEFORE}");
    let output = site.run(&["apply", "--confirm", "600", "-f", &site.file(&twice)]);
    assert_eq!(output.code, 1);
    assert!(
        output
            .stderr
            .contains("GlobalNetworkPolicy(kept) is given twice"),
        "{output:?}"
    );
}
