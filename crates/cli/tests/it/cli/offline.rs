//! Commands that need no datastore.

use std::fs;
use std::path::Path;

use crate::cli::program::{Tortie, fixture};

fn tortie() -> Tortie {
    Tortie::with_variables(Vec::new())
}

/// Validates text and expects these pieces, in this order, each on a line of its own.
#[track_caller]
fn refuses(input: &str, expected: &[&str]) {
    let output = tortie().run_with_input(&["validate", "-f", "-"], input);
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    let mut lines = output.stderr.lines();
    for piece in expected {
        assert!(
            lines.any(|line| line.contains(piece)),
            "no line has `{piece}` in\n{}",
            output.stderr
        );
    }
}

fn policy(kind: &str, spec: &str) -> String {
    let namespace = if kind.starts_with("Global") {
        ""
    } else {
        "  namespace: default\n"
    };
    format!(
        "apiVersion: projectcalico.org/v3\nkind: {kind}\nmetadata:\n  name: p\n{namespace}spec:\n{spec}"
    )
}

/// Those of Calico's resources, in blocks of YAML.
#[test]
fn manifests_of_the_documents_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut blocks = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            let (manifest, _) = block.split_once("```").unwrap();
            if !manifest.starts_with("apiVersion: projectcalico.org/v3") {
                continue;
            }
            let output = tortie().run_with_input(&["validate", "-f", "-"], manifest);
            let place = path.display();
            assert_eq!(output.code, 0, "{place}: {}\n{manifest}", output.stderr);
            blocks += 1;
        }
    }
    assert!(blocks >= 5, "only {blocks} blocks were found");
}

#[test]
fn ports_without_a_protocol_are_refused() {
    refuses(
        &policy(
            "NetworkPolicy",
            "  ingress:\n  - action: Allow\n    destination: {ports: [80]}\n",
        ),
        &[
            "stdin:9: document 1: NetworkPolicy(default/p): spec.ingress[0].destination.ports = [80]: port numbers need",
        ],
    );
}

#[test]
fn an_unmasked_cidr_is_refused() {
    refuses(
        &policy(
            "NetworkPolicy",
            "  ingress:\n  - action: Allow\n    source: {nets: [10.0.0.1/8]}\n",
        ),
        &[
            "spec.ingress[0].source.nets[0] = \"10.0.0.1/8\": must be an address or a CIDR with no bits set",
        ],
    );
}

#[test]
fn a_bad_selector_is_shown_with_a_caret() {
    refuses(
        &policy("NetworkPolicy", "  selector: app = 'x'\n"),
        &[
            "spec.selector = \"app = 'x'\": is not a selector",
            "    app = 'x'",
            "        ^",
        ],
    );
}

#[test]
fn pre_dnat_with_egress_is_refused() {
    refuses(
        &policy(
            "GlobalNetworkPolicy",
            "  preDNAT: true\n  applyOnForward: true\n  egress: [{action: Allow}]\n",
        ),
        &["spec.preDNAT = true: must not be set in a policy with egress rules"],
    );
}

#[test]
fn an_unknown_field_is_refused_with_a_suggestion() {
    refuses(
        &policy("NetworkPolicy", "  selectr: all()\n"),
        &["spec.selectr = \"all()\": unknown field; did you mean `selector`?"],
    );
}

#[test]
fn every_document_with_a_problem_is_named() {
    let good = policy("NetworkPolicy", "  selector: all()\n");
    let bad = policy("NetworkPolicy", "  order: x\n");
    refuses(
        &format!("{good}---\n{bad}---\n{bad}"),
        &[
            "document 2: NetworkPolicy(default/p): spec.order = \"x\"",
            "document 3:",
            "2 of 3 resources are not valid",
        ],
    );
}

#[test]
fn every_problem_is_named_with_its_line() {
    let text = "\
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: p}
spec:
  order: x
  selctor: all()
  ingress:
  - action: Allow
    destination:
      ports: [80]
    source:
      nets:
      - 10.0.0.0/8
      - 10.0.0.1/8
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicyy
metadata: {name: q}
---
apiVersion: projectcalico.org/v3
kind: TierList
items:
- apiVersion: projectcalico.org/v3
  kind: Tier
  metadata: {name: t}
  spec:
    order: first
";
    let output = tortie().run_with_input(&["validate", "-f", "-"], text);
    let expected = [
        "stdin:5: document 1: NetworkPolicy(p): spec.order = \"x\": ",
        "stdin:6: document 1: NetworkPolicy(p): spec.selctor = \"all()\": unknown field; did you mean `selector`?",
        "stdin:14: document 1: NetworkPolicy(p): spec.ingress[0].source.nets[1] = \"10.0.0.1/8\": ",
        "stdin:10: document 1: NetworkPolicy(p): spec.ingress[0].destination.ports = [80]: ",
        "stdin:17: document 2: NetworkPolicyy(q): kind = \"NetworkPolicyy\": is not a kind of projectcalico.org/v3; did you \
         mean `NetworkPolicy`?",
        "stdin:27: document 3: Tier(t): spec.order = \"first\": ",
        "3 of 3 resources are not valid",
    ];
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{}", output.stderr);
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "`{line}`, not `{expected}`");
    }
}

#[test]
fn a_file_may_have_many_documents() {
    let document = policy("NetworkPolicy", "  selector: all()\n");
    let input = format!("{document}---\n").repeat(20_000);
    let stdout = tortie().ok_with_input(&["validate", "-f", "-"], &input);
    assert!(stdout.contains("Successfully validated 20000"), "{stdout}");
}

