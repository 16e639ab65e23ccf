//! Who may do what with policies, by their tiers.

use std::io::BufRead as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::aggregated::support::{Cluster, eventually, policy, tier};

const RESOURCE: &str = "networkpolicies.projectcalico.org";

pub(crate) fn role(name: &str, user: &str, rules: &Value) -> [Value; 2] {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules,
    });
    let subject = if user == "*" {
        json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"})
    } else {
        json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user})
    };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
    });
    [role, binding]
}

pub(crate) fn rule(resource: &str, names: &[&str], verbs: &[&str]) -> Value {
    let mut rule =
        json!({"apiGroups": ["projectcalico.org"], "resources": [resource], "verbs": verbs});
    if !names.is_empty() {
        rule["resourceNames"] = json!(names);
    }
    rule
}

/// Everybody passes the first check, as in Calico's own installation. `gail` may do all in the tier gold; `rita` may read
/// one policy there by its name; `nora` may write in gold but not see the tier.
fn roles(cluster: &Cluster) {
    let any = |resource: &str| rule(resource, &[], &["*"]);
    let all = json!([any("networkpolicies"), any("globalnetworkpolicies")]);
    let gold = json!([
        rule("tiers", &["gold"], &["get"]),
        rule("tier.networkpolicies", &["gold.*"], &["*"]),
    ]);
    let one = json!([
        rule("tiers", &["gold"], &["get"]),
        rule("tier.networkpolicies", &["web"], &["get"]),
    ]);
    let blind = json!([rule("tier.networkpolicies", &["gold.*"], &["*"])]);
    for objects in [
        role("calico-tiered-policy-passthrough", "*", &all),
        role("gold", "gail", &gold),
        role("one", "rita", &one),
        role("blind", "nora", &blind),
    ] {
        for object in &objects {
            cluster.apply(object);
        }
    }
}

#[track_caller]
fn check_refused(cluster: &Cluster, args: &[&str], text: &str) {
    let refused = cluster.refused(args);
    assert!(refused.contains(text), "{refused:?} has no {text:?}");
}

#[test]
fn policies_are_for_those_who_may_use_their_tiers() {
    let cluster = Cluster::start();
    roles(&cluster);
    for name in ["gold", "silver"] {
        cluster.apply(&tier(name));
    }
    for (tier, name) in [("gold", "web"), ("gold", "db"), ("silver", "dns")] {
        cluster.apply(&policy(tier, "default", name));
    }
    single_objects(&cluster);
    lists(&cluster);
    moves(&cluster);
    many_at_once(&cluster);
    watches_end_when_tiers_come(&cluster);
}

fn single_objects(cluster: &Cluster) {
    cluster.run(&["get", RESOURCE, "web", "--as=gail"]);
    cluster.run(&["get", RESOURCE, "web", "--as=rita"]);
    check_refused(
        cluster,
        &["get", RESOURCE, "dns", "--as=gail"],
        "Error from server (Forbidden): networkpolicies.projectcalico.org \"dns\" is forbidden: User \"gail\" cannot \
         get networkpolicies.projectcalico.org in tier \"silver\" and namespace \"default\" (user cannot get tier)",
    );
    check_refused(
        cluster,
        &["get", RESOURCE, "db", "--as=rita"],
        "networkpolicies.projectcalico.org \"db\" is forbidden: User \"rita\" cannot get \
         networkpolicies.projectcalico.org in tier \"gold\" and namespace \"default\"\n",
    );
    check_refused(
        cluster,
        &["delete", RESOURCE, "web", "--as=nora"],
        "User \"nora\" cannot delete networkpolicies.projectcalico.org in tier \"gold\" and namespace \"default\" \
         (user cannot get tier)",
    );
    let created = cluster.create(Some("gail"), &policy("gold", "default", "new"));
    assert!(created.success(), "{created:?}");
    cluster.run(&["delete", RESOURCE, "new", "--as=gail"]);
    let created = cluster.create(Some("gail"), &policy("silver", "default", "new"));
    let text = "networkpolicies.projectcalico.org \"new\" is forbidden: User \"gail\" cannot create \
                networkpolicies.projectcalico.org in tier \"silver\" and namespace \"default\" (user cannot get tier)";
    assert!(created.stderr.contains(text), "{created:?}");
    let applied = ["apply", "--server-side", "-f", "-", "--as=gail"];
    let applied = cluster
        .kubernetes
        .kubectl_stdin(&applied, &policy("silver", "default", "new").to_string());
    assert!(!applied.as_ref().unwrap().success(), "{applied:?}");
}

