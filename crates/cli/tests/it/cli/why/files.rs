//! Worlds made of files.

use super::{SHOP, allowed, ask_for, denied, json};
use crate::cli::program::{Tortie, fixture};

/// Manifests as people write them: no nodes, no addresses, no namespaces, no service accounts.
const PLAIN: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, image: i, ports: [{name: http, containerPort: 80}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: other, labels: {app: client}}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: other}
spec: {hostNetwork: true, containers: [{name: c, image: i}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {}
  ingress:
  - from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}]
    ports: [{port: http}]
";

#[test]
fn what_plain_manifests_leave_out_is_filled_in() {
    let text = allowed(
        PLAIN,
        &["other/client", "default/web", "-p", "TCP", "--port", "80"],
    );
    assert!(text.contains("made up)"), "{text}");
    denied(
        PLAIN,
        &["other/client", "default/web", "-p", "TCP", "--port", "81"],
    );
    allowed(
        PLAIN,
        &[
            "other/client",
            "default/web",
            "-p",
            "TCP",
            "--port",
            "80",
            "--ip-version",
            "6",
        ],
    );
    denied(
        PLAIN,
        &["other/agent", "default/web", "-p", "TCP", "--port", "80"],
    );
    allowed(PLAIN, &["default/web", "other/agent"]);
}

#[test]
fn service_accounts_are_filled_in() {
    let policy = "\
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: by-account, namespace: default}
spec:
  types: [Ingress]
  ingress: [{action: Allow, source: {serviceAccounts: {names: [robot]}, namespaceSelector: all()}}]
";
    let robot = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: robot, namespace: other}\nspec: {serviceAccountName: robot, containers: []}\n";
    let web = PLAIN.split("---").next().unwrap();
    let client = PLAIN.split("---").nth(1).unwrap();
    let world = format!("{web}---{client}{robot}{policy}");
    allowed(&world, &["other/robot", "default/web"]);
    denied(&world, &["other/client", "default/web"]);
}

#[test]
fn files_folders_lists_and_json_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (pods, policy) = SHOP.rsplit_once("---\n").unwrap();
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(pods).unwrap();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": documents});
    std::fs::write(at("a.json"), list.to_string()).unwrap();
    std::fs::write(at("b.yaml"), policy).unwrap();
    std::fs::write(at("ignored.txt"), "nonsense: [").unwrap();
    std::fs::create_dir(at("more")).unwrap();
    std::fs::write(at("more/c.yaml"), super::deny_all("shop")).unwrap();
    let tortie = Tortie::with_variables(Vec::new());
    let (folder, list, policy) = (at(""), at("a.json"), at("b.yaml"));
    let code = |files: &[&str], to: &str| {
        let mut arguments = vec!["why"];
        for file in files {
            arguments.extend(["-f", file]);
        }
        arguments.extend(["shop/api", to, "-p", "TCP", "--port", "5432"]);
        tortie.run(&arguments).code
    };
    assert_eq!(code(&[&folder], "shop/db"), 0);
    assert_eq!(code(&[&list, &policy], "shop/db"), 0);
    assert_eq!(code(&[&folder, "-R"], "shop/db"), 1, "-R is no file");
    let arguments = ["why", "-R", "-f", &folder, "blog/api", "shop/api"];
    assert_eq!(tortie.run(&arguments).code, 2);
    let arguments = ["why", "-f", &folder, "blog/api", "shop/api"];
    assert_eq!(tortie.run(&arguments).code, 0);
}

#[test]
fn every_kind_of_calico_is_taken() {
    let text = std::fs::read_to_string(fixture("all-kinds.yaml")).unwrap();
    let output = ask_for(0, &format!("{SHOP}---\n{text}"), &["10.9.9.9", "10.9.9.8"]);
    assert_eq!(output.stderr, "");
}

#[test]
fn objects_of_the_stored_group_are_taken() {
    let policy = "\
---
apiVersion: crd.projectcalico.org/v1
kind: GlobalNetworkPolicy
metadata: {name: default.deny, annotations: {projectcalico.org/metadata: '{\"name\": \"deny\"}'}}
spec: {selector: app == 'api', types: [Ingress]}
---
apiVersion: crd.projectcalico.org/v1
kind: GlobalNetworkSet
metadata: {name: set, annotations: {projectcalico.org/metadata: '{\"labels\": {\"trusted\": \"yes\"}}'}}
spec: {nets: [203.0.113.0/24]}
---
apiVersion: crd.projectcalico.org/v1
kind: NetworkPolicy
metadata: {name: default.trusted, namespace: shop}
spec: {order: 1, selector: app == 'api', types: [Ingress], ingress: [{action: Allow, source: {selector: trusted == 'yes', namespaceSelector: global()}}]}
";
    let world = format!("{SHOP}{policy}");
    denied(&world, &["shop/db", "shop/api"]);
    allowed(&world, &["203.0.113.7", "shop/api"]);
}

