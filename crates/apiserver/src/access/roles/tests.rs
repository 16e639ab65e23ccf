use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..User::default()
    }
}

fn rule(groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "resourceNames": names, "verbs": verbs})
}

fn role(namespace: &str, name: &str, rules: &Value) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}, "rules": rules})
}

fn binding(namespace: &str, name: &str, role: (&str, &str), subject: &Value) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name},
        "roleRef": {"apiGroup": ROLE_GROUP, "kind": role.0, "name": role.1},
        "subjects": [subject],
    })
}

fn ann() -> Value {
    json!({"kind": "User", "name": "ann"})
}

const GET_WEB: Attributes<'static> = Attributes {
    verb: "get",
    group: "",
    version: "v1",
    resource: "pods",
    subresource: "",
    namespace: Some("shop"),
    name: Some("web"),
};

/// Whether a rule allows to get the pod `web`, or its status.
#[track_caller]
fn check(rule: &Value, allows_pod: bool, allows_status: bool) {
    let rule = PolicyRule::deserialize(rule).unwrap();
    let status = Attributes {
        subresource: "status",
        ..GET_WEB
    };
    let found = (
        allows(&rule, Action::Objects(&GET_WEB)),
        allows(&rule, Action::Objects(&status)),
    );
    assert_eq!(found, (allows_pod, allows_status), "{rule:?}");
}

#[test]
fn a_rule_allows_what_all_of_its_lists_have() {
    check(&rule(&[""], &["pods"], &[], &["get"]), true, false);
    check(&rule(&["*"], &["*"], &[], &["*"]), true, true);
    check(&rule(&[""], &["*"], &["web"], &["get"]), true, true);
    check(&rule(&[""], &["pods/status"], &[], &["get"]), false, true);
    check(&rule(&[""], &["*/status"], &[], &["get"]), false, true);
    check(&rule(&[""], &["pods/*"], &[], &["get"]), false, false);
    check(&rule(&[""], &["pods"], &["db"], &["get"]), false, false);
    check(&rule(&["apps"], &["pods"], &[], &["get"]), false, false);
    check(&rule(&[""], &["pods"], &[], &["list"]), false, false);
    check(&rule(&[""], &["pod"], &[], &["get"]), false, false);
    check(&rule(&[], &["pods"], &[], &["get"]), false, false);
    check(&rule(&[""], &[], &[], &["get"]), false, false);
    check(
        &json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
        false,
        false,
    );
}

#[test]
fn paths_may_end_in_a_star() {
    let check = |own: &str, path: &str, expected: bool| {
        let rule = json!({"nonResourceURLs": [own], "verbs": ["get"]});
        let rule = PolicyRule::deserialize(&rule).unwrap();
        let found = allows(&rule, Action::Path { verb: "get", path });
        assert_eq!(found, expected, "{own} {path}");
        assert!(!allows(&rule, Action::Path { verb: "put", path }));
    };
    check("/metrics", "/metrics", true);
    check("/metrics", "/metrics/", false);
    check("/api/*", "/api/v1", true);
    check("/api/*", "/api", false);
    check("/api*", "/apis", true);
    check("*", "/metrics", true);
    check("/a/*/b", "/a/x/b", false);
}

fn may(roles: &Roles, user: &User, attributes: &Attributes<'_>) -> bool {
    roles.allow(user, Action::Objects(attributes))
}

