//! Policies of an endpoint, and endpoints of a policy.

use serde_json::json;

use super::{SHOP, allowed, ask_for, json, refused};

const POLICIES: &str = "\
---
apiVersion: projectcalico.org/v3
kind: Tier
metadata: {name: security}
spec: {order: 100}
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: security.first}
spec: {tier: security, order: 1, selector: has(app), types: [Ingress, Egress], ingress: [{action: Pass}], egress: [{action: Pass}]}
---
apiVersion: projectcalico.org/v3
kind: StagedGlobalNetworkPolicy
metadata: {name: trial}
spec: {order: 2, selector: app == 'db', types: [Egress]}
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: same, namespace: shop}
spec: {order: 3, selector: app == 'api', types: [Ingress]}
";

fn world() -> String {
    format!("{SHOP}{POLICIES}")
}

#[test]
fn policies_of_an_endpoint_come_in_order() {
    let text = allowed(&world(), &["--policies", "shop/db"]);
    let columns = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = text.lines().map(columns).collect();
    assert_eq!(rows[0], ["TIER", "ORDER", "POLICY", "GOVERNS", "REMARK"]);
    assert_eq!(
        rows[1],
        [
            "security",
            "1",
            "GlobalNetworkPolicy",
            "security.first",
            "Ingress,",
            "Egress"
        ]
    );
    assert_eq!(
        rows[2][..4],
        ["default", "2", "StagedGlobalNetworkPolicy", "trial"]
    );
    assert!(text.contains("staged: not enforced"), "{text}");
    assert_eq!(
        rows[3],
        [
            "default",
            "1000",
            "KubernetesNetworkPolicy",
            "shop/db",
            "Ingress"
        ]
    );
    let value = json(0, &world(), &["--policies", "10.0.0.2"]);
    assert_eq!(value["endpoint"], "shop/db");
    let policies = value["policies"].as_array().unwrap();
    let names: Vec<&serde_json::Value> = policies.iter().map(|p| &p["policy"]["name"]).collect();
    assert_eq!(json!(names), json!(["security.first", "trial", "db"]));
    assert_eq!(policies[0]["types"], json!(["Ingress", "Egress"]));
    assert_eq!(policies[1]["staged"], true);
    assert_eq!(policies[2]["tier"], "default");
}

#[test]
fn an_endpoint_may_have_no_policies() {
    let text = allowed(SHOP, &["--policies", "blog/api"]);
    assert_eq!(text, "No policy applies to blog/api; its profiles decide\n");
    let text = allowed(SHOP, &["--policies", "203.0.113.7"]);
    assert_eq!(
        text,
        "203.0.113.7 has no endpoint that policy could apply to\n"
    );
    refused(
        SHOP,
        &["--policies", "shop/bd"],
        &["did you mean `shop/db`?"],
    );
}

#[test]
fn endpoints_of_a_policy_are_listed() {
    let world = world();
    for policy in ["gnp/security.first", "globalnetworkpolicies/security.first"] {
        let text = allowed(&world, &["--endpoints", policy]);
        assert_eq!(text, "blog/api\nshop/api\nshop/db\n", "{policy}");
    }
    let value = json(0, &world, &["--endpoints", "np/shop/same"]);
    assert_eq!(value["endpoints"], json!(["shop/api"]));
    assert_eq!(value["policy"]["kind"], "NetworkPolicy");
    // A policy of Kubernetes, by each of its names.
    for policy in [
        "networkpolicy/shop/db",
        "knp/shop/db",
        "np/shop/knp.default.db",
    ] {
        let value = json(0, &world, &["--endpoints", policy]);
        assert_eq!(value["endpoints"], json!(["shop/db"]), "{policy}");
        assert_eq!(value["policy"]["kind"], "KubernetesNetworkPolicy");
    }
    assert_eq!(allowed(&world, &["--endpoints", "sgnp/trial"]), "shop/db\n");
}

#[test]
fn an_unknown_policy_is_named_with_what_is_near() {
    let world = world();
    refused(
        &world,
        &["--endpoints", "np/same"],
        &[
            "there is no policy `np/same`",
            "did you mean `np/shop/same`",
        ],
    );
    refused(
        &world,
        &["--endpoints", "gnp/security.frist"],
        &["`gnp/security.first`"],
    );
    refused(
        &world,
        &["--endpoints", "nonsense/x"],
        &["'nonsense' is not supported"],
    );
    refused(
        &world,
        &["--endpoints", "ippool/x"],
        &["IPPool is not a kind of policy"],
    );
    refused(&world, &["--endpoints", "same"], &["must be KIND/NAME"]);
    refused(&world, &["--endpoints", "gnp/shop/x"], &["cluster-wide"]);
}

#[test]
fn a_policy_may_have_no_endpoints() {
    let nobody = "---\napiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: nobody}\nspec: {selector: app == 'none'}\n";
    let output = ask_for(
        0,
        &format!("{SHOP}{nobody}"),
        &["--endpoints", "gnp/nobody"],
    );
    assert_eq!(
        output.stdout,
        "GlobalNetworkPolicy nobody applies to no endpoint\n"
    );
}