#[test]
fn objects_with_problems_are_an_error_unless_they_are_to_be_ignored() {
    let bad = "\
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: bad}
spec: {selector: app = 'x', types: [Ingress]}
---
apiVersion: v1
kind: Pod
metadata: {name: odd, namespace: shop}
spec: {nodeName: 7, containers: []}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: slip, namespace: blog}
spec: {podSelecter: {matchLabels: {app: none}}, policyTypes: [Ingress]}
---
just: text
";
    let world = format!("{SHOP}{bad}");
    let question = ["shop/api", "shop/api"];
    let refused = ask_for(1, &world, &question);
    assert_eq!(refused.stdout, "");
    let all = "4 of 9 objects cannot be used as they are written";
    assert!(refused.stderr.contains(all), "{}", refused.stderr);
    let ignored = ask_for(0, &world, &[&question[..], &["--ignore-invalid"]].concat());
    for (word, output) in [("error", &refused), ("warning", &ignored)] {
        for piece in [
            "document 6: GlobalNetworkPolicy(bad): spec.selector = \"app = 'x'\"",
            "document 7: Pod(shop/odd): spec.nodeName = 7",
            "document 8: NetworkPolicy(blog/slip): spec.podSelecter = ",
            "document 9: (no kind)((no name)): object = {\"just\":\"text\"}",
        ] {
            let piece = format!("{word}: stdin: {piece}");
            assert!(
                output.stderr.contains(&piece),
                "no `{piece}` in\n{}",
                output.stderr
            );
        }
    }
}

#[test]
fn other_kinds_are_left_out_with_one_warning() {
    let other = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
    let output = ask_for(
        0,
        &format!("{SHOP}{other}{other}"),
        &["shop/api", "blog/api"],
    );
    assert_eq!(
        output.stderr,
        "warning: 4 objects are left out, because their kinds have no part in policy: 2 apps/v1 Deployment, 2 v1 ConfigMap\n"
    );
}

#[test]
fn the_tiers_of_kubernetes_always_exist() {
    let policy = "\
---
apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: baseline}
spec:
  tier: Baseline
  priority: 1
  subject: {namespaces: {}}
  ingress: [{action: Deny, from: [{namespaces: {}}]}]
";
    let world = format!("{SHOP}{policy}");
    let answer = json(2, &world, &["shop/api", "blog/api"]);
    assert_eq!(answer["ingress"]["by"]["tier"], "kube-baseline");
    allowed(
        &world,
        &["shop/api", "shop/db", "-p", "TCP", "--port", "5432"],
    );
}

#[test]
fn services_of_rules_are_known_by_their_endpoint_slices() {
    let objects = "\
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.2]}]
ports: [{protocol: TCP, port: 5432}]
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: to-db, namespace: shop}
spec:
  selector: app == 'api'
  types: [Egress]
  egress: [{action: Allow, destination: {services: {name: db, namespace: shop}}}]
";
    let world = format!("{SHOP}{objects}");
    allowed(
        &world,
        &["shop/api", "shop/db", "-p", "TCP", "--port", "5432"],
    );
    denied(
        &world,
        &["shop/api", "blog/api", "-p", "TCP", "--port", "5432"],
    );
}

#[test]
fn of_an_object_given_twice_the_last_counts() {
    let again = super::pod("shop/db", "n9", &["10.0.0.9"], "").replace("app: db", "app: open");
    let text = allowed(&format!("{SHOP}{again}"), &["blog/api", "shop/db"]);
    assert!(text.contains("shop/db (10.0.0.9)"), "{text}");
}

#[test]
fn a_policy_with_egress_rules_covers_egress_without_saying_so() {
    let policy = "\
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: out, namespace: shop}
spec:
  podSelector: {matchLabels: {app: api}}
  egress: [{ports: [{protocol: UDP, port: 53}]}]
";
    let world = format!("{SHOP}{policy}");
    let to_db = |port| ["shop/api", "shop/db", "-p", "TCP", "--port", port];
    allowed(SHOP, &to_db("5432"));
    denied(&world, &to_db("5432"));
}
