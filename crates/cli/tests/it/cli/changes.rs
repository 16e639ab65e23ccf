//! What would change (`diff`, `--dry-run`), and changes in an editor (`edit`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::cli::program::{Output, Tortie};

/// A tier, and a policy in it.
const POLICY: &str = "\
apiVersion: projectcalico.org/v3
kind: Tier
metadata: {name: early}
spec: {order: 5}
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: p}
spec: {tier: early, selector: all(), order: 3}
";

fn tortie() -> (tempfile::TempDir, Tortie) {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    (folder, tortie)
}

#[track_caller]
fn check(output: &Output, code: i32, stdout: &str) {
    assert_eq!(
        (output.code, &*output.stdout),
        (code, stdout),
        "{}",
        output.stderr
    );
}

#[test]
fn a_diff_shows_what_an_apply_would_change() {
    let (_folder, tortie) = tortie();
    let diff = |text: &str| tortie.run_with_input(&["diff", "-f", "-"], text);
    let created = diff(POLICY);
    assert_eq!(created.code, 1, "{}", created.stderr);
    let head = "--- /dev/null\n+++ applied/tiers/early\n@@ -0,0 +1,7 @@\n+apiVersion: projectcalico.org/v3\n";
    assert!(created.stdout.starts_with(head), "{}", created.stdout);
    tortie.ok_with_input(&["apply", "-f", "-"], POLICY);
    check(&diff(POLICY), 0, "");
    let expected = "\
--- stored/globalnetworkpolicies/p
+++ applied/globalnetworkpolicies/p
@@ -5,7 +5,7 @@
     projectcalico.org/tier: early
   name: p
 spec:
-  order: 3
+  order: 4
   selector: all()
   tier: early
   types:
";
    let changed = POLICY.replace("order: 3", "order: 4");
    check(&diff(&changed), 1, expected);
    // Nothing was written.
    check(&diff(POLICY), 0, "");
    // What differs is shown also where something else is wrong.
    let broken = POLICY.replace("metadata: {name: p}", "metadata: {name: q}");
    let broken = broken.replace("tier: early", "tier: nowhere");
    let output = diff(&format!("{changed}---\n{broken}"));
    check(&output, 2, expected);
    assert!(
        output.stderr.contains("there is no such tier"),
        "{}",
        output.stderr
    );
    for arguments in [&["diff", "-f", "/nonexistent"][..], &["diff", "--bogus"]] {
        assert_eq!(tortie.run(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let (_folder, tortie) = tortie();
    let run = |arguments: &[&str], text: &str| {
        let arguments = [arguments, &["-f", "-"]].concat();
        tortie.run_with_input(&arguments, text)
    };
    let created = "\
Tier(early) created (dry run)
GlobalNetworkPolicy(p) created (dry run)
Nothing was written; 2 resource(s) would be applied
";
    check(&run(&["apply", "--dry-run"], POLICY), 0, created);
    check(&run(&["apply", "--dry-run=server"], POLICY), 0, created);
    let valid = created.replace(" created", " valid");
    check(&run(&["apply", "--dry-run=client"], POLICY), 0, &valid);
    let absent = run(&["replace", "--dry-run"], POLICY);
    check(
        &absent,
        1,
        "Nothing was written; 0 resource(s) would be replaced\n",
    );
    check(&tortie.run(&["get", "gnp", "-o", "name"]), 0, "");

    tortie.ok_with_input(&["apply", "-f", "-"], POLICY);
    let changed = POLICY.replace("order: 3", "order: 4");
    let expected = "\
Tier(early) unchanged (dry run)
GlobalNetworkPolicy(p) changed (dry run)
Nothing was written; 2 resource(s) would be applied
";
    check(&run(&["apply", "--dry-run"], &changed), 0, expected);
    let refused = run(&["create", "--dry-run"], POLICY);
    assert!(
        refused.stderr.contains("already exists: Tier(early)"),
        "{}",
        refused.stderr
    );
    let refused = tortie.run(&["delete", "--dry-run", "tier", "early"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("non-empty tier"),
        "{}",
        refused.stderr
    );
    let deleted = "GlobalNetworkPolicy(p) deleted (dry run)\nNothing was written; 1 'GlobalNetworkPolicy' resource(s) would be deleted\n";
    check(
        &tortie.run(&["delete", "--dry-run", "gnp", "p"]),
        0,
        deleted,
    );
    let order = tortie.ok(&["get", "gnp", "p", "-o", "jsonpath={.spec.order}"]);
    assert_eq!(order, "3");
}

/// Runs `edit` with an editor that is this script; each call is given its number in `$n`, and the file in `$1`.
fn edit(folder: &Path, script: &str) -> Output {
    let editor = folder.join("editor");
    let calls = folder.join("calls").display().to_string();
    let script = format!("#!/bin/sh\necho >> {calls}\nn=$(wc -l < {calls})\n{script}\n");
    fs::write(&editor, script).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let _ = fs::remove_file(folder.join("calls"));
    let output = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .arg("--data-file")
        .arg(folder.join("data.redb"))
        .args(["edit", "gnp", "p"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", folder)
        .env("EDITOR", &editor)
        .output()
        .unwrap();
    Output {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn what_is_edited_is_stored() {
    let (folder, tortie) = tortie();
    tortie.ok_with_input(&["apply", "-f", "-"], POLICY);
    let order = || tortie.ok(&["get", "gnp", "p", "-o", "jsonpath={.spec.order}"]);
    let output = edit(folder.path(), "sed -i 's/order: 3/order: 4/' $1");
    check(&output, 0, "GlobalNetworkPolicy(p) edited\n");
    assert_eq!(order(), "4");
    for script in ["true", "echo > $1"] {
        let output = edit(folder.path(), script);
        check(&output, 0, "GlobalNetworkPolicy(p) was not changed\n");
    }
    let output = edit(folder.path(), "sed -i 's/order: 4/order: 5/' $1; exit 3");
    assert!(
        output.code == 1 && output.stderr.contains("nothing was stored"),
        "{}",
        output.stderr
    );
    assert_eq!(order(), "4");
}

#[test]
fn what_cannot_be_stored_is_opened_again_with_what_is_wrong() {
    let (folder, tortie) = tortie();
    tortie.ok_with_input(&["apply", "-f", "-"], POLICY);
    // First two mistakes, then no YAML at all, then it is put right; what was seen the second and third time is kept.
    let script = "cp $1 $0.$n
case $n in
1) sed -i 's/order: 3/order: first/; s/selector: all()/selctor: all()/' $1 ;;
2) sed -i 's/order: first/order: [/' $1 ;;
*) sed -i 's/order: \\[/order: 8/; s/selctor/selector/' $1 ;;
esac";
    let output = edit(folder.path(), script);
    check(&output, 0, "GlobalNetworkPolicy(p) edited\n");
    let seen = |number: u32| {
        let file = folder.path().join(format!("editor.{number}"));
        fs::read_to_string(file).unwrap()
    };
    let second = seen(2);
    for piece in [
        "# spec.order = \"first\": ",
        "# spec.selctor = \"all()\": unknown field; did you mean `selector`?",
        "\n  order: first\n",
    ] {
        assert!(second.contains(piece), "no `{piece}` in\n{second}");
    }
    let third = seen(3);
    assert!(
        third.contains("# not valid YAML: ") && !third.contains("did you mean"),
        "{third}"
    );
    let order = tortie.ok(&["get", "gnp", "p", "-o", "jsonpath={.spec.order}"]);
    assert_eq!(order, "8");
}

#[test]
fn what_is_not_stored_in_the_end_is_kept() {
    let (folder, tortie) = tortie();
    tortie.ok_with_input(&["apply", "-f", "-"], POLICY);
    let output = edit(folder.path(), "sed -i 's/order: 3/order: first/' $1");
    assert_eq!(output.code, 1, "{}", output.stdout);
    let (_, file) = output.stderr.split_once("what was written is in ").unwrap();
    let text = fs::read_to_string(file.trim()).unwrap();
    assert!(text.contains("order: first"), "{text}");
    let moved = edit(folder.path(), "sed -i 's/name: p/name: q/' $1");
    assert!(
        moved.stderr.contains("must stay GlobalNetworkPolicy(p)"),
        "{}",
        moved.stderr
    );
}
