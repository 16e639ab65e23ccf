//! The roles and bindings that every server has.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tortie_api::Kind;
use tortie_api::crd::Group;
use tortie_api::validate::ROLE_GROUP;

use super::covers::{Missing, missing};
use crate::access::{ADMINISTRATORS, AUTHENTICATED};

/// The group of those who may read figures about the server.
const MONITORING: &str = "system:monitoring";

/// Says that an object is completed at each start; `false` leaves it as it is.
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Labels of roles whose rules others take in.
const TO_ADMIN: &str = "rbac.authorization.k8s.io/aggregate-to-admin";
const TO_EDIT: &str = "rbac.authorization.k8s.io/aggregate-to-edit";
const TO_VIEW: &str = "rbac.authorization.k8s.io/aggregate-to-view";

const READING: &[&str] = &["get", "list", "watch"];
const WRITING: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const ANY: &[&str] = &["*"];

pub(crate) fn cluster_roles() -> Vec<Value> {
    vec![
        role(
            "cluster-admin",
            &[],
            &[rule(ANY, ANY, ANY), paths(ANY, ANY)],
        ),
        aggregate("admin", &[], TO_ADMIN),
        aggregate("edit", &[TO_ADMIN], TO_EDIT),
        aggregate("view", &[TO_EDIT], TO_VIEW),
        role("system:aggregate-to-admin", &[TO_ADMIN], &admin()),
        role("system:aggregate-to-edit", &[TO_EDIT], &edit()),
        role("system:aggregate-to-view", &[TO_VIEW], &view()),
        role(
            "system:discovery",
            &[],
            &[paths(
                &[
                    "/api",
                    "/api/*",
                    "/apis",
                    "/apis/*",
                    "/healthz",
                    "/livez",
                    "/openapi",
                    "/openapi/*",
                    "/readyz",
                    "/version",
                    "/version/",
                ],
                &["get"],
            )],
        ),
        role(
            "system:basic-user",
            &[],
            &[
                rule(
                    &["authorization.k8s.io"],
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    &["create"],
                ),
                rule(
                    &["authentication.k8s.io"],
                    &["selfsubjectreviews"],
                    &["create"],
                ),
            ],
        ),
        role(
            "system:auth-delegator",
            &[],
            &[
                rule(&["authentication.k8s.io"], &["tokenreviews"], &["create"]),
                rule(
                    &["authorization.k8s.io"],
                    &["subjectaccessreviews"],
                    &["create"],
                ),
            ],
        ),
        role(
            "system:monitoring",
            &[],
            &[paths(
                &[
                    "/healthz",
                    "/healthz/*",
                    "/livez",
                    "/livez/*",
                    "/metrics",
                    "/readyz",
                    "/readyz/*",
                ],
                &["get"],
            )],
        ),
        // Policies are decided on by their tiers, which everybody needs rights for besides.
        role(
            "calico-tiered-policy-passthrough",
            &[],
            &[rule(&[calico()], &tiered(), ANY)],
        ),
        role(
            "calico-tier-getter",
            &[],
            &[rule(&[calico()], &[Kind::Tier.plural()], &["get"])],
        ),
    ]
}

/// The bindings, all for groups.
pub(crate) fn cluster_role_bindings() -> Vec<Value> {
    vec![
        binding("cluster-admin", ADMINISTRATORS),
        binding("system:discovery", AUTHENTICATED),
        binding("system:basic-user", AUTHENTICATED),
        binding("system:monitoring", MONITORING),
        binding("calico-tiered-policy-passthrough", AUTHENTICATED),
    ]
}

/// What an object becomes that lacks something of what it should have; nothing if that is all there, or the object is to be
/// left alone. What it has besides stays.
pub(crate) fn completed(there: &Value, wanted: &Value) -> Option<Value> {
    if there["metadata"]["annotations"][AUTOUPDATE] == "false" {
        return None;
    }
    let mut new = there.clone();
    for field in ["labels", "annotations"] {
        let fields = wanted["metadata"][field].as_object().into_iter().flatten();
        for (key, value) in fields {
            if there["metadata"][field][key] != *value {
                new["metadata"][field][key] = value.clone();
            }
        }
    }
    add_rules(&mut new, wanted);
    add_items(&mut new, wanted, "/subjects");
    add_items(&mut new, wanted, "/aggregationRule/clusterRoleSelectors");
    (new != *there).then_some(new)
}

/// Adds the rules that are not covered by those that are there.
fn add_rules(new: &mut Value, wanted: &Value) {
    let read = |rule: &Value| PolicyRule::deserialize(rule).ok();
    let there = new["rules"].as_array().into_iter().flatten();
    let there: Vec<PolicyRule> = there.filter_map(read).collect();
    let lacking = wanted["rules"].as_array().into_iter().flatten();
    let lacking = lacking.filter(|rule| {
        let rule = read(rule);
        missing(&there, rule.as_ref()) != Missing::Nothing
    });
    let lacking: Vec<Value> = lacking.cloned().collect();
    if lacking.is_empty() {
        return;
    }
    match new["rules"].as_array_mut() {
        Some(rules) => rules.extend(lacking),
        None => new["rules"] = json!(lacking),
    }
}

