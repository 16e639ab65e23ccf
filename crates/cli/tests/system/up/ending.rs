//! How `tortie up` ends, and why it does not begin.

use std::process::Command;

use crate::up::server::{Up, node};

/// The last words of a `tortie up` with an agent.
const LAST: &str =
    "Ending; rules and routes stay in the kernel as they are, and `tortie down` removes them\n";

#[test]
fn an_interrupt_is_answered_by_one_line() {
    let node = node();
    let mut up = Up::on(node.namespace(), Vec::new());
    // Everything runs: the controllers have copies of what the API server holds.
    up.kubectl(&["create", "namespace", "shop"]);
    let process = up.process().to_string();
    let sent = Command::new("kill")
        .args(["-INT", &process])
        .status()
        .unwrap();
    assert!(sent.success());
    assert_eq!(up.await_end(), Some(0), "{}", up.log());
    let log = up.log();
    let (_, after) = log.split_once(LAST).unwrap();
    let is_trouble = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    assert_eq!(after.lines().find(is_trouble), None, "{log}");
}

#[test]
fn a_second_one_names_the_address_and_the_option() {
    let first = Up::api_server_with_port();
    let url = first.url();
    let address = url.strip_prefix("https://").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .arg("--data-dir")
        .arg(folder.path())
        .args([
            "up",
            "--without",
            "agent",
            "--without",
            "controllers",
            "--listen",
            address,
        ])
        .env_clear()
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for piece in ["--listen", address] {
        assert!(said.contains(piece), "no {piece} in {said}");
    }
}
