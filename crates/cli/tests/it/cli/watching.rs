//! `tortie get --watch`, and `get all`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tortie_testkit::Etcd;

use crate::cli::program::{Tortie, fixture};

/// How long to wait for a line. Mostly it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A datastore that several processes use, and one that watches.
struct Site {
    etcd: Etcd,
    tortie: Tortie,
}

/// A `get --watch`; it ends when this is dropped.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Site {
    fn new() -> Self {
        let etcd = Etcd::start().unwrap();
        let tortie = Tortie::with_variables(vec![("ETCD_ENDPOINTS", etcd.endpoint().to_owned())]);
        Self { etcd, tortie }
    }

    fn apply(&self, name: &str, order: u32) {
        let tier = format!(
            "apiVersion: projectcalico.org/v3\nkind: Tier\nmetadata: {{name: {name}}}\nspec: {{order: {order}}}\n"
        );
        self.tortie.ok_with_input(&["apply", "-f", "-"], &tier);
    }

    fn watch(&self, arguments: &[&str]) -> Watching {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tortie"))
            .arg("get")
            .args(arguments)
            .env_clear()
            .env("ETCD_ENDPOINTS", self.etcd.endpoint())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Watching { child, lines }
    }
}

impl Watching {
    #[track_caller]
    fn expect(&self, lines: &[&str]) {
        for line in lines {
            assert_eq!(self.lines.recv_timeout(PATIENCE).as_deref(), Ok(*line));
        }
    }

    /// Waits for a line that has this piece.
    #[track_caller]
    fn await_line(&self, piece: &str) {
        while let line = self.lines.recv_timeout(PATIENCE).unwrap()
            && !line.contains(piece)
        {}
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_change_is_a_row() {
    let site = Site::new();
    site.apply("a", 1);
    let all = site.watch(&["tiers", "a", "b", "-w", "-o", "custom-columns=NAME,ORDER"]);
    let missing = site.tortie.run(&["get", "tiers", "a", "b", "-w"]);
    assert!(
        missing.stderr.contains("does not exist: Tier(b)"),
        "{}",
        missing.stderr
    );
    drop(all);

    let rows = site.watch(&["tier", "a", "--watch"]);
    rows.expect(&["NAME   ORDER", "a      1"]);
    site.apply("a-long-name", 7);
    site.apply("a", 12);
    rows.expect(&["a      12"]);
    site.tortie.ok(&["delete", "tier", "a"]);
    rows.expect(&["a      12"]);
}

#[test]
fn what_happened_is_said_where_that_is_asked_for() {
    let site = Site::new();
    site.apply("a", 1);
    let events = site.watch(&["tier", "a", "-w", "--output-watch-events"]);
    events.expect(&["EVENT   NAME   ORDER", "ADDED   a      1"]);
    let json = site.watch(&["tier", "a", "-w", "-o", "json"]);
    json.await_line("\"order\": 1");
    let yaml = site.watch(&["tier", "a", "-w", "-o", "yaml", "--output-watch-events"]);
    yaml.await_line("type: ADDED");
    site.apply("a", 2);
    events.expect(&["MODIFIED   a      2"]);
    json.await_line("\"order\": 2");
    yaml.await_line("type: MODIFIED");
    site.tortie.ok(&["delete", "tier", "a"]);
    events.expect(&["DELETED    a      2"]);
    yaml.await_line("type: DELETED");
}

#[test]
fn all_kinds_are_shown_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    for file in ["all-kinds.yaml", "without-kubernetes.yaml"] {
        tortie.ok(&["apply", "-f", &fixture(file).display().to_string()]);
    }
    let names = tortie.ok(&["get", "all", "-A", "-o", "name"]);
    for name in [
        "networkpolicy/frontend",
        "ippool/pods",
        "tier/security",
        "node/n1",
    ] {
        assert!(
            names.lines().any(|line| line == name),
            "no {name} in\n{names}"
        );
    }
    assert!(!names.contains("ipamblock/"), "{names}");
    let tables = tortie.ok(&["get", "all", "-n", "shop"]);
    assert!(
        tables.contains("NAMESPACE   NAME       TIER\nshop        frontend   security\n"),
        "{tables}"
    );
    assert!(!tables.contains("CIDR"), "{tables}");
    // What was shown can be applied.
    let yaml = tortie.ok(&["get", "all", "-A", "-o", "yaml"]);
    let applied = tortie.ok_with_input(&["apply", "-f", "-"], &yaml);
    assert!(
        !applied.contains(" created") && !applied.contains(" changed"),
        "{applied}"
    );
}

#[test]
fn a_go_template_is_refused_with_what_does_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    let template = "go-template={{range .items}}{{.metadata.name}} {{end}}";
    let refused = tortie.run(&["get", "tier", "-o", template]);
    let path = "jsonpath='{range .items[*]}{.metadata.name} {end}'";
    assert!(
        refused.code == 1 && refused.stderr.contains(path),
        "{}",
        refused.stderr
    );
}