fn lists(cluster: &Cluster) {
    let names = |args: &[&str]| {
        let mut all = vec!["get", RESOURCE, "-o", "name"];
        all.extend(args);
        let names = cluster.run(&all);
        let names = names.lines().map(|line| line.rsplit('/').next().unwrap());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["db", "dns", "web"]);
    assert_eq!(names(&["--as=gail"]), ["db", "web"]);
    assert_eq!(names(&["--as=gail", "-A"]), ["db", "web"]);
    assert_eq!(
        names(&["--as=gail", "--field-selector=spec.tier=gold"]),
        ["db", "web"]
    );
    assert_eq!(
        names(&["--as=gail", "-l", "projectcalico.org/tier in (gold)"]),
        ["db", "web"]
    );
    let list = ["get", RESOURCE, "--as=gail"];
    check_refused(
        cluster,
        &[
            &list[..],
            &["-l", "projectcalico.org/tier in (gold,silver)"],
        ]
        .concat(),
        "networkpolicies.projectcalico.org is forbidden: User \"gail\" cannot list networkpolicies.projectcalico.org \
         in tier \"silver\" and namespace \"default\" (user cannot get tier)",
    );
    check_refused(
        cluster,
        &[&list[..], &["--field-selector=spec.tier!=gold"]].concat(),
        "non equal selector operator not supported for field spec.tier",
    );
    check_refused(
        cluster,
        &[&list[..], &["-l", "projectcalico.org/tier!=gold"]].concat(),
        "non equal selector operator not supported for label projectcalico.org/tier",
    );
    check_refused(
        cluster,
        &["get", RESOURCE, "--as=nora"],
        "networkpolicies.projectcalico.org is forbidden: operation on Calico tiered policy is forbidden",
    );
}

/// Whoever moves a policy needs both tiers.
fn moves(cluster: &Cluster) {
    let patch = r#"{"spec": {"tier": "silver"}}"#;
    check_refused(
        cluster,
        &[
            "patch",
            RESOURCE,
            "web",
            "--type=merge",
            "-p",
            patch,
            "--as=gail",
        ],
        "User \"gail\" cannot patch networkpolicies.projectcalico.org in tier \"silver\" and namespace \"default\" \
         (user cannot get tier)",
    );
    let patch = r#"{"spec": {"tier": "gold"}}"#;
    check_refused(
        cluster,
        &[
            "patch",
            RESOURCE,
            "dns",
            "--type=merge",
            "-p",
            patch,
            "--as=gail",
        ],
        // It is read first.
        "cannot get networkpolicies.projectcalico.org in tier \"silver\"",
    );
    let field = ["-o", "jsonpath={.spec.tier}"];
    let tier = cluster.run(&[&["get", RESOURCE, "web"], &field[..]].concat());
    assert_eq!(tier, "gold");
}

/// A deletion of many is about what the user may delete.
fn many_at_once(cluster: &Cluster) {
    let path = "/apis/projectcalico.org/v3/namespaces/default/networkpolicies";
    let deleted = cluster.run(&["delete", "--raw", path, "--as=gail"]);
    let deleted: Value = serde_json::from_str(&deleted).unwrap();
    assert_eq!(deleted["items"].as_array().unwrap().len(), 2, "{deleted}");
    let left = cluster.run(&["get", RESOURCE, "-o", "jsonpath={.items[*].metadata.name}"]);
    assert_eq!(left, "dns");
}

fn watches_end_when_tiers_come(cluster: &Cluster) {
    cluster.apply(&policy("gold", "default", "web"));
    let path = "/apis/projectcalico.org/v3/networkpolicies?watch=1";
    let mut watch = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(cluster.kubernetes.kubeconfig())
        .args(["get", "--raw", path, "--as=gail"])
        .env("HOME", cluster.folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(watch.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["object"]["metadata"]["name"], "web", "{first}");
    cluster.run(&["delete", RESOURCE, "dns"]);
    cluster.run(&["delete", "tier", "silver"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(
        watch.try_wait().unwrap().is_none(),
        "a deleted tier ended it"
    );
    cluster.apply(&tier("bronze"));
    eventually("the watch ends", || match watch.try_wait().unwrap() {
        Some(_) => Ok(()),
        None => Err("it goes on".to_owned()),
    });
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(rest.is_empty(), "{rest:?}");
}
