//! BGP in `tortie up`, where an object asks for it.

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::up::server::{NODE, Up, node, success};

const PATIENCE: Duration = Duration::from_mins(1);

/// Where others look for BIRD on a machine.
const SOCKET: &str = "/var/run/calico/bird.ctl";

#[track_caller]
fn await_that(up: &Up, what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: {}", up.log());
        thread::sleep(Duration::from_millis(50));
    }
}

fn is_there() -> bool {
    UnixStream::connect(SOCKET).is_ok()
}

fn peer() -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "BGPPeer", "metadata": {"name": "rack"},
        "spec": {"peerIP": "192.0.2.9", "asNumber": 64513},
    })
}

fn apply(up: &Up, object: &Value) {
    success(up.try_tortie_with(&["apply", "-f", "-"], &object.to_string()));
}

fn status(up: &Up) -> String {
    up.try_tortie(&["status", "--node", NODE]).stdout
}

/// One test, since all of it is where others look on a machine.
#[test]
fn bird_runs_where_something_asks_for_it() {
    where_bird_is_missing_it_is_said_and_the_rest_runs();
    bird_runs_once_something_asks_for_it_and_until_it_is_taken_down();
}

fn where_bird_is_missing_it_is_said_and_the_rest_runs() {
    let node = node();
    let mut up = Up::without_bird(node.namespace());
    apply(&up, &peer());
    let said = "BGPPeer(rack) asks for BGP, and there is no program `bird`";
    await_that(&up, "the log says it", || up.log().contains(said));
    await_that(&up, "the status says it", || status(&up).contains(said));
    assert!(status(&up).contains("n1: ready"), "{}", status(&up));
    assert!(up.is_running() && !is_there(), "{}", up.log());
    up.tortie(&["down"]);
    assert_eq!(up.await_end(), Some(0), "{}", up.log());
}

fn bird_runs_once_something_asks_for_it_and_until_it_is_taken_down() {
    let node = node();
    let mut up = Up::on(node.namespace(), Vec::new());
    // What a node's start writes asks for nothing.
    apply(
        &up,
        &json!({
            "apiVersion": "projectcalico.org/v3", "kind": "BGPConfiguration",
            "metadata": {"name": "default"}, "spec": {},
        }),
    );
    await_that(&up, "all is well", || status(&up).contains("\nWell\n"));
    assert!(!is_there(), "{}", up.log());

    apply(&up, &peer());
    await_that(&up, "BIRD runs", is_there);
    let config = up.file("up-bird/bird.cfg");
    await_that(&up, "BIRD has the peer", || {
        std::fs::read_to_string(&config).is_ok_and(|text| text.contains("192.0.2.9"))
    });
    await_that(&up, "all is well", || status(&up).contains("\nWell\n"));

    // It stays with what is enforced, and goes with it.
    let process = up.process().to_string();
    let sent = Command::new("kill").args(["-INT", &process]).status();
    assert!(sent.unwrap().success());
    assert_eq!(up.await_end(), Some(0), "{}", up.log());
    assert!(is_there(), "{}", up.log());
    let said = up.tortie(&["down"]);
    assert!(said.contains("Ended BIRD"), "{said}");
    assert!(!is_there(), "{said}");
}
