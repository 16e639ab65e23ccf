//! However the process ends that applied.

use std::process::Command;

use crate::confirm::site::{AFTER, BEFORE, ROLLED_BACK, Site, until, watcher_of};

#[test]
fn an_interrupt_rolls_back_at_once() {
    for signal in ["INT", "TERM"] {
        let site = Site::embedded();
        site.apply(BEFORE);
        let before = site.resources();
        let waiting = site.apply_with_confirm("600", AFTER);
        waiting.signal(signal);
        let output = waiting.end();
        assert_eq!(output.code, 1, "{signal}: {output:?}");
        assert!(output.stderr.ends_with(ROLLED_BACK), "{signal}: {output:?}");
        assert_eq!(site.resources(), before, "{signal}");
    }
}

#[test]
fn a_killed_process_is_rolled_back_in_time_and_the_next_confirm_says_so() {
    for signal in ["KILL", "HUP"] {
        let site = Site::embedded();
        site.apply(BEFORE);
        let before = site.resources();
        let mut waiting = site.apply_with_confirm("2", AFTER);
        waiting.signal(signal);
        waiting.process.wait().unwrap();
        assert_ne!(
            site.resources(),
            before,
            "{signal}: there is time left to confirm"
        );
        until("the watcher to roll back", || {
            let pending = site.all_pending();
            (pending.first()?.1["state"] == "rolledBack").then_some(())
        });
        assert_eq!(site.resources(), before, "{signal}");
        let list = site.ok(&["confirm", "--list"]);
        assert!(list.contains("rolled back"), "{list}");
        let output = site.run(&["confirm"]);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(
            output.stderr.contains("Tier(locks) deleted again"),
            "{output:?}"
        );
        let expected = format!("Error: too late: {} was rolled back\n", waiting.id);
        assert!(output.stderr.ends_with(&expected), "{output:?}");
        assert!(site.all_pending().is_empty());
    }
}

#[test]
fn a_killed_process_can_still_be_confirmed() {
    let site = Site::embedded();
    let mut waiting = site.apply_with_confirm("600", AFTER);
    let after = site.resources();
    waiting.signal("KILL");
    waiting.process.wait().unwrap();
    site.ok(&["confirm", &waiting.id]);
    until("the watcher to end", || {
        watcher_of(&waiting.id).is_none().then_some(())
    });
    assert_eq!(site.resources(), after);
}

#[test]
fn after_a_crash_of_everything_it_can_be_rolled_back() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let before = site.resources();
    let mut waiting = site.apply_with_confirm("600", AFTER);
    let watcher = watcher_of(&waiting.id).unwrap();
    waiting.signal("KILL");
    waiting.process.wait().unwrap();
    let killed = Command::new("kill")
        .args(["-s", "KILL", &watcher.to_string()])
        .status();
    assert!(killed.unwrap().success());
    until("the watcher to end", || {
        watcher_of(&waiting.id).is_none().then_some(())
    });
    until("its lock to go", || {
        let list = site.ok(&["confirm", "--list"]);
        list.contains("nobody watches, use --roll-back")
            .then_some(())
    });
    // Which datastore it was is kept, too.
    let later = site.without_datastore();
    let text = later.ok(&["confirm", "--roll-back"]);
    assert!(
        text.contains("GlobalNetworkPolicy(kept) restored"),
        "{text}"
    );
    assert_eq!(site.resources(), before);
    assert!(site.all_pending().is_empty());
}

#[test]
fn after_a_crash_in_the_middle_only_what_was_written_is_rolled_back() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let before = site.resources();
    let mut waiting = site.apply_with_confirm("600", AFTER);
    site.ok(&["delete", "gnp", "locks.everybody-out"]);
    let watcher = watcher_of(&waiting.id).unwrap();
    waiting.signal("KILL");
    waiting.process.wait().unwrap();
    let killed = Command::new("kill")
        .args(["-s", "KILL", &watcher.to_string()])
        .status();
    assert!(killed.unwrap().success());
    until("the watcher to end", || {
        watcher_of(&waiting.id).is_none().then_some(())
    });
    // What is on disk while resources are written, when the policy in the new tier was not.
    let (id, mut pending) = site.all_pending().remove(0);
    pending["state"] = "applying".into();
    for change in pending["changes"].as_array_mut().unwrap() {
        assert!(change["after"].is_object());
        change["after"] = serde_json::Value::Null;
    }
    let path = site.pending().join(&id).with_extension("json");
    std::fs::write(&path, pending.to_string()).unwrap();
    let output = site.run(&["confirm"]);
    assert!(
        output.stderr.contains("is still being applied"),
        "{output:?}"
    );
    let text = site.ok(&["confirm", "--roll-back"]);
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "GlobalNetworkPolicy(kept) restored",
        "Tier(locks) deleted again",
    ];
    assert_eq!(lines, expected);
    assert_eq!(site.resources(), before);
}

#[test]
fn a_watcher_that_dies_is_replaced() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let before = site.resources();
    let waiting = site.apply_with_confirm("600", AFTER);
    let watcher = watcher_of(&waiting.id).unwrap();
    let killed = Command::new("kill")
        .args(["-s", "KILL", &watcher.to_string()])
        .status();
    assert!(killed.unwrap().success());
    until("another watcher", || {
        watcher_of(&waiting.id).filter(|found| *found != watcher)
    });
    waiting.signal("INT");
    assert_eq!(waiting.end().code, 1);
    assert_eq!(site.resources(), before);
}

#[test]
fn it_can_be_rolled_back_before_the_time() {
    let site = Site::embedded();
    site.apply(BEFORE);
    let before = site.resources();
    // Longer than any test may take.
    let waiting = site.apply_with_confirm("600", AFTER);
    let output = site.run(&["confirm", "--roll-back"]);
    let applied = waiting.end();
    assert_eq!(applied.code, 1, "{applied:?}");
    // One of the two tells what was done.
    let told = format!("{}{}", output.stdout, applied.stdout);
    assert!(
        told.contains("Tier(locks) deleted again"),
        "{output:?} {applied:?}"
    );
    assert_eq!(site.resources(), before);
}

#[test]
fn yes_on_a_terminal_confirms() {
    let site = Site::embedded();
    let file = site.file(AFTER);
    let tortie = site.command(&["apply", "--confirm", "600", "-f", &file]);
    let words = std::iter::once(tortie.get_program()).chain(tortie.get_args());
    let words: Vec<String> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    // A terminal of its own, on which `yes` is typed once all is applied.
    let line = format!(
        "(sleep 3; echo no; sleep 1; echo yes; sleep 3) | script -qec \"{}\" /dev/null",
        words.join(" ")
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &line])
        .env("XDG_STATE_HOME", site.pending().join("../.."));
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("Type `yes` to confirm"), "{text}");
    assert!(text.trim_end().ends_with("Confirmed"), "{text}");
    assert!(site.ok(&["get", "tier", "-o", "name"]).contains("locks"));
}
