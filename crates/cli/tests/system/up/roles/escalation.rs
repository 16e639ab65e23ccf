//! Nobody gives away what they do not have.

use serde_json::{Value, json};

use super::Person;
use crate::up::server::Up;

const GROUP: &str = "rbac.authorization.k8s.io";

fn role(verbs: &[&str]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": verbs}],
    })
}

fn binding(role: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "more", "namespace": "default"},
        // Without the group, which is filled in before it is looked at.
        "roleRef": {"kind": kind, "name": role}, "subjects": [{"kind": "User", "name": "zoe"}],
    })
}

const CREATE: &[&str] = &["create", "--filename=-"];
const APPLY: &[&str] = &["apply", "--server-side", "--filename=-"];

#[test]
fn rights_that_one_has_not_are_not_given_away() {
    let up = Up::api_server();
    up.kubectl(&[
        "create",
        "rolebinding",
        "adam",
        "--clusterrole=admin",
        "--user=adam",
    ]);
    let adam = Person::new(&up, "adam", &["--group", "dev"]);
    for how in [CREATE, APPLY] {
        adam.refused_with(
            how,
            &role(&["list", "get"]),
            "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"adam\" (groups=[\"dev\" \
             \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"list\" \"get\"]}",
        );
        adam.refused_with(
            how,
            &binding("cluster-admin", "ClusterRole"),
            "rolebindings.rbac.authorization.k8s.io \"more\" is forbidden: user \"adam\" (groups=[\"dev\" \
             \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}",
        );
        adam.refused_with(
            how,
            &binding("missing", "Role"),
            "roles.rbac.authorization.k8s.io \"missing\" not found",
        );
    }
    // What one has can be given away, and be changed to no more than that.
    let own = [
        "create",
        "role",
        "own",
        "--resource=configmaps",
        "--verb=get",
    ];
    adam.kubectl(&own);
    adam.kubectl(&["create", "rolebinding", "own", "--role=own", "--user=bob"]);
    let bob = Person::new(&up, "bob", &[]);
    bob.refused(&["get", "configmap", "x"], "(NotFound)");
    adam.kubectl(&[
        "create",
        "rolebinding",
        "view",
        "--clusterrole=view",
        "--user=bob",
    ]);
    let patch = r#"[{"op": "replace", "path": "/rules/0/resources", "value": ["nodes"]}]"#;
    adam.refused(
        &["patch", "role", "own", "--type=json", "--patch", patch],
        "is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"]",
    );
    up.kubectl_with(CREATE, &role(&["get"]).to_string());
    adam.refused_with(CREATE, &binding("more", "Role"), "not currently held");
    let subject =
        r#"[{"op": "add", "path": "/subjects/-", "value": {"kind": "User", "name": "eve"}}]"#;
    up.kubectl_with(CREATE, &binding("more", "Role").to_string());
    adam.refused(
        &[
            "patch",
            "rolebinding",
            "more",
            "--type=json",
            "--patch",
            subject,
        ],
        "not currently held",
    );
    // What gives nothing away is allowed.
    let finalizers = r#"{"metadata": {"finalizers": ["example.org/hold"]}}"#;
    adam.kubectl(&[
        "patch",
        "role",
        "more",
        "--type=merge",
        "--patch",
        finalizers,
    ]);
    let none = r#"{"metadata": {"finalizers": null}}"#;
    adam.kubectl(&["patch", "role", "more", "--type=merge", "--patch", none]);
    adam.kubectl(&["delete", "rolebinding", "more"]);
    bob.refused(&["create", "configmap", "x"], "cannot create");
}

#[test]
fn who_may_escalate_or_bind_does() {
    let up = Up::api_server();
    up.kubectl(&[
        "create",
        "rolebinding",
        "adam",
        "--clusterrole=admin",
        "--user=adam",
    ]);
    let adam = Person::new(&up, "adam", &[]);
    adam.refused_with(CREATE, &role(&["get"]), "not currently held");
    let rules = json!([
        {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["escalate"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["cluster-admin"], "verbs": ["bind"]},
    ]);
    let more = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "escalate", "namespace": "default"}, "rules": rules,
    });
    up.kubectl_with(CREATE, &more.to_string());
    up.kubectl(&[
        "create",
        "rolebinding",
        "escalate",
        "--role=escalate",
        "--user=adam",
    ]);
    adam.create(&role(&["get"]));
    adam.refused_with(CREATE, &binding("more", "Role"), "not currently held");
    adam.create(&binding("cluster-admin", "ClusterRole"));
    // In this namespace, where it was bound.
    let zoe = Person::new(&up, "zoe", &[]);
    zoe.kubectl(&["create", "configmap", "one"]);
    zoe.refused(&["get", "nodes"], "cannot list resource \"nodes\"");
}

#[test]
fn gathering_roles_needs_all_rights() {
    let up = Up::api_server();
    let role = [
        "create",
        "clusterrole",
        "roles",
        "--resource=clusterroles.rbac.authorization.k8s.io",
    ];
    up.kubectl(&[&role[..], &["--verb=create,update,patch,get"]].concat());
    up.kubectl(&[
        "create",
        "clusterrolebinding",
        "adam",
        "--clusterrole=roles",
        "--user=adam",
    ]);
    let adam = Person::new(&up, "adam", &[]);
    let gather = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gather"},
        "aggregationRule": {"clusterRoleSelectors": [{}]},
    });
    adam.refused_with(
        CREATE,
        &gather,
        "must have cluster-admin privileges to use the aggregationRule",
    );
    up.kubectl_with(CREATE, &gather.to_string());
    let none = r#"{"aggregationRule": null}"#;
    adam.refused(
        &[
            "patch",
            "clusterrole",
            "gather",
            "--type=merge",
            "--patch",
            none,
        ],
        "must have cluster-admin privileges to use the aggregationRule",
    );
    // The label would put it into what others hold.
    let label =
        r#"{"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}"#;
    adam.refused(
        &[
            "patch",
            "clusterrole",
            "cluster-admin",
            "--type=merge",
            "--patch",
            label,
        ],
        "not currently held",
    );
}