#[test]
fn rights_are_those_of_bindings_in_the_namespace_and_for_the_cluster() {
    let roles = Roles::default();
    let reading = json!([rule(&[""], &["pods"], &[], &["get"])]);
    roles.put(Native::ClusterRole, &role("", "reader", &reading));
    roles.put(Native::Role, &role("shop", "reader", &reading));
    let elsewhere = Attributes {
        namespace: Some("bank"),
        ..GET_WEB
    };
    let all = Attributes {
        namespace: None,
        ..GET_WEB
    };
    let who = user("ann", &["dev"]);
    let places = |roles: &Roles| [GET_WEB, elsewhere, all].map(|place| may(roles, &who, &place));
    assert_eq!(places(&roles), [false, false, false]);

    let group = json!({"kind": "Group", "name": "dev"});
    let in_shop = binding("shop", "b", ("ClusterRole", "reader"), &group);
    roles.put(Native::RoleBinding, &in_shop);
    assert_eq!(places(&roles), [true, false, false]);
    roles.remove(Native::RoleBinding, "shop", "b");
    assert_eq!(places(&roles), [false, false, false]);

    roles.put(
        Native::RoleBinding,
        &binding("shop", "b", ("Role", "reader"), &ann()),
    );
    assert_eq!(places(&roles), [true, false, false]);
    // The same binding, for somebody else.
    let bob = json!({"kind": "User", "name": "bob"});
    roles.put(
        Native::RoleBinding,
        &binding("shop", "b", ("Role", "reader"), &bob),
    );
    assert_eq!(places(&roles), [false, false, false]);

    let everywhere = binding("", "b", ("ClusterRole", "reader"), &ann());
    roles.put(Native::ClusterRoleBinding, &everywhere);
    assert_eq!(places(&roles), [true, true, true]);
    roles.remove(Native::ClusterRole, "", "reader");
    assert_eq!(places(&roles), [false, false, false]);
}

#[test]
fn service_accounts_are_of_a_namespace() {
    let roles = Roles::default();
    let reading = json!([rule(&[""], &["pods"], &[], &["get"])]);
    roles.put(Native::ClusterRole, &role("", "reader", &reading));
    let account = json!({"kind": "ServiceAccount", "name": "web"});
    let own = binding("shop", "b", ("ClusterRole", "reader"), &account);
    roles.put(Native::RoleBinding, &own);
    assert!(may(
        &roles,
        &user("system:serviceaccount:shop:web", &[]),
        &GET_WEB
    ));
    assert!(!may(
        &roles,
        &user("system:serviceaccount:bank:web", &[]),
        &GET_WEB
    ));
    assert!(!may(&roles, &user("web", &[]), &GET_WEB));
    let other = json!({"kind": "ServiceAccount", "name": "web", "namespace": "bank"});
    roles.put(
        Native::RoleBinding,
        &binding("shop", "b", ("ClusterRole", "reader"), &other),
    );
    assert!(may(
        &roles,
        &user("system:serviceaccount:bank:web", &[]),
        &GET_WEB
    ));
    assert!(!may(
        &roles,
        &user("system:serviceaccount:shop:web", &[]),
        &GET_WEB
    ));
}

#[test]
fn a_role_may_gather_those_with_a_label() {
    let roles = Roles::default();
    let who = user("ann", &[]);
    let gather = |name: &str, labels: &Value, by: &str| {
        json!({
            "metadata": {"name": name, "labels": labels},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {by: "true"}}]},
            // As in Kubernetes, these are not what counts.
            "rules": [rule(&["*"], &["*"], &[], &["*"])],
        })
    };
    roles.put(
        Native::ClusterRole,
        &gather("outer", &json!({}), "to-outer"),
    );
    roles.put(
        Native::ClusterRoleBinding,
        &binding("", "b", ("ClusterRole", "outer"), &ann()),
    );
    assert!(!may(&roles, &who, &GET_WEB));
    let mut part = role("", "part", &json!([rule(&[""], &["pods"], &[], &["get"])]));
    part["metadata"]["labels"] = json!({"to-inner": "true"});
    roles.put(Native::ClusterRole, &part);
    // They gather each other.
    let inner = gather(
        "inner",
        &json!({"to-outer": "true", "to-inner": "true"}),
        "to-inner",
    );
    roles.put(Native::ClusterRole, &inner);
    assert!(may(&roles, &who, &GET_WEB));
    part["metadata"]["labels"] = json!({});
    roles.put(Native::ClusterRole, &part);
    assert!(!may(&roles, &who, &GET_WEB));
}

