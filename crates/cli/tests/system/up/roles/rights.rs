//! What roles allow.

use serde_json::json;

use super::{Person, config_map, policy};
use crate::up::server::Up;

const POLICIES: &str = "networkpolicies.projectcalico.org";

#[test]
fn who_has_no_role_sees_the_api_and_nothing_else() {
    let up = Up::api_server();
    let nora = Person::new(&up, "nora", &[]);
    assert!(
        nora.kubectl(&["api-resources"])
            .contains("clusterrolebindings")
    );
    nora.kubectl(&["version"]);
    nora.refused(
        &["get", "pods"],
        "Error from server (Forbidden): pods is forbidden: User \"nora\" cannot list resource \"pods\" in API group \"\" \
         in the namespace \"default\"",
    );
    nora.refused(
        &["get", POLICIES, "--all-namespaces"],
        "networkpolicies.projectcalico.org is forbidden: operation on Calico tiered policy is forbidden",
    );
    for path in ["/metrics", "/metrics/", "/"] {
        let text = format!("User \"nora\" cannot get path \"{path}\"");
        nora.refused(&["get", "--raw", path], &text);
    }
    let group = ["--group", "system:monitoring", "--allow-system-names"];
    let monitor = Person::new(&up, "prometheus", &group);
    assert!(
        monitor
            .kubectl(&["get", "--raw", "/metrics"])
            .contains("apiserver_request")
    );
    monitor.refused(
        &["get", "pods"],
        "User \"prometheus\" cannot list resource \"pods\"",
    );
}

#[test]
fn a_reader_reads_everything_and_writes_nothing() {
    let up = Up::api_server();
    up.kubectl(&["create", "configmap", "one"]);
    up.kubectl_with(
        &["create", "--filename=-"],
        &policy("default", "default", "web").to_string(),
    );
    up.kubectl(&[
        "create",
        "clusterrolebinding",
        "vera",
        "--clusterrole=view",
        "--user=vera",
    ]);
    let vera = Person::new(&up, "vera", &[]);
    for kind in [
        "configmaps",
        "tiers",
        POLICIES,
        "globalnetworkpolicies",
        "ippools",
        "netpol",
    ] {
        vera.kubectl(&["get", kind, "--all-namespaces"]);
    }
    assert!(vera.kubectl(&["get", POLICIES, "web"]).contains("web"));
    vera.refused_with(
        &["create", "--filename=-"],
        &config_map("default", "two"),
        "configmaps is forbidden: User \"vera\" cannot create resource \"configmaps\" in API group \"\" in the namespace \
         \"default\"",
    );
    vera.refused(
        &["delete", "configmap", "one"],
        "configmaps \"one\" is forbidden: User \"vera\" cannot delete resource \"configmaps\"",
    );
    vera.refused(
        &["delete", POLICIES, "web"],
        "User \"vera\" cannot delete networkpolicies.projectcalico.org in tier \"default\" and namespace \"default\"",
    );
    vera.refused(
        &["label", "tier", "default", "a=b"],
        "tiers.projectcalico.org \"default\" is forbidden: User \"vera\" cannot patch resource \"tiers\"",
    );
    vera.refused(
        &["get", "clusterroles"],
        "cannot list resource \"clusterroles\"",
    );
    vera.refused(
        &[
            "create",
            "clusterrolebinding",
            "more",
            "--clusterrole=cluster-admin",
            "--user=vera",
        ],
        "cannot create resource \"clusterrolebindings\"",
    );
    up.kubectl(&["get", "configmap", "one"]);
}

