//! `tortie status` beside a running agent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tortie_testkit::Output;

use crate::up::server::{NODE, Up, node};

/// How long to wait for a change to be in force. Mostly it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A user without rights.
const NOBODY: u32 = 65534;

/// Asks until the answer has all of these pieces.
#[track_caller]
fn await_status(up: &Up, code: i32, pieces: &[&str]) {
    let end = Instant::now() + PATIENCE;
    loop {
        let Output {
            status,
            stdout,
            stderr,
            ..
        } = up.try_tortie(&["status", "--node", NODE]);
        if status.code() == Some(code) && pieces.iter().all(|piece| stdout.contains(piece)) {
            return;
        }
        assert!(
            Instant::now() < end,
            "{status}, not {code} and {pieces:?}:\n{stdout}{stderr}"
        );
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_agent_is_asked_what_is_in_force() {
    let node = node();
    let up = Up::on(node.namespace(), Vec::new());
    let well = [
        "Node        n1: ready, nftables, in sync since ",
        ", last apply ",
        ", agent 0",
        "\nWell\n",
    ];
    await_status(&up, 0, &well);
    up.tortie(&["datastore", "migrate", "lock"]);
    let locked = [
        "n1: not ready",
        "ClusterInformation(default): datastoreReady is false",
    ];
    await_status(&up, 1, &locked);
}

#[test]
fn an_agent_answers_others_where_it_was_told_to() {
    let node = node();
    let as_other = |up: &Up| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        command
            .arg("--data-dir")
            .arg(folder.path())
            .args(["status", "--node", NODE])
            .env_clear()
            .uid(NOBODY);
        up.run(command, &[]).stdout
    };
    let up = Up::on(node.namespace(), Vec::new());
    let text = as_other(&up);
    let refused = "Not asked   the agent of this machine, process ";
    assert!(text.contains(refused), "{text}");
    drop(up);
    let variables = vec![("FELIX_HEALTHENABLED", "true".to_owned())];
    let up = Up::on(node.namespace(), variables);
    await_status(&up, 0, &[]);
    let text = as_other(&up);
    assert!(text.contains("Node        n1: ready"), "{text}");
}