#[test]
fn what_cannot_be_read_grants_nothing() {
    let roles = Roles::default();
    let all = json!([rule(&["*"], &["*"], &[], &["*"])]);
    let bound = binding("", "b", ("ClusterRole", "all"), &ann());
    roles.put(Native::ClusterRole, &role("", "all", &all));
    roles.put(Native::ClusterRoleBinding, &bound);
    assert!(may(&roles, &user("ann", &[]), &GET_WEB));
    for (native, object) in [
        (Native::ClusterRole, role("", "all", &json!("everything"))),
        (
            Native::ClusterRoleBinding,
            json!({"metadata": {"name": "b"}, "roleRef": 1}),
        ),
        (
            Native::ClusterRoleBinding,
            binding("", "b", ("Role", "all"), &ann()),
        ),
    ] {
        roles.put(native, &object);
        assert!(!may(&roles, &user("ann", &[]), &GET_WEB), "{object}");
        roles.put(Native::ClusterRole, &role("", "all", &all));
        roles.put(Native::ClusterRoleBinding, &bound);
        assert!(may(&roles, &user("ann", &[]), &GET_WEB));
    }
}

#[test]
fn administrators_need_no_role() {
    let roles = Roles::default();
    assert!(may(&roles, &User::administrator(), &GET_WEB));
}

/// What is missing of rules for one who has others.
#[track_caller]
fn check_missing(owned: &Value, given: &Value, expected: &str) {
    let rules = |rules: &Value| Vec::<PolicyRule>::deserialize(rules).unwrap();
    let (owned, given) = (rules(owned), rules(given));
    let expected = match expected {
        "" => Missing::Nothing,
        lines => Missing::Rules(lines.to_owned()),
    };
    assert_eq!(missing(&owned, &given), expected);
}

#[test]
fn rights_are_given_away_by_those_who_have_them() {
    let pods = |names: &[&str], verbs: &[&str]| json!([rule(&[""], &["pods"], names, verbs)]);
    check_missing(&pods(&[], &["*"]), &pods(&["a"], &["get", "list"]), "");
    check_missing(
        &pods(&["a"], &["get"]),
        &pods(&[], &["get", "list"]),
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}",
    );
    check_missing(
        &pods(&["a"], &["get"]),
        &pods(&["a", "b"], &["get"]),
        "{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}",
    );
    // Two rules together have what is given, each right by one of them.
    let two = json!([
        rule(&[""], &["pods"], &[], &["get"]),
        rule(&[""], &["nodes"], &[], &["get"])
    ]);
    check_missing(
        &two,
        &json!([rule(&[""], &["nodes", "pods"], &[], &["get"])]),
        "",
    );
    // All verbs are more than any that are named.
    check_missing(
        &pods(&[], &["get"]),
        &pods(&[], &["*"]),
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"*\"]}",
    );
    let parts = json!([rule(&[""], &["*/status"], &[], &["get"])]);
    check_missing(
        &parts,
        &json!([rule(&[""], &["pods/status"], &[], &["get"])]),
        "",
    );
    check_missing(
        &parts,
        &pods(&[], &["get"]),
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}",
    );
    let paths = |path: &str| json!([{"nonResourceURLs": [path], "verbs": ["get"]}]);
    check_missing(&paths("/api/*"), &paths("/api/v1/*"), "");
    check_missing(
        &paths("/api/*"),
        &paths("/metrics"),
        "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}",
    );
}