#[test]
fn a_user_of_a_namespace_is_at_home_there_only() {
    let up = Up::api_server();
    for name in ["shop", "bank"] {
        up.kubectl(&["create", "namespace", name]);
    }
    let bind = [
        "create",
        "rolebinding",
        "emil",
        "--clusterrole=edit",
        "--group=shopkeepers",
    ];
    up.kubectl(&[&bind[..], &["--namespace=shop"]].concat());
    let emil = Person::new(
        &up,
        "emil",
        &[
            "--group",
            "others",
            "--group",
            "shopkeepers",
            "--namespace",
            "shop",
        ],
    );
    // In the namespace of the kubeconfig.
    emil.kubectl(&["create", "configmap", "one"]);
    emil.kubectl(&["get", "namespace", "shop"]);
    emil.kubectl(&["delete", "configmap", "one"]);
    emil.refused(
        &["get", "configmaps", "--namespace=bank"],
        "User \"emil\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"bank\"",
    );
    emil.refused_with(
        &["create", "--filename=-"],
        &config_map("bank", "x"),
        "cannot create resource \"configmaps\" in API group \"\" in the namespace \"bank\"",
    );
    emil.refused(
        &["get", "configmaps", "--all-namespaces"],
        "at the cluster scope",
    );
    emil.refused(
        &["get", "namespaces"],
        "cannot list resource \"namespaces\" in API group \"\" at the cluster scope",
    );
    emil.refused(
        &["get", "namespace", "bank"],
        "namespaces \"bank\" is forbidden",
    );
    emil.refused(
        &["delete", "namespace", "shop"],
        "namespaces \"shop\" is forbidden",
    );
    // Policies of Calico need the tier as well.
    let web = policy("default", "shop", "web");
    let create = ["create", "--filename=-"];
    emil.refused_with(
        &create,
        &web,
        "in tier \"default\" and namespace \"shop\" (user cannot get tier)",
    );
    up.kubectl(&[
        "create",
        "clusterrolebinding",
        "emil",
        "--clusterrole=calico-tier-getter",
        "--user=emil",
    ]);
    emil.create(&web);
    emil.kubectl(&["get", POLICIES, "web"]);
}

#[test]
fn a_user_of_a_tier_writes_there_only() {
    let up = Up::api_server();
    for name in ["gold", "silver"] {
        let tier = json!({"apiVersion": "projectcalico.org/v3", "kind": "Tier", "metadata": {"name": name}});
        up.kubectl_with(&["create", "--filename=-"], &tier.to_string());
        let policy = policy(name, "default", &format!("{name}.old"));
        up.kubectl_with(&["create", "--filename=-"], &policy.to_string());
    }
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gold"},
        "rules": [
            {"apiGroups": ["projectcalico.org"], "resources": ["tiers"], "resourceNames": ["gold"], "verbs": ["get"]},
            {
                "apiGroups": ["projectcalico.org"], "resources": ["tier.networkpolicies"],
                "resourceNames": ["gold.*"], "verbs": ["*"],
            },
        ],
    });
    up.kubectl_with(&["apply", "--filename=-"], &role.to_string());
    up.kubectl(&[
        "create",
        "clusterrolebinding",
        "gail",
        "--clusterrole=gold",
        "--user=gail",
    ]);
    let gail = Person::new(&up, "gail", &[]);
    gail.create(&policy("gold", "default", "gold.web"));
    let names = gail.kubectl(&["get", POLICIES, "--output=name"]);
    let names: Vec<_> = names
        .lines()
        .map(|line| line.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(names, ["gold.old", "gold.web"]);
    gail.kubectl(&["get", "tier", "gold"]);
    gail.refused(
        &["get", "tier", "silver"],
        "tiers.projectcalico.org \"silver\" is forbidden",
    );
    gail.refused(&["get", "tiers"], "cannot list resource \"tiers\"");
    gail.refused_with(
        &["create", "--filename=-"],
        &policy("silver", "default", "silver.web"),
        "networkpolicies.projectcalico.org \"silver.web\" is forbidden: User \"gail\" cannot create \
         networkpolicies.projectcalico.org in tier \"silver\" and namespace \"default\" (user cannot get tier)",
    );
    gail.refused(
        &["delete", POLICIES, "silver.old"],
        "User \"gail\" cannot delete networkpolicies.projectcalico.org in tier \"silver\" and namespace \"default\" (user \
         cannot get tier)",
    );
    let patch = r#"{"spec": {"tier": "silver"}}"#;
    gail.refused(
        &[
            "patch",
            POLICIES,
            "gold.web",
            "--type=merge",
            "--patch",
            patch,
        ],
        "in tier \"silver\" and namespace \"default\" (user cannot get tier)",
    );
    gail.refused(
        &["get", "globalnetworkpolicies"],
        "globalnetworkpolicies.projectcalico.org is forbidden: operation on Calico tiered policy is forbidden",
    );
    gail.kubectl(&["delete", POLICIES, "gold.web"]);
}

