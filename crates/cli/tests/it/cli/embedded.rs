//! On the embedded datastore.

use crate::cli::program::{Tortie, fixture};
use crate::cli::round_trip;

fn tortie() -> (tempfile::TempDir, Tortie) {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    (folder, tortie)
}

const BUSYBOX: &str = "\
kind: NetworkPolicy
apiVersion: projectcalico.org/v3
metadata:
  name: allow-busybox-egress
  namespace: default
spec:
  selector: run == 'access'
  types:
  - Egress
  egress:
  - action: Allow
";

#[test]
fn a_policy_from_stdin_is_created_once() {
    let (_folder, tortie) = tortie();
    let stdout = tortie.ok_with_input(&["create", "-f", "-"], BUSYBOX);
    assert_eq!(
        stdout,
        "Successfully created 1 'NetworkPolicy' resource(s)\n"
    );
    let again = tortie.run_with_input(&["create", "-f", "-"], BUSYBOX);
    assert_eq!(again.code, 1);
    assert!(
        again
            .stderr
            .contains("already exists: NetworkPolicy(default/allow-busybox-egress)"),
        "{}",
        again.stderr
    );
    tortie.ok_with_input(&["create", "--skip-exists", "-f", "-"], BUSYBOX);
    let table = tortie.ok(&["get", "np", "-o", "wide"]);
    let expected = "NAME                   TIER      ORDER   SELECTOR\nallow-busybox-egress   default   -       run == 'access'\n\n";
    assert_eq!(table, expected);
}

#[test]
fn every_kind_survives_a_round_trip() {
    let (_folder, tortie) = tortie();
    round_trip::check(&tortie, "all-kinds.yaml", "yaml");
    round_trip::check(&tortie, "without-kubernetes.yaml", "json");
}

#[test]
fn output_forms_agree() {
    let (_folder, tortie) = tortie();
    tortie.ok(&[
        "apply",
        "-f",
        &fixture("all-kinds.yaml").display().to_string(),
    ]);
    assert_eq!(tortie.ok(&["get", "ippool", "-o", "name"]), "ippool/pods\n");
    assert_eq!(
        tortie.ok(&["get", "pools", "-o", "jsonpath={.items[*].spec.cidr}"]),
        "10.65.0.0/16"
    );
    assert_eq!(
        tortie.ok(&["get", "ipp", "pods", "-o", "jsonpath={.spec.cidr}"]),
        "10.65.0.0/16"
    );
    assert_eq!(
        tortie.ok(&["get", "ippool/pods", "-o", "custom-columns=NAME,CIDR"]),
        "NAME   CIDR\npods   10.65.0.0/16\n\n"
    );
    assert_eq!(
        tortie.ok(&["get", "ippool", "-o", "custom-columns=POOL:.metadata.name"]),
        "POOL\npods\n"
    );
    let namespaced = tortie.ok(&["get", "networkpolicies", "-A"]);
    assert_eq!(
        namespaced,
        "NAMESPACE   NAME       TIER\nshop        frontend   security\n\n"
    );
    assert_eq!(tortie.ok(&["get", "networkpolicies"]), "NAME   TIER\n\n");
    let bad = tortie.run(&["get", "ippool", "-o", "custom-columns=BOGUS"]);
    assert!(
        bad.stderr
            .contains("unknown heading BOGUS, valid values are: NAME, CIDR"),
        "{}",
        bad.stderr
    );
    let bad = tortie.run(&["get", "bogus"]);
    let near = tortie.run(&["get", "netwrkpolicies"]);
    assert!(
        near.stderr.contains("did you mean `networkpolicies`?"),
        "{}",
        near.stderr
    );
    assert!(
        bad.stderr
            .contains("resource type 'bogus' is not supported"),
        "{}",
        bad.stderr
    );
}

