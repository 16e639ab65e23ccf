//! Admission webhooks for custom resources of the group that clients see.

use std::path::Path;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tortie_api::crd::{self, Group};
use tortie_apiserver::webhooks::{Settings, run};
use tortie_testkit::{KubeApiServer, Output};

use crate::aggregated::support::{
    apply, client_of, eventually, free_address, issue, over_tls, policy, request, tier,
};

const RESOURCE: &str = "networkpolicies.projectcalico.org";

/// As in Calico's manifest, but for where the server is.
fn configuration(address: std::net::SocketAddr, folder: &Path) -> Value {
    let bundle = std::fs::read(folder.join("ca.crt")).unwrap();
    let bundle = serde_json::to_value(k8s_openapi::ByteString(bundle)).unwrap();
    let webhook = |name: &str, path: &str, operations: &[&str], resources: &[&str]| {
        json!({
            "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5,
            "failurePolicy": "Fail",
            "clientConfig": {"url": format!("https://{address}{path}"), "caBundle": bundle},
            "rules": [{
                "apiGroups": ["projectcalico.org"], "apiVersions": ["v3"], "operations": operations,
                "resources": resources, "scope": "*",
            }],
        })
    };
    let policies = [
        "networkpolicies",
        "globalnetworkpolicies",
        "stagednetworkpolicies",
        "stagedglobalnetworkpolicies",
    ];
    let all = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "calico-webhooks"},
        "webhooks": [
            webhook("tiered-rbac.projectcalico.org", "/rbac", &all, &policies),
            webhook("cluster-info.api.projectcalico.org", "/cluster-info", &all[..3], &["clusterinformations"]),
        ],
    })
}

fn create(kubernetes: &KubeApiServer, user: &str, object: &Value) -> Output {
    let user = format!("--as={user}");
    let args = ["create", "--validate=false", "-f", "-", user.as_str()];
    kubernetes
        .kubectl_stdin(&args, &object.to_string())
        .unwrap()
}

fn rights(kubernetes: &KubeApiServer) {
    let rule = |resources: &[&str], names: &[&str], verbs: &[&str]| {
        let mut rule =
            json!({"apiGroups": ["projectcalico.org"], "resources": resources, "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rule
    };
    let gold = json!([
        rule(&["networkpolicies", "clusterinformations"], &[], &["*"]),
        rule(&["tiers"], &["gold", "none"], &["get"]),
        rule(&["tier.networkpolicies"], &["gold.*", "none.*"], &["*"]),
    ]);
    let account = json!([rule(&["clusterinformations"], &[], &["*"])]);
    for (name, rules, subject) in [
        (
            "gold",
            gold,
            json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "gail"}),
        ),
        (
            "node",
            account,
            json!({"kind": "ServiceAccount", "namespace": "calico-system", "name": "calico-node"}),
        ),
    ] {
        apply(
            kubernetes,
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": name}, "rules": rules,
            }),
        );
        apply(
            kubernetes,
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": name}, "subjects": [subject],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            }),
        );
    }
}

#[track_caller]
fn check_refused(output: &Output, text: &str) {
    assert!(!output.success(), "{output:?}");
    assert!(
        output.stderr.contains(text),
        "{:?} has no {text:?}",
        output.stderr
    );
}

