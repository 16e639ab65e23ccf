//! Changes as they happen.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::objects::{config_map, policy};
use crate::up::server::Up;

const PATIENCE: Duration = Duration::from_secs(20);

struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    fn start(up: &Up, arguments: &[&str]) -> Self {
        let arguments = [&["get", "--watch"], arguments].concat();
        let mut command = up.kubectl_command(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = up.spawn(&mut command);
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The words of the next line.
    #[track_caller]
    fn next(&self) -> Vec<String> {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line");
        line.split_whitespace().map(ToOwned::to_owned).collect()
    }

    #[track_caller]
    fn assert_next(&self, expected: &[&str]) {
        let words = self.next();
        assert_eq!(
            words.get(..expected.len()),
            Some(
                &expected
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect::<Vec<_>>()[..]
            ),
            "{words:?}"
        );
    }

    /// Nothing more has come.
    #[track_caller]
    fn assert_quiet(&self) {
        let more = self.lines.recv_timeout(Duration::from_millis(200));
        assert!(more.is_err(), "{more:?}");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_watch_tells_what_is_added_modified_and_deleted() {
    let up = Up::api_server();
    up.kubectl_with(
        &["create", "--filename=-"],
        &policy("default.first", 1).to_string(),
    );
    let policies = Watch::start(&up, &["gnp", "--output-watch-events"]);
    policies.assert_next(&["EVENT", "NAME", "TIER", "ORDER"]);
    policies.assert_next(&["ADDED", "default.first", "default", "1"]);
    // A selection has its own view: what comes into it is new, what leaves it is gone.
    let maps = Watch::start(
        &up,
        &[
            "cm",
            "--selector=app=shop",
            "--output-watch-events",
            "--no-headers",
        ],
    );

    up.kubectl_with(
        &["create", "--filename=-"],
        &policy("default.next", 2).to_string(),
    );
    policies.assert_next(&["ADDED", "default.next", "default", "2"]);
    up.kubectl(&[
        "patch",
        "gnp",
        "default.next",
        "--type=merge",
        "--patch",
        r#"{"spec":{"order":3}}"#,
    ]);
    policies.assert_next(&["MODIFIED", "default.next", "default", "3"]);
    up.kubectl(&["delete", "gnp", "default.first"]);
    policies.assert_next(&["DELETED", "default.first", "default", "1"]);
    policies.assert_quiet();

    up.kubectl_with(
        &["create", "--filename=-"],
        &config_map("one", "1").to_string(),
    );
    maps.assert_next(&["ADDED", "one"]);
    up.kubectl(&["label", "cm", "one", "app=bank", "--overwrite"]);
    maps.assert_next(&["DELETED", "one"]);
    up.kubectl(&["label", "cm", "one", "app=shop", "--overwrite"]);
    maps.assert_next(&["ADDED", "one"]);
    up.kubectl(&["annotate", "cm", "one", "note=1"]);
    maps.assert_next(&["MODIFIED", "one"]);
    maps.assert_quiet();
}