#[test]
fn a_failure_does_not_hide_the_others() {
    let (_folder, tortie) = tortie();
    let bad = BUSYBOX.replace("allow-busybox-egress", "Bad_Name");
    let unknown_tier = BUSYBOX
        .replace("allow-busybox-egress", "lost")
        .replace("spec:\n", "spec:\n  tier: nowhere\n");
    let output = tortie.run_with_input(
        &["apply", "-f", "-"],
        &format!("{bad}---\n{BUSYBOX}---\n{unknown_tier}"),
    );
    assert_eq!(output.code, 1);
    assert!(
        output
            .stdout
            .contains("NetworkPolicy(default/allow-busybox-egress) created"),
        "{}",
        output.stdout
    );
    assert!(
        output.stderr.contains("document 1") && output.stderr.contains("\"Bad_Name\""),
        "{}",
        output.stderr
    );
    assert!(
        output
            .stderr
            .contains("spec.tier = \"nowhere\": there is no such tier"),
        "{}",
        output.stderr
    );
    assert!(
        output
            .stderr
            .contains("Partial success: applied 1 out of 3 resources"),
        "{}",
        output.stderr
    );
}

#[test]
fn an_object_is_named_once() {
    let (_folder, tortie) = tortie();
    let invalid = BUSYBOX.replace(
        "  - action: Allow",
        "  - {action: Allow, destination: {ports: [80]}}",
    );
    let output = tortie.run_with_input(&["apply", "-f", "-"], &invalid);
    let line = output.stderr.lines().last().unwrap();
    let expected = "stdin:11: document 1: NetworkPolicy(default/allow-busybox-egress) not applied: \
                    spec.egress[0].destination.ports = [80]: port numbers need";
    assert!(line.starts_with(expected), "{line}");
    let output = tortie.run(&["delete", "tier", "default"]);
    let line = output.stderr.lines().last().unwrap();
    assert_eq!(
        line,
        "Error: Tier(default) not deleted: Cannot delete default tier"
    );
}

#[test]
fn resources_are_patched_labelled_and_deleted() {
    let (_folder, tortie) = tortie();
    tortie.ok_with_input(&["create", "-f", "-"], BUSYBOX);
    let name = "allow-busybox-egress";
    assert_eq!(
        tortie.ok(&["patch", "np", name, "-p", "{\"spec\": {\"order\": 7}}"]),
        "Successfully patched 1 'NetworkPolicy' resource\n"
    );
    let json_patch = r#"[{"op": "replace", "path": "/spec/order", "value": 8}]"#;
    tortie.ok(&["patch", "np", name, "-t", "json", "-p", json_patch]);
    assert_eq!(
        tortie.ok(&["get", "np", name, "-o", "jsonpath={.spec.order}"]),
        "8"
    );
    let refused = tortie.run(&["patch", "np", name, "-p", "{\"spec\": {\"ordr\": 7}}"]);
    assert!(
        refused.stderr.contains("did you mean `order`?")
            && !refused.stderr.contains("Error: Error:"),
        "{}",
        refused.stderr
    );

    assert_eq!(
        tortie.ok(&["label", "np", name, "team=web"]),
        "Successfully set label team on np allow-busybox-egress.\n"
    );
    let refused = tortie.run(&["label", "np", name, "team=db"]);
    assert!(
        refused.stderr.contains("please use '--overwrite'"),
        "{}",
        refused.stderr
    );
    tortie.ok(&["label", "np", name, "team=db", "--overwrite"]);
    tortie.ok(&["label", "np", name, "team", "--remove"]);

    assert_eq!(
        tortie.ok(&["delete", "np", name]),
        "Successfully deleted 1 'NetworkPolicy' resource(s)\n"
    );
    let gone = tortie.run(&["delete", "np", name]);
    assert_eq!(gone.code, 1);
    assert!(
        gone.stderr
            .contains("does not exist: NetworkPolicy(default/allow-busybox-egress)"),
        "{}",
        gone.stderr
    );
    tortie.ok(&["delete", "-s", "np", name]);
}

