//! What users learn about themselves and their rights.

use serde_json::{Value, json};

use super::Person;
use crate::up::server::Up;

#[test]
fn users_learn_who_they_are_and_what_they_may_do() {
    let up = Up::api_server();
    up.kubectl(&[
        "create",
        "rolebinding",
        "ann",
        "--clusterrole=view",
        "--user=ann",
    ]);
    let ann = Person::new(&up, "ann", &["--group", "dev", "--group", "ops"]);
    let who: Value =
        serde_json::from_str(&ann.kubectl(&["auth", "whoami", "--output=json"])).unwrap();
    let expected = json!({"username": "ann", "groups": ["dev", "ops", "system:authenticated"]});
    assert_eq!(who["status"]["userInfo"], expected);
    assert!(ann.can(&["list", "pods"]));
    assert!(!ann.can(&["create", "pods"]));
    assert!(!ann.can(&["list", "pods", "--namespace=kube-system"]));
    assert!(!ann.can(&["list", "pods", "--all-namespaces"]));
    assert!(ann.can(&["get", "/apis"]));
    assert!(!ann.can(&["get", "/metrics"]));
    assert!(!ann.can(&["*", "*"]));
    let list = ann.kubectl(&["auth", "can-i", "--list"]);
    let find = |resource: &str| list.lines().find(|line| line.starts_with(resource));
    assert!(
        find("pods ").unwrap().contains("[get list watch]"),
        "{list}"
    );
    assert!(
        find("selfsubjectreviews.authentication.k8s.io")
            .unwrap()
            .contains("[create]"),
        "{list}"
    );
    assert!(!list.contains("clusterroles"), "{list}");
    // Only some may ask about others.
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "ann", "resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let create = ["create", "--raw", path, "--filename=-"];
    ann.refused_with(
        &create,
        &review,
        "cannot create resource \"subjectaccessreviews\"",
    );
    let ask = |review: &Value| -> Value {
        let answer = up.kubectl_with(&create, &review.to_string());
        serde_json::from_str(&answer).unwrap()
    };
    assert_eq!(ask(&review)["status"]["allowed"], true);
    let mut other = review.clone();
    other["spec"]["user"] = json!("bob");
    assert_eq!(ask(&other)["status"]["allowed"], false);
    let mut local = review.clone();
    local["kind"] = json!("LocalSubjectAccessReview");
    local["metadata"] = json!({"namespace": "default"});
    let path = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let create_local = ["create", "--raw", path, "--filename=-"];
    let answer = up.kubectl_with(&create_local, &local.to_string());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["status"]["allowed"], true);
    local["spec"]["resourceAttributes"]["namespace"] = json!("shop");
    let told = up.refusal(&create_local, &local.to_string());
    assert!(told.contains("spec.resourceAttributes.namespace"), "{told}");
    let mut nobody = review.clone();
    nobody["spec"]["user"] = json!("");
    assert!(
        up.refusal(&create, &nobody.to_string())
            .contains("spec.user")
    );
    nobody["spec"] = json!({"user": "ann"});
    assert!(
        up.refusal(&create, &nobody.to_string())
            .contains("exactly one of")
    );
    let told = up.refusal(&["get", "--raw", create[2]], "");
    assert!(told.contains("does not allow"), "{told}");
    assert_eq!(up.kubectl(&["auth", "can-i", "*", "*"]).trim(), "yes");
}