#[test]
fn what_calico_accepts_is_accepted_and_what_it_refuses_is_refused() {
    let text = |kind: &str, spec: &str| {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}\n"
        )
    };
    for (kind, spec) in [
        (
            "CalicoNodeStatus",
            "{node: n1, classes: [], updatePeriodSeconds: 10}",
        ),
        ("GlobalNetworkSet", "{nets: [10.0.0.0/8, 10.0.0.0/8]}"),
        ("NetworkSet", "{nets: [10.0.0.1, 10.0.0.1]}"),
        (
            "GlobalNetworkPolicy",
            "{ingress: [{action: Allow, source: {nets: [10.0.0.0/8, 10.0.0.0/8]}}]}",
        ),
        (
            "HostEndpoint",
            "{node: n1, expectedIPs: [10.0.0.1, 10.0.0.1]}",
        ),
        (
            "Profile",
            "{egress: [{action: Allow, destination: {services: {}}}]}",
        ),
    ] {
        tortie().ok_with_input(&["validate", "-f", "-"], &text(kind, spec));
    }
    for (kind, spec, field) in [
        (
            "BGPFilter",
            "{importV4: [{action: Accept, communities: {values: ['100']}}]}",
            "spec.importV4[0].communities.values[0] = \"100\": must be a community",
        ),
        (
            "BlockAffinity",
            "{state: confirmed, node: n1, cidr: ''}",
            "spec.cidr = \"\": must be the CIDR of a block",
        ),
        (
            "GlobalNetworkPolicy",
            "{egress: [{action: Allow, destination: {services: {namespace: shop}}}]}",
            "spec.egress[0].destination.services.name: must be given",
        ),
    ] {
        refuses(&text(kind, spec), &[field]);
    }
}

#[test]
fn good_input_is_accepted() {
    let file = fixture("all-kinds.yaml").display().to_string();
    let stdout = tortie().ok(&["validate", "-f", &file]);
    assert!(stdout.contains("Successfully validated"), "{stdout}");
}

#[test]
fn the_examples_are_valid() {
    let folder = fixture("../../../../../examples").display().to_string();
    tortie().ok(&["validate", "-f", &folder]);
}

#[test]
fn selectors_are_explained() {
    let stdout = tortie().ok(&["selector", "a == 'b'&&has(c)", "--labels", "a=b,c=d"]);
    assert!(
        stdout.contains(r#"canonical: (a == "b" && has(c))"#),
        "{stdout}"
    );
    assert!(
        stdout.contains("id:        s:a7YG9G3XyFzmdwcUzkbtw0ffcKn8o5bm1xsGyQ"),
        "{stdout}"
    );
    assert!(stdout.contains("matches:   yes"), "{stdout}");
    assert_eq!(
        tortie()
            .run(&["selector", "a == 'b'", "--labels", "a=c"])
            .code,
        2
    );
    let bad = tortie().run(&["selector", "a == b"]);
    assert_eq!(bad.code, 1);
    assert!(bad.stderr.contains("a == b\n         ^"), "{}", bad.stderr);
}

#[test]
fn kubernetes_policies_are_converted() {
    let input = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web, namespace: shop}\nspec:\n  podSelector: {matchLabels: {app: web}}\n  ingress: [{ports: [{port: 80}]}]\n";
    let stdout = tortie().ok_with_input(&["convert", "-f", "-"], input);
    assert!(
        stdout.contains("apiVersion: projectcalico.org/v3"),
        "{stdout}"
    );
    assert!(
        stdout.contains("projectcalico.org/orchestrator == 'k8s' && app == 'web'"),
        "{stdout}"
    );
    tortie().ok_with_input(&["validate", "-f", "-"], &stdout);
}

#[test]
fn completion_scripts_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            tortie().ok(&["completion", shell]).contains("tortie"),
            "{shell}"
        );
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    tortie().ok(&["man", "--output", &pages.display().to_string()]);
    for (page, piece) in [
        ("tortie.1", "tortie"),
        ("tortie-get.1", "custom\\-columns"),
        ("tortie-ipam-show.1", "ipam"),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(".TH") && text.contains(piece), "{text}");
    }
}

#[test]
fn unreadable_files_are_named() {
    let output = tortie().run(&["validate", "-f", "/nonexistent.yaml"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("/nonexistent.yaml"),
        "{}",
        output.stderr
    );
    let output = tortie().run_with_input(&["validate", "-f", "-"], "a: [1\n");
    assert!(
        output.stderr.contains("line 1 column 4"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_group_of_commands_alone_shows_what_there_is() {
    for group in ["ipam", "node", "datastore", "cni"] {
        let output = tortie().run(&[group]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{group}");
        assert!(output.stdout.contains("Usage:"), "{}", output.stdout);
    }
}

#[test]
fn who_takes_the_log_level_for_a_selector_is_told() {
    let output = tortie().run(&["get", "pods", "-l", "app=x"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("--log-level"), "{}", output.stderr);
}

#[test]
fn log_lines_are_json_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    let output = tortie.run(&[
        "--log-format",
        "json",
        "--log-level",
        "debug",
        "get",
        "tier",
    ]);
    let lines = output.stderr.lines().map(serde_json::from_str);
    let lines: Vec<serde_json::Value> = lines.collect::<Result<_, _>>().unwrap();
    let opening = |line: &serde_json::Value| {
        line["level"] == "DEBUG" && line["message"] == "Opening the datastore"
    };
    assert!(lines.iter().any(opening), "{}", output.stderr);
}