#[test]
fn rights_come_and_go_with_the_next_request() {
    let up = Up::api_server();
    let ann = Person::new(&up, "ann", &[]);
    for _ in 0..5 {
        ann.refused(&["get", "configmaps"], "User \"ann\" cannot list");
        up.kubectl(&[
            "create",
            "rolebinding",
            "ann",
            "--clusterrole=view",
            "--user=ann",
        ]);
        ann.kubectl(&["get", "configmaps"]);
        up.kubectl(&["delete", "rolebinding", "ann"]);
    }
    ann.refused(&["get", "configmaps"], "User \"ann\" cannot list");
    // So do those of a role, and those in a namespace that is deleted.
    up.kubectl(&["create", "namespace", "shop"]);
    let role = [
        "create",
        "role",
        "reader",
        "--namespace=shop",
        "--resource=configmaps",
    ];
    up.kubectl(&[&role[..], &["--verb=get,list"]].concat());
    up.kubectl(&[
        "create",
        "rolebinding",
        "ann",
        "--namespace=shop",
        "--role=reader",
        "--user=ann",
    ]);
    let get = ["get", "configmaps", "--namespace=shop"];
    ann.kubectl(&get);
    let patch = r#"[{"op": "replace", "path": "/rules/0/verbs", "value": ["get"]}]"#;
    up.kubectl(&[
        "patch",
        "role",
        "reader",
        "--namespace=shop",
        "--type=json",
        "--patch",
        patch,
    ]);
    ann.refused(&get, "User \"ann\" cannot list");
    up.kubectl(&[
        "patch",
        "role",
        "reader",
        "--namespace=shop",
        "--type=json",
        "--patch",
        &patch.replace("\"get\"", "\"*\""),
    ]);
    ann.kubectl(&get);
    up.kubectl(&["delete", "namespace", "shop", "--timeout=20s"]);
    ann.refused(&get, "User \"ann\" cannot list");
}

#[test]
fn one_object_may_be_watched_by_name() {
    let up = Up::api_server();
    up.kubectl(&["create", "configmap", "one"]);
    let role = [
        "create",
        "role",
        "one",
        "--resource=configmaps",
        "--resource-name=one",
    ];
    up.kubectl(&[&role[..], &["--verb=get,list,watch"]].concat());
    up.kubectl(&["create", "rolebinding", "ann", "--role=one", "--user=ann"]);
    let ann = Person::new(&up, "ann", &[]);
    ann.kubectl(&["get", "configmap", "one"]);
    let one = "--field-selector=metadata.name=one";
    assert!(
        ann.kubectl(&["get", "configmaps", one, "--output=name"])
            .contains("one")
    );
    ann.kubectl(&[
        "wait",
        "configmap/one",
        "--for=jsonpath={.metadata.name}=one",
        "--timeout=20s",
    ]);
    ann.refused(&["get", "configmaps"], "User \"ann\" cannot list");
    ann.refused(
        &["get", "configmaps", "--field-selector=metadata.name!=one"],
        "cannot list",
    );
    ann.refused(
        &["get", "configmap", "two"],
        "configmaps \"two\" is forbidden",
    );
}

#[test]
fn service_accounts_have_the_rights_of_their_bindings() {
    let up = Up::api_server();
    up.kubectl(&["create", "serviceaccount", "deployer"]);
    let bind = ["create", "rolebinding", "deployer", "--clusterrole=view"];
    up.kubectl(&[&bind[..], &["--serviceaccount=default:deployer"]].concat());
    up.kubectl(&[
        "create",
        "rolebinding",
        "all",
        "--clusterrole=edit",
        "--group=system:serviceaccounts:bank",
    ]);
    let deployer = Person::new(&up, "system:serviceaccount:default:deployer", &[]);
    deployer.kubectl(&["get", "configmaps"]);
    deployer.refused(
        &["create", "configmap", "x"],
        "User \"system:serviceaccount:default:deployer\" cannot create",
    );
    let other = Person::new(&up, "system:serviceaccount:bank:deployer", &[]);
    other.kubectl(&["create", "configmap", "x"]);
}
