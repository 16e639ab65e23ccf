//! What answers look like, and the exit codes.

use super::{SHOP, allowed, ask_for, denied, json};

const DB: [&str; 4] = ["--protocol", "TCP", "--port", "5432"];

fn with_db(from: &'static str) -> Vec<&'static str> {
    [from, "shop/db"].into_iter().chain(DB).collect()
}

#[test]
fn the_verdict_comes_first_then_what_decided_then_the_trace() {
    let text = allowed(SHOP, &with_db("shop/api"));
    let expected = "\
ALLOWED: shop/api (10.0.0.1) to shop/db (10.0.0.2), TCP port 5432

Egress of shop/api: allowed
  Allow by rule 0 of profile kns.shop: no policy decides
Ingress of shop/db: allowed
  Allow by rule 0 of KubernetesNetworkPolicy shop/db in tier default
";
    assert!(text.starts_with(expected), "{text}");
    let text = denied(SHOP, &with_db("blog/api"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "DENIED: blog/api (10.0.0.3) to shop/db (10.0.0.2), TCP port 5432"
    );
    assert_eq!(lines[4], "Ingress of shop/db: denied");
    assert!(lines[5].contains("end of tier default"), "{text}");
    let trace = text
        .split("Ingress of shop/db, step by step")
        .nth(1)
        .unwrap();
    assert!(trace.contains("tier default"), "{text}");
    assert!(
        trace.contains("KubernetesNetworkPolicy shop/db\n"),
        "{text}"
    );
    assert!(
        trace.contains("rule 0 Allow: no, source blog/api"),
        "{text}"
    );
    assert!(trace.contains("end of tier: Deny"), "{text}");
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
fn help_has_examples() {
    let help = crate::program::Tortie::with_variables(Vec::new()).ok(&["why", "--help"]);
    for piece in [
        "Examples:",
        "--batch",
        "Exit code: 0 allowed, 2 denied, 1 error",
    ] {
        assert!(help.contains(piece), "{help}");
    }
}