#[test]
fn tiers_and_pools_are_protected() {
    let (_folder, tortie) = tortie();
    tortie.ok(&[
        "apply",
        "-f",
        &fixture("all-kinds.yaml").display().to_string(),
    ]);
    let refused = tortie.run(&["delete", "tier", "default"]);
    assert!(
        refused.stderr.contains("Cannot delete default tier"),
        "{}",
        refused.stderr
    );
    let refused = tortie.run(&["delete", "tier", "security"]);
    assert!(
        refused.stderr.contains("Cannot delete a non-empty tier"),
        "{}",
        refused.stderr
    );
    let overlapping = "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: other}\nspec: {cidr: 10.65.128.0/17}\n";
    let refused = tortie.run_with_input(&["create", "-f", "-"], overlapping);
    assert!(
        refused
            .stderr
            .contains("overlaps 10.65.0.0/16 of IPPool pods"),
        "{}",
        refused.stderr
    );
    let refused = tortie.run(&[
        "patch",
        "ippool",
        "pods",
        "-p",
        "{\"spec\": {\"cidr\": \"10.66.0.0/16\"}}",
    ]);
    assert!(
        refused.stderr.contains("must stay 10.65.0.0/16"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_namespace_must_fit() {
    let (_folder, tortie) = tortie();
    let refused = tortie.run_with_input(&["create", "-n", "other", "-f", "-"], BUSYBOX);
    assert!(
        refused
            .stderr
            .contains("metadata.namespace = \"default\": is not `other`"),
        "{}",
        refused.stderr
    );
    let without = BUSYBOX.replace("  namespace: default\n", "");
    tortie.ok_with_input(&["create", "-n", "other", "-f", "-"], &without);
    assert!(
        tortie
            .ok(&["get", "np", "-n", "other"])
            .contains("allow-busybox-egress")
    );
    let refused = tortie.run(&["get", "tier", "-n", "other"]);
    assert!(
        refused.stderr.contains("Tier is cluster-wide"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_policy_cannot_move_to_a_tier_that_is_not_there() {
    let (_folder, tortie) = tortie();
    let tier =
        "apiVersion: projectcalico.org/v3\nkind: Tier\nmetadata: {name: first}\nspec: {order: 5}\n";
    tortie.ok_with_input(&["apply", "-f", "-"], tier);
    let policy = "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: p}\nspec: {tier: first}\n";
    tortie.ok_with_input(&["apply", "-f", "-"], policy);
    let moved = policy.replace("tier: first", "tier: nowhere");
    for verb in ["apply", "replace"] {
        let output = tortie.run_with_input(&[verb, "-f", "-"], &moved);
        assert_eq!(output.code, 1, "{verb}: {}", output.stdout);
        assert!(
            output.stderr.contains("spec.tier"),
            "{verb}: {}",
            output.stderr
        );
    }
    let found = tortie.ok(&["get", "gnp", "p", "-o", "jsonpath={.spec.tier}"]);
    assert_eq!(found.trim(), "first");
}

#[test]
fn tiers_are_shown_in_the_order_in_which_they_are_asked() {
    let (_folder, tortie) = tortie();
    let tier = |name: &str, order: u32| {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: Tier\nmetadata: {{name: {name}}}\nspec: {{order: {order}}}\n"
        )
    };
    for (name, order) in [("a", 300), ("z", 100), ("m", 200)] {
        tortie.ok_with_input(&["apply", "-f", "-"], &tier(name, order));
    }
    let shown = tortie.ok(&["get", "tier"]);
    let first = shown
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    let first: Vec<&str> = first.take(3).collect();
    assert_eq!(first, ["z", "m", "a"], "{shown}");
}

/// The shell asks the program itself: bash, as somebody who presses Tab at the end of these words.
#[test]
fn a_shell_completes_kinds_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    for name in ["alpha", "alpine", "beta"] {
        let tier = format!(
            "apiVersion: projectcalico.org/v3\nkind: Tier\nmetadata: {{name: {name}}}\nspec: {{order: 1}}\n"
        );
        tortie.ok_with_input(&["apply", "-f", "-"], &tier);
    }
    let registration = tortie.ok(&["completion", "bash"]);
    let complete = |words: &str| {
        let script = format!(
            "{registration}\n\
             COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMP_TYPE=9\n\
             cur=${{COMP_WORDS[COMP_CWORD]}}\n\
             _clap_complete_tortie tortie \"$cur\" get\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_tortie"));
        let output = std::process::Command::new("bash")
            .args(["--norc", "-c", &script])
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", binary.parent().unwrap().display()),
            )
            .env("TORTIE_DATA_FILE", folder.path().join("data.redb"))
            .output()
            .unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let told: Vec<String> = told.split_whitespace().map(str::to_owned).collect();
        (told, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let kinds = complete("tortie get tie");
    assert_eq!(kinds.0, ["tiers"], "{}", kinds.1);
    let names = complete("tortie get tier al");
    assert_eq!(names.0, ["alpha", "alpine"], "{}", names.1);
    let names = complete("tortie describe tiers alpha be");
    assert_eq!(names.0, ["beta"], "{}", names.1);
}
