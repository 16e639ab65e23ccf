//! `tortie node checksystem`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use serde_json::Value;

/// The checks, after a command of the shell that sees mounts of its own, and the exit code.
fn check(before: &str) -> (Vec<Value>, Option<i32>) {
    let script = format!("{before}; exec \"$0\" node checksystem -o json");
    let program = env!("CARGO_BIN_EXE_tortie");
    let mut shell = Command::new("unshare");
    let shell = shell.args(["--mount", "sh", "-ec", &script, program]);
    let output = shell.output().unwrap();
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (checks, output.status.code())
}

fn of<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    checks.iter().find(|check| check["name"] == name).unwrap()
}

#[test]
fn what_a_node_needs_is_tried_out_and_nothing_stays() {
    let rules = || {
        let listed = Command::new("nft").args(["list", "ruleset"]).output();
        String::from_utf8(listed.unwrap().stdout).unwrap()
    };
    let before = rules();
    let (checks, code) = check(":");
    assert_eq!(code, Some(0), "{checks:?}");
    for name in ["data plane nftables", "data plane iptables", "VXLAN"] {
        assert_eq!(of(&checks, name)["result"], "OK", "{checks:?}");
    }
    assert_eq!(rules(), before);
}

#[test]
fn what_is_missing_is_named_and_is_no_failure_where_something_else_will_do() {
    let (checks, code) = check("mount -t tmpfs none /usr/sbin");
    assert_eq!(code, Some(0), "{checks:?}");
    let iptables = of(&checks, "data plane iptables");
    assert_eq!(iptables["result"], "SKIP");
    let problem = iptables["problem"].as_str().unwrap();
    assert!(problem.contains("`ipset`"), "{problem}");
}