#[test]
fn custom_resources_are_written_by_those_who_may() {
    let kubernetes = KubeApiServer::start().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for manifest in crd::manifests(Group::V3) {
        let args = ["create", "--validate=false", "-f", "-"];
        let created = kubernetes.kubectl_stdin(&args, &manifest.to_string());
        created.unwrap().into_stdout().unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    issue(folder.path());
    let address = free_address();
    let settings = Settings {
        address,
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
        client_authorities: None,
        namespace: "calico-system".to_owned(),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let client = runtime.block_on(client_of(kubernetes.kubeconfig()));
    let serving = runtime.spawn(run(settings, client, async {
        let _ = stopped.await;
    }));
    rights(&kubernetes);
    for name in ["gold", "silver"] {
        eventually("tiers can be made", || {
            let args = ["create", "--validate=false", "-f", "-"];
            let created = kubernetes.kubectl_stdin(&args, &tier(name).to_string());
            let created = created.unwrap();
            created.success().then_some(()).ok_or(created.stderr)
        });
    }
    apply(&kubernetes, &configuration(address, folder.path()));
    // The API server learns of webhooks a moment later.
    let denied = eventually("the webhook is asked", || {
        let created = create(&kubernetes, "gail", &policy("silver", "default", "dns"));
        if created.success() {
            let deleted = kubernetes.kubectl(&["delete", RESOURCE, "dns"]).unwrap();
            return Err(deleted.stdout);
        }
        Ok(created)
    });
    check_refused(
        &denied,
        "Error from server (Forbidden): error when creating \"STDIN\": admission webhook \
         \"tiered-rbac.projectcalico.org\" denied the request: Authorization failed: networkpolicies.projectcalico.org \
         \"dns\" is forbidden: User \"gail\" cannot create networkpolicies.projectcalico.org in tier \"silver\" and \
         namespace \"default\" (user cannot get tier)",
    );
    policies(&kubernetes);
    cluster_information(&kubernetes);
    drop(stop);
    runtime.block_on(serving).unwrap().unwrap();
}

fn policies(kubernetes: &KubeApiServer) {
    let created = create(kubernetes, "gail", &policy("gold", "default", "web"));
    assert!(created.success(), "{created:?}");
    check_refused(
        &create(kubernetes, "gail", &policy("none", "default", "db")),
        "denied the request: Tier \"none\" does not exist",
    );
    let run = |args: &[&str]| kubernetes.kubectl(args).unwrap();
    let patch = r#"{"spec": {"tier": "silver"}}"#;
    let moved = run(&[
        "patch",
        RESOURCE,
        "web",
        "--type=merge",
        "-p",
        patch,
        "--as=gail",
    ]);
    check_refused(
        &moved,
        "Authorization failed: networkpolicies.projectcalico.org \"web\" is forbidden",
    );
    // The administrator moves it, and then it is out of reach.
    assert!(run(&["patch", RESOURCE, "web", "--type=merge", "-p", patch]).success());
    let back = r#"{"spec": {"tier": "gold"}}"#;
    let moved = run(&[
        "patch",
        RESOURCE,
        "web",
        "--type=merge",
        "-p",
        back,
        "--as=gail",
    ]);
    check_refused(
        &moved,
        "Authorization failed for old tier: networkpolicies.projectcalico.org \"web\" is forbidden",
    );
    let deleted = run(&["delete", RESOURCE, "web", "--as=gail"]);
    check_refused(
        &deleted,
        "cannot delete networkpolicies.projectcalico.org in tier \"silver\"",
    );

    // A tier that goes takes no more policies.
    let hold = r#"{"metadata": {"finalizers": ["tortie.test/hold"]}}"#;
    assert!(run(&["patch", "tier", "gold", "--type=merge", "-p", hold]).success());
    assert!(run(&["delete", "tier", "gold", "--wait=false"]).success());
    check_refused(
        &create(kubernetes, "gail", &policy("gold", "default", "db")),
        "denied the request: Tier \"gold\" is being deleted",
    );
}

fn cluster_information(kubernetes: &KubeApiServer) {
    let information = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "ClusterInformation",
        "metadata": {"name": "default"}, "spec": {"clusterGUID": "x"},
    });
    check_refused(
        &create(kubernetes, "gail", &information),
        "denied the request: ClusterInformation is a read-only resource (user: gail)",
    );
    let account = "system:serviceaccount:calico-system:calico-node";
    let created = create(kubernetes, account, &information);
    assert!(created.success(), "{created:?}");
}

/// With authorities for clients, nobody without a certificate is served.
#[test]
fn clients_of_webhooks_may_have_to_show_certificates() {
    let kubernetes = KubeApiServer::shared();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    issue(folder.path());
    let address = free_address();
    let settings = Settings {
        address,
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
        client_authorities: Some(kubernetes.ca().to_owned()),
        namespace: "calico-system".to_owned(),
    };
    let client = runtime.block_on(client_of(kubernetes.kubeconfig()));
    let (_stop, stopped) = oneshot::channel::<()>();
    runtime.spawn(run(settings, client, async {
        let _ = stopped.await;
    }));
    let (certificate, key) = kubernetes.client_certificate("api-server", &[]).unwrap();
    let ask = |with: &[&str]| {
        let authority = folder.path().join("ca.crt");
        over_tls(&authority, address, &request("/readyz", ""), with)
    };
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    eventually("the webhooks are served", || {
        let answer = ask(&["-cert", &certificate, "-key", &key]);
        answer.ends_with("\r\nok").then_some(()).ok_or(answer)
    });
    assert_eq!(ask(&[]), "");
}
