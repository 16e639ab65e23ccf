//! What answers look like, and the exit codes.

use std::os::unix::process::CommandExt as _;

use super::{SHOP, allowed, ask_for, denied, json};

const DB: [&str; 4] = ["--protocol", "TCP", "--port", "5432"];

fn with_db(from: &'static str) -> Vec<&'static str> {
    [from, "shop/db"].into_iter().chain(DB).collect()
}

#[test]
fn the_verdict_comes_first_then_what_would_have_to_change_then_what_decided() {
    let text = allowed(SHOP, &with_db("shop/api"));
    let expected = "\
ALLOWED: shop/api (10.0.0.1) to shop/db (10.0.0.2), TCP port 5432
To deny it: rule 0 of KubernetesNetworkPolicy shop/db must not allow it, or a policy before it in tier default for \
ingress of shop/db must deny TCP 5432 from shop/api

Egress of shop/api: allowed
  Allow: no policy decides, and namespace shop does by default (rule 0 of profile kns.shop)
Ingress of shop/db: allowed
  Allow by rule 0 of KubernetesNetworkPolicy shop/db in tier default
    rule 0: TCP from pods with app == \"api\" of namespace shop to port 5432 (stdin: document 5)
";
    assert_eq!(text, expected);
    let expected = "\
DENIED: blog/api (10.0.0.3) to shop/db (10.0.0.2), TCP port 5432
To allow it: a policy in tier default for ingress of shop/db must allow TCP 5432 from blog/api

Egress of blog/api: allowed
  Allow: no policy decides, and namespace blog does by default (rule 0 of profile kns.blog)
Ingress of shop/db: denied
  Deny at the end of tier default: policies apply and no rule matches
    KubernetesNetworkPolicy shop/db
      rule 0 Allow: TCP from pods with app == \"api\" of namespace shop to port 5432 (stdin: document 5)
        no, it is for pods of namespace shop, and source blog/api is in namespace blog
";
    assert_eq!(denied(SHOP, &with_db("blog/api")), expected);
}

#[test]
fn all_steps_are_told_if_that_is_wanted() {
    let text = denied(SHOP, &[&with_db("blog/api")[..], &["--explain"]].concat());
    let trace = text
        .split("Ingress of shop/db, step by step")
        .nth(1)
        .unwrap();
    for piece in [
        "  tier default\n",
        "    KubernetesNetworkPolicy shop/db\n",
        "      rule 0 Allow: TCP from pods",
        "        no, it is for pods of namespace shop",
        "    end of tier: Deny\n",
    ] {
        assert!(trace.contains(piece), "no `{piece}` in {text}");
    }
    assert!(text.contains("Egress of blog/api, step by step"), "{text}");
}

#[test]
fn one_line_is_enough_for_some() {
    let text = denied(SHOP, &[&with_db("blog/api")[..], &["--short"]].concat());
    assert_eq!(
        text,
        "DENIED   blog/api -> shop/db TCP 5432  (ingress: Deny at the end of tier default: policies apply and no rule matches)\n"
    );
    let both = [&with_db("blog/api")[..], &["--short", "--explain"]].concat();
    super::refused(SHOP, &both, &["cannot be used with"]);
}

#[test]
fn rules_are_named_with_their_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let world = file("shop.yaml", SHOP);
    // One rule of Kubernetes becomes several of Calico's.
    let policies = file(
        "policies.yaml",
        "kind: List
apiVersion: v1
items:
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: many, namespace: blog}
  spec:
    podSelector: {}
    ingress:
    - from: [{podSelector: {matchLabels: {a: b}}}, {podSelector: {matchLabels: {c: d}}}]
      ports: [{port: 80}, {port: 53, protocol: UDP}]
    - from: [{namespaceSelector: {matchLabels: {project: shop}}}]
      ports: [{port: 443}]
- apiVersion: projectcalico.org/v3
  kind: NetworkPolicy
  metadata: {name: out, namespace: shop}
  spec:
    selector: app == 'db'
    types: [Egress]
    egress:
    - action: Log
    - action: Deny
",
    );
    let tortie = crate::cli::program::Tortie::with_variables(Vec::new());
    let ask = |from: &str| {
        let question = ["blog/api", "-p", "TCP", "--port", "443"];
        let files = ["why", "-f", &world, "-f", &policies, from];
        tortie.run(&[&files[..], &question[..]].concat()).stdout
    };
    let text = ask("shop/api");
    let rule = "rule 4: TCP from pods with namespace label project == \"shop\" to port 443";
    assert!(
        text.contains(&format!("{rule} ({policies}:12)\n")),
        "{text}"
    );
    let text = ask("shop/db");
    assert!(
        text.contains(&format!("rule 1: all packets ({policies}:22)\n")),
        "{text}"
    );
}