#[test]
fn more_rights_than_can_be_compared_are_not_given_away() {
    let many: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    let rule = PolicyRule {
        api_groups: Some(many.clone()),
        resources: Some(many.clone()),
        resource_names: Some(many.clone()),
        verbs: many,
        ..PolicyRule::default()
    };
    assert_eq!(missing(&everything(), [&rule]), Missing::TooMany);
    let paths = |count: usize| PolicyRule {
        non_resource_urls: Some((0..count).map(|number| format!("/{number}")).collect()),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    };
    assert_eq!(
        missing(&[paths(40_000)], [&paths(40_000)]),
        Missing::TooMany
    );
    let Missing::Rules(told) = missing(&[], [&paths(40_000)]) else {
        panic!("they are not had");
    };
    assert_eq!(told.lines().last(), Some("and 39900 more"));
}

#[test]
fn default_roles_read_write_and_rule() {
    let roles = Roles::default();
    for object in defaults::cluster_roles() {
        roles.put(Native::ClusterRole, &object);
    }
    for object in defaults::cluster_role_bindings() {
        roles.put(Native::ClusterRoleBinding, &object);
    }
    for (name, role) in [("vera", "view"), ("emil", "edit"), ("adam", "admin")] {
        let subject = json!({"kind": "User", "name": name});
        let binding = binding("shop", name, ("ClusterRole", role), &subject);
        roles.put(Native::RoleBinding, &binding);
    }
    let can = |name: &str, verb: &str, group: &str, resource: &str, object: Option<&str>| {
        let attributes = Attributes {
            verb,
            group,
            resource,
            name: object,
            ..GET_WEB
        };
        may(&roles, &user(name, &["system:authenticated"]), &attributes)
    };
    let calico = "projectcalico.org";
    let all = |verb: &str, group: &str, resource: &str, object: Option<&str>| {
        ["nora", "vera", "emil", "adam"].map(|name| can(name, verb, group, resource, object))
    };
    assert_eq!(all("get", "", "pods", None), [false, true, true, true]);
    assert_eq!(all("create", "", "pods", None), [false, false, true, true]);
    assert_eq!(
        all("delete", "networking.k8s.io", "networkpolicies", None),
        [false, false, true, true]
    );
    assert_eq!(
        all("create", ROLE_GROUP, "rolebindings", None),
        [false, false, false, true]
    );
    assert_eq!(all("bind", ROLE_GROUP, "clusterroles", None), [false; 4]);
    // Policies of Calico are decided on by tier.
    assert_eq!(all("create", calico, "networkpolicies", None), [true; 4]);
    assert_eq!(
        all("create", calico, "tier.networkpolicies", Some("default.*")),
        [false, false, true, true]
    );
    assert_eq!(
        all("create", calico, "tier.networkpolicies", Some("gold.*")),
        [false; 4]
    );
    assert_eq!(
        all("get", calico, "tier.networkpolicies", Some("gold.*")),
        [false, true, true, true]
    );
    // Nobody who only views may write anything at all.
    let view = roles.rules_of(&(String::new(), "view".to_owned())).unwrap();
    let is_reading = |verb: &String| matches!(verb.as_str(), "get" | "list" | "watch");
    assert!(!view.is_empty() && view.iter().flat_map(|rule| &rule.verbs).all(is_reading));
    for (groups, path, expected) in [
        (
            &["system:authenticated"],
            "/apis/projectcalico.org/v3",
            true,
        ),
        (&["system:authenticated"], "/metrics", false),
        (&["system:authenticated"], "/metrics/", false),
        (&["system:monitoring"], "/metrics", true),
        (&["system:unauthenticated"], "/apis", false),
    ] {
        let action = Action::Path { verb: "get", path };
        assert_eq!(roles.allow(&user("x", groups), action), expected, "{path}");
    }
}

