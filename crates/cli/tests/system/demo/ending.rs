//! How the demo ends. [`Demo::end`] checks each time that nothing is left.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::demo::support::{Demo, User, run};

const INTERRUPTED: i32 = 130;
const KILLED: i32 = -9;

/// Interrupts it while it does this, and tells how it ended.
#[track_caller]
fn check_interrupted(user: User, arguments: &[&str], during: &str, signal: &str) {
    let mut demo = Demo::start(user, arguments);
    demo.read_until(during);
    demo.signal(signal);
    let output = demo.end();
    assert_eq!(output.code, INTERRUPTED, "{}", output.stderr);
    assert_eq!(output.stderr, "\nStopped; everything is gone again.\n");
    assert!(!output.stdout.contains("connections were as expected"));
}

#[test]
fn an_interrupt_ends_it() {
    check_interrupted(User::Root, &[], "2. Default deny", "-INT");
    check_interrupted(User::Nobody, &[], "2. Default deny", "-INT");
    check_interrupted(
        User::Root,
        &["--dataplane", "iptables"],
        "3. Allow",
        "-TERM",
    );
    check_interrupted(User::Root, &[], "Four pods", "-INT");
}

#[track_caller]
fn check_killed(user: User, arguments: &[&str]) {
    let mut demo = Demo::start(user, arguments);
    demo.read_until("2. Default deny");
    // So that they are there to be missed: the node and four pods.
    demo.inside();
    assert_eq!(demo.namespace_count(), 5);
    demo.signal("-KILL");
    let output = demo.end();
    assert_eq!(output.code, KILLED);
}

#[test]
fn killing_it_ends_everything() {
    check_killed(User::Root, &[]);
    check_killed(User::Root, &["--dataplane", "iptables"]);
    check_killed(User::Nobody, &[]);
}

#[test]
fn a_crash_of_the_inner_process_is_a_failure() {
    let mut demo = Demo::start(User::Root, &[]);
    demo.read_until("2. Default deny");
    run("kill", &["-KILL", &demo.inside().to_string()]);
    let output = demo.end();
    assert_eq!(output.code, 1);
    assert_eq!(output.stderr, "Error: the demo was ended by signal 9\n");
}

#[track_caller]
fn check_kept(user: User) {
    let mut demo = Demo::start(user, &["--keep"]);
    demo.read_until("72 of 72 verdicts");
    let hints = demo.read_stderr_until("tortie pod exec elsewhere/stranger");
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let lines = || hints.lines().filter_map(|line| line.strip_prefix("  "));
    let export = lines().find(|line| line.starts_with("export ")).unwrap();
    let mut count = 0;
    for line in lines().filter(|line| *line != export) {
        let line = line.replace("-- sh", "-- ip -4 -brief address show eth0");
        // Some are about connections that are denied, which is exit code 2.
        let output = demo.shell(
            folder.path(),
            &format!("{export}\n{line}\ncode=$?; test $code = 0 -o $code = 2"),
        );
        let expected = match line.as_str() {
            "tortie pod list" => "10.65.0.3",
            line if line.starts_with("tortie pod connect shop/frontend") => {
                "CONNECTED: shop/frontend"
            }
            line if line.starts_with("tortie pod connect") => "TIMED OUT: elsewhere/stranger",
            line if line.contains("get networkpolicy") => "default-deny",
            line if line.contains(" why ") => "DENIED",
            line if line.contains("get pods") => "Running",
            line if line.starts_with("kubectl delete") => "default-deny",
            line if line.contains("nft list ruleset") => "table ip calico",
            line if line.contains("ip route") => "10.65.0.1 dev cali",
            line if line.contains(" shop/frontend ") => "10.65.0.1/32",
            line if line.contains(" elsewhere/stranger ") => "10.65.0.4/32",
            line if line.starts_with("tortie pod exec") => "/32",
            _ => panic!("nobody knows what this does: {line}"),
        };
        assert!(output.contains(expected), "{line}\n{output}");
        count += 1;
    }
    assert_eq!(count, 13, "{hints}");
    // What was deleted there is not enforced any more.
    let line = "tortie pod connect elsewhere/stranger shop/database:5432";
    let until = format!("{export}\nuntil {line}; do :; done");
    assert!(demo.shell(folder.path(), &until).contains("CONNECTED"));
    demo.signal("-INT");
    let output = demo.end();
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(output.stderr, "\nStopped; everything is gone again.\n");
}

#[test]
fn a_demo_that_is_kept_can_be_looked_at() {
    check_kept(User::Root);
    check_kept(User::Nobody);
}

#[test]
fn who_may_make_no_namespaces_is_told_what_to_do() {
    // Root among users of its own, of which there may be no more, and without any rights.
    let forbidden =
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all \"$@\"";
    let through = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        forbidden,
        "sh",
    ];
    let output = Demo::start_through(User::Root, &through, &[]).end();
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(
        output.stderr.contains(
            "run it as root; or let everybody make them: `sysctl user.max_user_namespaces="
        ),
        "{}",
        output.stderr
    );
}

#[test]
fn a_demo_without_its_parent_ends_at_once() {
    let output = Demo::start(User::Root, &["--inside", "1"]).end();
    assert_eq!(output.code, INTERRUPTED);
}
