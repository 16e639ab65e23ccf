//! A reboot within the time: nobody is left of those who would have rolled back.

use std::process::Command;

use crate::confirm::elsewhere::up;
use crate::confirm::site::{AFTER, BEFORE, ROLLED_BACK, Site, until, watcher_of};

/// Applies, and ends everybody who knows of it. The clock says `ago` seconds later that it was so long ago.
fn reboot(site: &Site, ago: i64) -> String {
    let mut waiting = site.apply_with_confirm("600", AFTER);
    let watcher = watcher_of(&waiting.id).unwrap();
    for process in [waiting.process.id(), watcher] {
        let process = process.to_string();
        let killed = Command::new("kill").args(["-s", "KILL", &process]).status();
        assert!(killed.unwrap().success());
    }
    waiting.process.wait().unwrap();
    until("the watcher to end", || {
        watcher_of(&waiting.id).is_none().then_some(())
    });
    // A process that is killed has its files a little longer than its name.
    until("its lock to go", || {
        let list = site.ok(&["confirm", "--list"]);
        list.contains("nobody watches").then_some(())
    });
    let (id, mut pending) = site.all_pending().remove(0);
    let deadline: k8s_openapi::jiff::Timestamp =
        pending["deadline"].as_str().unwrap().parse().unwrap();
    let deadline = deadline - k8s_openapi::jiff::SignedDuration::from_secs(ago);
    pending["deadline"] = deadline.to_string().into();
    let path = site.pending().join(&id).with_extension("json");
    std::fs::write(path, pending.to_string()).unwrap();
    id
}

#[test]
fn the_next_command_rolls_back() {
    let site = Site::named(&["--data-dir", "{}/data"], &[]);
    site.apply(BEFORE);
    let before = site.resources();
    let id = reboot(&site, 3600);
    // Whatever it asks, of whatever datastore.
    let output = site.without_datastore().run(&["get", "tier", "-o", "name"]);
    assert_eq!(output.code, 0, "{output:?}");
    let said = format!("warning: {id} was not confirmed in time");
    assert!(output.stderr.starts_with(&said), "{output:?}");
    assert!(output.stderr.ends_with(ROLLED_BACK), "{output:?}");
    assert_eq!(site.resources(), before);
    assert!(site.all_pending().is_empty());
}

#[test]
fn what_was_being_applied_is_rolled_back() {
    let site = Site::named(&["--data-dir", "{}/data"], &[]);
    site.apply(BEFORE);
    let before = site.resources();
    let id = reboot(&site, 0);
    let path = site.pending().join(&id).with_extension("json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"waiting\"", "\"applying\"")).unwrap();
    let output = site.run(&["get", "tier", "-o", "name"]);
    assert!(output.stderr.ends_with(ROLLED_BACK), "{output:?}");
    assert_eq!(site.resources(), before);
}

#[test]
fn the_next_command_watches_again_while_there_is_time() {
    let site = Site::named(&["--data-dir", "{}/data"], &[]);
    site.apply(BEFORE);
    let before = site.resources();
    let id = reboot(&site, 300);
    let output = site.run(&["get", "tier", "-o", "name"]);
    assert!(output.stdout.contains("locks"), "{output:?}");
    assert!(output.stderr.contains("s left"), "{output:?}");
    until("another watcher", || watcher_of(&id));
    site.ok(&["confirm", "--roll-back"]);
    assert_eq!(site.resources(), before);
}

#[test]
fn the_start_of_the_service_rolls_back_before_anything_is_served() {
    let site = Site::named(&["--data-dir", "{}/data"], &[]);
    site.apply(BEFORE);
    let before = site.resources();
    reboot(&site, 3600);
    let mut up = up(&site);
    assert!(site.all_pending().is_empty(), "it was rolled back first");
    assert_eq!(site.resources()[0], before[0]);
    up.kill().unwrap();
    up.wait().unwrap();
}