#[test]
fn default_roles_are_completed_and_otherwise_left_alone() {
    for wanted in [defaults::cluster_roles(), defaults::cluster_role_bindings()].concat() {
        assert_eq!(defaults::completed(&wanted, &wanted), None);
        let mut poor = wanted.clone();
        poor["metadata"]["labels"] = json!({"mine": "yes"});
        for list in ["rules", "subjects", "aggregationRule"] {
            poor.as_object_mut().unwrap().remove(list);
        }
        let mut rich = defaults::completed(&poor, &wanted).unwrap();
        assert_eq!(rich["metadata"]["labels"]["mine"], "yes");
        rich["metadata"]["labels"]
            .as_object_mut()
            .unwrap()
            .remove("mine");
        assert_eq!(rich, wanted);
        poor["metadata"]["annotations"] =
            json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});
        assert_eq!(defaults::completed(&poor, &wanted), None);
    }
}

/// Objects with few names, so that they meet.
fn object() -> impl Strategy<Value = (Native, Value)> {
    let namespace = prop::sample::select(vec!["", "a", "b"]);
    let name = prop::sample::select(vec!["x", "y", "z"]);
    let labels = prop::sample::select(vec![json!({}), json!({"l": "1"}), json!({"m": "1"})]);
    let aggregation = prop::sample::select(vec![
        Value::Null,
        json!({"clusterRoleSelectors": [{"matchLabels": {"l": "1"}}]}),
        json!({"clusterRoleSelectors": [{"matchExpressions": [{"key": "m", "operator": "Exists"}]}]}),
    ]);
    let resource = prop::sample::select(vec!["pods", "nodes"]);
    let kind = prop::sample::select(vec!["Role", "ClusterRole"]);
    let subject = prop::sample::select(vec!["User", "Group", "ServiceAccount"]);
    let all = (
        namespace,
        name,
        labels,
        aggregation,
        resource,
        kind,
        subject,
        any::<bool>(),
    );
    all.prop_map(
        |(namespace, name, labels, aggregation, resource, kind, subject, is_role)| {
            let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
            match (is_role, namespace) {
                (true, "") => (
                    Native::ClusterRole,
                    json!({
                        "metadata": metadata, "aggregationRule": aggregation,
                        "rules": [rule(&[""], &[resource], &[], &["get"])],
                    }),
                ),
                (true, _) => (
                    Native::Role,
                    json!({"metadata": metadata, "rules": [rule(&[""], &[resource], &[], &["get"])]}),
                ),
                (false, _) => (
                    if namespace.is_empty() { Native::ClusterRoleBinding } else { Native::RoleBinding },
                    json!({
                        "metadata": metadata,
                        "roleRef": {"apiGroup": ROLE_GROUP, "kind": kind, "name": name},
                        "subjects": [{"kind": subject, "name": "u", "namespace": "a"}],
                    }),
                ),
            }
        },
    )
}

proptest! {
    /// What counts depends on the objects that are there, never on the way there.
    #[test]
    fn the_index_forgets_what_is_gone(changes in prop::collection::vec((object(), any::<bool>()), 0..40)) {
        let roles = Roles::default();
        let mut there = BTreeMap::new();
        for ((native, object), is_put) in changes {
            let id = (
                object["metadata"]["namespace"].as_str().unwrap().to_owned(),
                object["metadata"]["name"].as_str().unwrap().to_owned(),
            );
            let key = (matches!(native, Native::Role | Native::ClusterRole), id.clone());
            if is_put {
                roles.put(native, &object);
                there.insert(key, (native, object));
            } else {
                roles.remove(native, &id.0, &id.1);
                there.remove(&key);
            }
        }
        let fresh = Roles::default();
        for (native, object) in there.values() {
            fresh.put(*native, object);
        }
        for name in ["u", "system:serviceaccount:a:u", "other"] {
            for groups in [&[][..], &["u"]] {
                for namespace in [None, Some("a"), Some("b")] {
                    let user = user(name, groups);
                    let rules = |roles: &Roles| {
                        let index = roles.read();
                        index.rules_for(&user, namespace).cloned().collect::<Vec<_>>()
                    };
                    prop_assert_eq!(rules(&roles), rules(&fresh));
                }
            }
        }
    }
}
