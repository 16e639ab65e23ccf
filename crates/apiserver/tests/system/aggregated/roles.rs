//! Roles mean what they mean to a real kube-apiserver.

use std::sync::Arc;

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tortie_apiserver::access::{Attributes, Authorize as _, Roles, User};
use tortie_apiserver::options::WriteOptions;
use tortie_apiserver::service::{Unguarded, Write};
use tortie_apiserver::standalone::{self, Standalone};
use tortie_client::Client;
use tortie_store::embedded::EmbeddedStore;
use tortie_testkit::KubeApiServer;

use crate::aggregated::support::{apply, client_of};

const GROUP: &str = "rbac.authorization.k8s.io";

fn rule(group: &str, resource: &str, names: &[&str], verb: &str) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": [verb]})
}

/// For each rule a role of the cluster, and a binding for a user of the same name: everywhere, or in the namespace
/// `default` for names that begin with `in-`.
fn objects() -> Vec<Value> {
    let rules = [
        ("all", rule("*", "*", &[], "*")),
        ("core", rule("", "*", &[], "get")),
        ("verbs", rule("", "pods", &[], "*")),
        ("groups", rule("*", "pods", &[], "get")),
        ("part", rule("", "pods/status", &[], "get")),
        ("parts", rule("", "*/status", &[], "get")),
        ("no-pattern", rule("", "pods/*", &[], "get")),
        ("named", rule("", "pods", &["web"], "get")),
        ("in-all", rule("*", "*", &[], "*")),
        ("in-named", rule("", "pods", &["web", "db"], "get")),
        ("in-namespaces", rule("", "namespaces", &[], "get")),
        (
            "tier",
            rule(
                "projectcalico.org",
                "tier.networkpolicies",
                &["gold.*"],
                "create",
            ),
        ),
        (
            "path",
            json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}),
        ),
        (
            "paths",
            json!({"nonResourceURLs": ["/api/*"], "verbs": ["*"]}),
        ),
        (
            "all-paths",
            json!({"nonResourceURLs": ["*"], "verbs": ["get"]}),
        ),
        (
            "in-paths",
            json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
        ),
    ];
    let mut objects = Vec::new();
    for (name, rule) in &rules {
        objects.push(json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
            "metadata": {"name": format!("test-{name}")}, "rules": [rule],
        }));
        let subjects = json!([
            {"apiGroup": GROUP, "kind": "User", "name": name},
            {"apiGroup": GROUP, "kind": "Group", "name": format!("group-{name}")},
            {"kind": "ServiceAccount", "name": name, "namespace": "other"},
        ]);
        let role =
            json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": format!("test-{name}")});
        let metadata = json!({"name": format!("test-{name}")});
        objects.push(if name.starts_with("in-") {
            json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding",
                "metadata": {"name": format!("test-{name}"), "namespace": "default"},
                "subjects": subjects, "roleRef": role,
            })
        } else {
            json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
                "metadata": metadata, "subjects": subjects, "roleRef": role,
            })
        });
    }
    objects
}

fn users() -> Vec<User> {
    let names: Vec<String> = objects()
        .iter()
        .filter_map(|object| object["subjects"][0]["name"].as_str().map(str::to_owned))
        .collect();
    let mut users = Vec::new();
    for name in names {
        let group = format!("group-{name}");
        let account = format!("system:serviceaccount:other:{name}");
        let stranger = format!("system:serviceaccount:default:{name}");
        for (name, groups) in [
            (name, vec![]),
            ("x".to_owned(), vec![group]),
            (account, vec![]),
            (stranger, vec![]),
        ] {
            users.push(User {
                name,
                groups,
                ..User::default()
            });
        }
    }
    users
}

fn wishes() -> Vec<Attributes<'static>> {
    let mut wishes = Vec::new();
    let get = |resource, subresource, namespace, name| Attributes {
        verb: "get",
        group: "",
        version: "v1",
        resource,
        subresource,
        namespace,
        name,
    };
    for namespace in [None, Some("default"), Some("other")] {
        for name in [None, Some("web"), Some("gold.*")] {
            wishes.push(get("pods", "", namespace, name));
        }
        wishes.push(get("pods", "status", namespace, Some("web")));
        wishes.push(get("nodes", "status", namespace, None));
        wishes.push(get("namespaces", "", namespace, Some("default")));
        wishes.push(get("*", "", namespace, None));
        wishes.push(get("pods/status", "", namespace, None));
        wishes.push(Attributes {
            verb: "delete",
            group: "apps",
            ..get("pods", "", namespace, None)
        });
        wishes.push(Attributes {
            verb: "create",
            group: "projectcalico.org",
            ..get("tier.networkpolicies", "", namespace, Some("gold.*"))
        });
        wishes.push(Attributes {
            verb: "*",
            group: "*",
            ..get("*", "", namespace, None)
        });
    }
    wishes
}

const PATHS: &[(&str, &str)] = &[
    ("get", "/metrics"),
    ("get", "/metrics/"),
    ("post", "/metrics"),
    ("get", "/api"),
    ("post", "/api/v1"),
    ("get", "*"),
];

