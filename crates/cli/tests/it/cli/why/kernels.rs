//! Kernels that deny whatever rules say.

use std::fmt::Write as _;

use serde_json::json;

use super::{SHOP, allowed, ask_for, denied, json as ask_json};

/// The shop, and a policy that lets anybody use the database, after so many rules that need 21 of nftables each.
fn with_rules(rules: usize) -> String {
    let mut world = format!(
        "{SHOP}---\n\
         apiVersion: projectcalico.org/v3\n\
         kind: NetworkPolicy\n\
         metadata: {{name: large, namespace: shop}}\n\
         spec:\n  order: 1\n  selector: app == 'db'\n  types: [Ingress]\n  ingress:\n"
    );
    let ports = |end: char| {
        (0..10)
            .map(|n| format!("{end}{n}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (from, to) = (ports('s'), ports('d'));
    for _ in 0..rules {
        let _ = writeln!(
            world,
            "  - {{action: Allow, protocol: TCP, source: {{ports: [{from}]}}, destination: {{ports: [{to}]}}}}"
        );
    }
    world + "  - {action: Allow}\n"
}

const IPTABLES: &str = "---\n\
    apiVersion: projectcalico.org/v3\n\
    kind: FelixConfiguration\n\
    metadata: {name: default}\n\
    spec: {nftablesMode: Disabled}\n";

const QUESTION: [&str; 2] = ["blog/api", "shop/db"];

#[test]
fn a_policy_with_too_many_rules_denies() {
    let answer = ask_json(2, &with_rules(953), &QUESTION);
    assert_eq!(answer["verdict"], "Deny");
    assert_eq!(
        answer["ingress"]["by"],
        json!({
            "type": "denial",
            "object": "NetworkPolicy shop/large",
            "policy": {"kind": "NetworkPolicy", "namespace": "shop", "name": "large"},
            "tier": "default",
            "action": "Deny",
            "because": {"type": "tooManyRules", "rules": 20_014, "limit": 20_000, "dataplane": "nftables"},
        })
    );
    allowed(&with_rules(952), &QUESTION);
}

/// iptables needs 24 rules for each of them.
#[test]
fn the_data_plane_that_is_configured_counts() {
    let world = with_rules(900);
    allowed(&world, &QUESTION);
    let question = [&QUESTION[..], &["--explain"]].concat();
    let text = denied(&(world + IPTABLES), &question);
    let because = "Deny by NetworkPolicy shop/large in tier default, whatever its rules say: \
                   it needs 21601 rules in one chain of iptables, and 20000 is the most";
    assert!(text.contains(because), "{text}");
    assert!(
        text.contains("NetworkPolicy shop/large: denies, whatever its rules say"),
        "{text}"
    );
}

#[test]
fn policies_on_ports_deny_an_authentication_header_of_ipv6() {
    let policy = "---\n\
        apiVersion: projectcalico.org/v3\n\
        kind: NetworkPolicy\n\
        metadata: {name: ports, namespace: shop}\n\
        spec:\n  order: 1\n  selector: app == 'db'\n  types: [Ingress]\n  ingress:\n  \
        - {action: Deny, protocol: TCP, destination: {ports: [8080]}}\n  \
        - {action: Allow}\n";
    let world = [SHOP, policy].concat();
    let header = |protocol, version| {
        [
            "shop/api",
            "shop/db",
            "-p",
            protocol,
            "--ip-version",
            version,
        ]
    };
    for protocol in ["ah", "51"] {
        let output = ask_for(2, &world, &header(protocol, "6"));
        let by = "Deny by rule 0 of NetworkPolicy shop/ports in tier default";
        assert!(output.stdout.contains(by), "{}", output.stdout);
        let note = "note: rules cannot look behind an authentication header of IPv6";
        assert!(output.stderr.contains(note), "{}", output.stderr);
        allowed(&world, &header(protocol, "4"));
    }
    let legacy = IPTABLES.replace("Disabled", "Disabled, iptablesBackend: Legacy");
    let output = ask_for(0, &(world + &legacy), &header("AH", "6"));
    let note = "note: legacy iptables looks through an authentication header";
    assert!(output.stderr.contains(note), "{}", output.stderr);
}