#[test]
fn without_a_port_it_is_said_what_is_open() {
    let open = |code, world: &str, arguments: &[&str]| {
        let text = ask_for(code, world, arguments).stdout;
        text.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = open(2, SHOP, &["shop/api", "shop/db"]);
    assert!(
        lines[0].starts_with("PARTLY ALLOWED: shop/api"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "Open: TCP port 5432. All else is denied");
    let lines = open(2, SHOP, &["blog/api", "shop/db"]);
    assert!(lines[0].starts_with("DENIED: blog/api"), "{lines:?}");
    assert!(lines[0].ends_with(", all protocols and ports"), "{lines:?}");
    let lines = open(0, SHOP, &["shop/db", "shop/api"]);
    assert!(lines[0].starts_with("ALLOWED: shop/db"), "{lines:?}");
    let policy = "\
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: some}
spec:
  order: 1
  selector: app == 'api'
  types: [Ingress]
  ingress:
  - {action: Deny, protocol: TCP, destination: {ports: [22, '8000:8010']}}
  - {action: Deny, protocol: ICMP, icmp: {type: 8}}
  - {action: Allow}
";
    let world = format!("{SHOP}{policy}");
    let lines = open(2, &world, &["shop/db", "shop/api"]);
    assert_eq!(
        lines[1],
        "All is open but TCP ports 22, 8000-8010; ICMP type 8"
    );
    let lines = open(2, &world, &["shop/db", "shop/api", "-p", "tcp"]);
    assert_eq!(
        lines[1],
        "Open: TCP ports 1-21, 23-7999, 8011-65535. All else is denied"
    );
    let lines = open(2, &world, &["shop/db", "shop/api", "-p", "icmp"]);
    assert_eq!(lines[1], "Open: ICMP but type 8. All else is denied");
    assert!(lines[0].ends_with("ICMP, all types"), "{lines:?}");
    let lines = open(0, &world, &["shop/db", "shop/api", "-p", "udp"]);
    assert!(lines[0].starts_with("ALLOWED"), "{lines:?}");

    let answer = json(2, SHOP, &["shop/api", "shop/db"]);
    assert_eq!(answer["verdict"], "Deny");
    let openings = serde_json::json!({
        "open": [{"protocol": "TCP", "ports": [{"first": 5432, "last": 5432}]}],
        "closed": [{"protocol": null}],
    });
    assert_eq!(answer["openings"], openings);
}

#[test]
fn there_are_no_colours_where_nobody_sees_them() {
    let text = allowed(SHOP, &with_db("shop/api"));
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn json_has_both_sides_with_what_decided() {
    let answer = json(0, SHOP, &with_db("shop/api"));
    assert_eq!(answer["verdict"], "Allow");
    assert_eq!(answer["egress"]["endpoint"], "shop/api");
    assert_eq!(answer["egress"]["verdict"], "Allow");
    assert_eq!(answer["ingress"]["endpoint"], "shop/db");
    let by = &answer["ingress"]["by"];
    assert_eq!(by["tier"], "default");
    assert_eq!(by["policy"]["kind"], "KubernetesNetworkPolicy");
    assert_eq!(by["policy"]["name"], "db");
    assert_eq!(by["rule"], 0);
    assert_eq!(by["action"], "Allow");
    assert!(answer["ingress"]["trace"].is_array());

    let answer = json(2, SHOP, &with_db("203.0.113.7"));
    assert_eq!(answer["verdict"], "Deny");
    assert_eq!(answer["egress"]["endpoint"], serde_json::Value::Null);
    assert_eq!(answer["ingress"]["by"]["tier"], "default");
}

#[test]
fn ports_protocols_and_icmp_are_taken_from_the_command_line() {
    denied(
        SHOP,
        &["shop/api", "shop/db", "--protocol", "udp", "--port", "5432"],
    );
    denied(
        SHOP,
        &["shop/api", "shop/db", "--protocol", "6", "--port", "22"],
    );
    allowed(
        SHOP,
        &[
            "shop/api",
            "shop/db",
            "-p",
            "6",
            "--port",
            "5432",
            "--src-port",
            "1025",
        ],
    );
    let world = "\
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: pings}
spec:
  selector: all()
  types: [Ingress]
  ingress:
  - {action: Allow, protocol: ICMP, icmp: {type: 8, code: 0}}
  - {action: Allow, protocol: UDP, source: {ports: [1024]}}
";
    let world = format!("{SHOP}---\n{world}");
    let ping = |r#type: &'static str, code: &'static str| {
        [
            "blog/api",
            "shop/api",
            "--icmp-type",
            r#type,
            "--icmp-code",
            code,
        ]
    };
    let text = allowed(&world, &ping("8", "0"));
    assert!(text.contains(", ICMP type 8 code 0\n"), "{text}");
    denied(&world, &ping("8", "1"));
    denied(&world, &ping("0", "0"));
    let from_port = |port| ["blog/api", "shop/api", "-p", "UDP", "--src-port", port];
    allowed(&world, &from_port("1024"));
    denied(&world, &from_port("1025"));
}

#[test]
fn verbose_tells_what_was_filled_in_and_how_long_it_took() {
    let output = ask_for(0, SHOP, &["blog/api", "shop/api", "--verbose"]);
    assert!(
        output.stderr.contains("namespace blog"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("note: loaded 5 objects in"),
        "{}",
        output.stderr
    );
    assert_eq!(ask_for(0, SHOP, &["blog/api", "shop/api"]).stderr, "");
}

#[test]
fn the_kernel_is_for_root() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tortie"));
    command.env_clear().uid(65534);
    command.args(["why", "a/b", "c/d", "--live"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("which is for root alone"), "{said}");
}

#[test]
fn help_has_examples() {
    let help = crate::cli::program::Tortie::with_variables(Vec::new()).ok(&["why", "--help"]);
    for piece in [
        "Examples:",
        "--batch",
        "svc/shop/db",
        "Exit code: 0 allowed, 2 denied, 1 error",
    ] {
        assert!(help.contains(piece), "{help}");
    }
}