/// Adds the items of a list that are not there.
fn add_items(new: &mut Value, wanted: &Value, list: &str) {
    let Some(wanted) = wanted.pointer(list).and_then(Value::as_array) else {
        return;
    };
    let there = new.pointer(list).and_then(Value::as_array);
    let mut items = there.cloned().unwrap_or_default();
    let lacking = wanted.iter().filter(|item| !items.contains(item));
    let lacking: Vec<Value> = lacking.cloned().collect();
    if lacking.is_empty() {
        return;
    }
    items.extend(lacking);
    match list.rsplit_once('/') {
        Some(("", field)) => new[field] = json!(items),
        Some((outer, field)) => new[outer.trim_start_matches('/')][field] = json!(items),
        None => {}
    }
}

/// Everything may be read that is no secret: of Calico's resources none is.
fn view() -> Vec<Value> {
    vec![
        rule(
            &[""],
            &[
                "configmaps",
                "events",
                "namespaces",
                "namespaces/status",
                "pods",
                "pods/status",
                "serviceaccounts",
                "services",
                "services/status",
            ],
            READING,
        ),
        rule(&["coordination.k8s.io"], &["leases"], READING),
        rule(&["discovery.k8s.io"], &["endpointslices"], READING),
        rule(&["events.k8s.io"], &["events"], READING),
        rule(&["networking.k8s.io"], &["networkpolicies"], READING),
        rule(&[calico()], ANY, READING),
    ]
}

/// What is in a namespace; of tiers only the default one, since others are there to overrule it.
fn edit() -> Vec<Value> {
    let namespaced = Kind::ALL.iter().filter(|kind| kind.is_namespaced());
    let in_tiers: Vec<&str> = namespaced
        .clone()
        .filter(|kind| kind.is_tiered_policy())
        .map(|kind| kind.plural())
        .collect();
    let by_tier: Vec<String> = in_tiers
        .iter()
        .map(|plural| format!("tier.{plural}"))
        .collect();
    let by_tier: Vec<&str> = by_tier.iter().map(String::as_str).collect();
    let mut default_tier = rule(&[calico()], &by_tier, WRITING);
    default_tier["resourceNames"] = json!(["default.*"]);
    let others = [
        Kind::NetworkSet.plural(),
        Kind::StagedKubernetesNetworkPolicy.plural(),
    ];
    vec![
        rule(
            &[""],
            &[
                "configmaps",
                "events",
                "pods",
                "secrets",
                "serviceaccounts",
                "services",
            ],
            WRITING,
        ),
        // Who may write pods could read them by one that mounts them.
        rule(&[""], &["secrets"], READING),
        rule(&[""], &["serviceaccounts/token"], &["create"]),
        rule(&["events.k8s.io"], &["events"], WRITING),
        rule(&["coordination.k8s.io"], &["leases"], WRITING),
        rule(&["networking.k8s.io"], &["networkpolicies"], WRITING),
        rule(&[calico()], &[&in_tiers[..], &others].concat(), WRITING),
        default_tier,
    ]
}

fn admin() -> Vec<Value> {
    vec![
        rule(
            &[ROLE_GROUP],
            &["rolebindings", "roles"],
            &[READING, WRITING].concat(),
        ),
        rule(
            &["authorization.k8s.io"],
            &["localsubjectaccessreviews"],
            &["create"],
        ),
    ]
}

fn calico() -> &'static str {
    Group::V3.name()
}

/// The resources whose objects are in tiers.
fn tiered() -> Vec<&'static str> {
    let kinds = Kind::ALL.iter().filter(|kind| kind.is_tiered_policy());
    kinds.map(|kind| kind.plural()).collect()
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn paths(paths: &[&str], verbs: &[&str]) -> Value {
    json!({"nonResourceURLs": paths, "verbs": verbs})
}

fn role(name: &str, labels: &[&str], rules: &[Value]) -> Value {
    json!({"metadata": metadata(name, labels), "rules": rules})
}

/// A role that has the rules of all roles with a label.
fn aggregate(name: &str, labels: &[&str], label: &str) -> Value {
    json!({
        "metadata": metadata(name, labels),
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]},
    })
}

fn binding(role: &str, group: &str) -> Value {
    json!({
        "metadata": metadata(role, &[]),
        "roleRef": {"apiGroup": ROLE_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": ROLE_GROUP, "kind": "Group", "name": group}],
    })
}

fn metadata(name: &str, labels: &[&str]) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTOUPDATE: "true"},
    });
    for label in labels {
        metadata["labels"][*label] = json!("true");
    }
    metadata
}