async fn ours(objects: &[Value]) -> (tempfile::TempDir, Arc<Roles>) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(folder.path().join("data")).unwrap());
    let client = Client::new(Arc::clone(&store) as _);
    client.ensure_initialized("v1", "test").await.unwrap();
    let Standalone { service, roles } = standalone::open(&store).await.unwrap();
    let options = WriteOptions::default();
    for object in objects {
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_ascii_lowercase());
        let write = Write {
            of: service.registry().find(GROUP, "v1", &plural).unwrap(),
            namespace: object["metadata"]["namespace"].as_str(),
            is_status: false,
            options: &options,
            agent: "test",
            guard: &Unguarded,
        };
        service.create(write, object.clone()).await.unwrap();
    }
    (folder, roles)
}

/// Roles that somebody who has little wants to make, for all namespaces.
fn grants() -> Vec<Value> {
    let rules = [
        json!([rule("", "pods", &["web"], "get")]),
        json!([rule("", "pods", &[], "get")]),
        json!([rule("", "pods", &["web", "db", "web"], "get")]),
        json!([{"apiGroups": ["", "apps"], "resources": ["pods", "nodes/status"], "verbs": ["watch", "get", "list"]}]),
        json!([{"apiGroups": [""], "resources": ["nodes/status", "pods/status"], "verbs": ["get"]}]),
        json!([{"nonResourceURLs": ["/metrics", "/api/v1"], "verbs": ["get", "post"]}]),
        json!([rule("*", "*", &[], "*")]),
    ];
    let rules = rules.iter().enumerate();
    let role = |(number, rules)| {
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
            "metadata": {"name": format!("new-{number}")}, "rules": rules,
        })
    };
    rules.map(role).collect()
}

/// Beside what everybody has, `poor` may make roles and has the rules of three roles.
#[test]
fn they_are_given_away_as_in_kubernetes() {
    let kubernetes = KubeApiServer::start().unwrap();
    let own = json!([
        rule(GROUP, "clusterroles", &[], "create"),
        rule("", "pods", &["web"], "get"),
        rule("", "*/status", &[], "get"),
        json!({"nonResourceURLs": ["/api/*"], "verbs": ["get"]}),
    ]);
    let role = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": "poor"}, "rules": own,
    });
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "poor"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "poor"},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "poor"}],
    });
    let objects = [role, binding];
    for object in &objects {
        apply(&kubernetes, object);
    }
    let runtime = Runtime::new().unwrap();
    let (_folder, roles) = runtime.block_on(ours(&objects));
    let user = User {
        name: "poor".to_owned(),
        groups: vec!["system:authenticated".to_owned()],
        ..User::default()
    };
    let attributes = Attributes {
        verb: "create",
        group: GROUP,
        version: "v1",
        resource: "clusterroles",
        subresource: "",
        namespace: None,
        name: None,
    };
    let mut refused = 0;
    for role in grants() {
        let args = ["create", "--as=poor", "--filename=-"];
        let theirs = kubernetes.kubectl_stdin(&args, &role.to_string()).unwrap();
        let ours = runtime.block_on(roles.authorize_grant(&user, &attributes, None, &role));
        assert_eq!(
            theirs.success(),
            ours.is_ok(),
            "{role}: {theirs:?} {ours:?}"
        );
        if let Err(failure) = ours {
            assert!(
                theirs.stderr.contains(&failure.message),
                "{theirs:?} {failure}"
            );
            refused += 1;
        }
    }
    assert_eq!(refused, 5);
}

#[test]
fn they_allow_what_kubernetes_allows() {
    let kubernetes = KubeApiServer::start().unwrap();
    for object in objects() {
        apply(&kubernetes, &object);
    }
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let (_folder, roles) = ours(&objects()).await;
        let client = client_of(kubernetes.kubeconfig()).await;
        let api: Api<SubjectAccessReview> = Api::all(client);
        let ask = async |user: &User, objects: Option<ResourceAttributes>, path| {
            let review = SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(user.name.clone()),
                    groups: Some(user.groups.clone()),
                    resource_attributes: objects,
                    non_resource_attributes: path,
                    ..SubjectAccessReviewSpec::default()
                },
                ..SubjectAccessReview::default()
            };
            let review = api.create(&PostParams::default(), &review).await.unwrap();
            review.status.unwrap().allowed
        };
        let mut allowed = 0;
        for user in users() {
            for wish in wishes() {
                let text = |text: &str| Some(text.to_owned());
                let objects = ResourceAttributes {
                    verb: text(wish.verb),
                    group: text(wish.group),
                    version: text(wish.version),
                    resource: text(wish.resource),
                    subresource: text(wish.subresource),
                    namespace: wish.namespace.map(str::to_owned),
                    name: wish.name.map(str::to_owned),
                    ..ResourceAttributes::default()
                };
                let expected = ask(&user, Some(objects), None).await;
                let found = roles.authorize(&user, &wish).await.is_ok();
                assert_eq!(found, expected, "{user:?} {wish:?}");
                allowed += usize::from(found);
            }
            for (verb, path) in PATHS {
                let wish = NonResourceAttributes {
                    path: Some((*path).to_owned()),
                    verb: Some((*verb).to_owned()),
                };
                let expected = ask(&user, None, Some(wish)).await;
                let found = roles.authorize_path(&user, verb, path).await.is_ok();
                assert_eq!(found, expected, "{user:?} {verb} {path}");
                allowed += usize::from(found);
            }
        }
        assert!(allowed > 100, "{allowed}");
    });
}
