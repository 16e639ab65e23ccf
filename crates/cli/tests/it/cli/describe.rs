//! `tortie describe`: a resource, and what has to do with it.

use crate::cli::program::{Tortie, fixture};

/// A namespace's set and endpoint, and a policy about both.
const SHOP: &str = "\
apiVersion: projectcalico.org/v3
kind: WorkloadEndpoint
metadata: {name: n1-k8s-db-eth0, namespace: shop, labels: {app: db}}
spec: {node: n1, orchestrator: k8s, pod: db, endpoint: eth0, interfaceName: cali1, ipNetworks: [10.65.0.70/32], profiles: [base]}
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: db, namespace: shop}
spec: {selector: app == 'db', ingress: [{action: Allow, source: {selector: kind == 'partner'}}]}
";

/// Describes something, and expects these lines in this order.
#[track_caller]
fn check(tortie: &Tortie, arguments: &[&str], expected: &[&str]) {
    let text = tortie.ok(&[&["describe"], arguments].concat());
    let mut lines = text.lines();
    for line in expected {
        assert!(lines.any(|found| found == *line), "no `{line}` in\n{text}");
    }
}

#[test]
fn a_resource_is_shown_with_what_has_to_do_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    for file in ["all-kinds.yaml", "without-kubernetes.yaml"] {
        tortie.ok(&["apply", "-f", &fixture(file).display().to_string()]);
    }
    tortie.ok_with_input(&["apply", "-f", "-"], SHOP);

    let policy = [
        "Name:         db",
        "Namespace:    shop",
        "Kind:         NetworkPolicy",
        "Labels:       projectcalico.org/tier=default",
        "Annotations:  <none>",
        "Spec:",
        "  selector: app == 'db'",
        "Applies to:",
        "  shop/db (eth0 on node n1)",
    ];
    check(&tortie, &["np", "db", "-n", "shop"], &policy);
    check(
        &tortie,
        &["np/frontend", "-n", "shop"],
        &["Applies to:", "  <none>"],
    );
    let endpoint = [
        "Policies in order:",
        "  NetworkPolicy(shop/db) in tier default (ingress)",
    ];
    check(&tortie, &["wep", "n1-k8s-db-eth0", "-n", "shop"], &endpoint);
    let set = ["Selected by:", "  NetworkPolicy(shop/db) ingress[0].source"];
    check(&tortie, &["networkset", "partners", "-n", "shop"], &set);
    check(&tortie, &["gns"], &["Selected by:", "  <none>"]);
    let profile = [
        "Endpoints:",
        "  shop/db (eth0 on node n1)",
        "  host endpoint n1-eth0 (on node n1)",
    ];
    check(&tortie, &["profile", "base"], &profile);
    let tier = [
        "Policies in order:",
        "  NetworkPolicy(shop/frontend) (order 10.5)",
    ];
    check(&tortie, &["tier", "security"], &tier);
    let pool = [
        "Usage:",
        "  1 of 65536 addresses in use, 4 reserved, 65531 free",
        "Blocks:",
        "  10.65.0.64/30: 1 of 4 in use, nobody's",
    ];
    check(&tortie, &["ippool", "pods"], &pool);
    let node = [
        "Blocks:",
        "  10.65.0.64/26",
        "Endpoints:",
        "  WorkloadEndpoint(shop/n1-k8s-db-eth0) 10.65.0.70/32",
        "  HostEndpoint(n1-eth0) 10.1.0.1",
    ];
    check(&tortie, &["node", "n1"], &node);
    check(
        &tortie,
        &["bgpfilter"],
        &["Used by:", "  BGPPeer(rack-switch)"],
    );
    // Several, with a line between them.
    check(
        &tortie,
        &["np", "-A"],
        &["Name:         db", "---", "Name:         frontend"],
    );
}

#[test]
fn what_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    for arguments in [&["describe", "np", "x"][..], &["describe", "np"]] {
        let output = tortie.run(arguments);
        assert_eq!((output.code, &*output.stdout), (1, ""), "{}", output.stderr);
    }
}
