//! Who may make objects by applying them.

use axum::http::Request;
use serde_json::{Value, json};

use crate::aggregated::support::{Cluster, policy, tier};
use crate::aggregated::tiers::{role, rule};

/// The code and the message of the answer to a server-side apply by a user.
fn applied(cluster: &Cluster, user: &str, path: &str, object: &Value) -> (u16, String) {
    let client = cluster.client();
    let request = Request::patch(format!(
        "/apis/projectcalico.org/v3/{path}?fieldManager=test&force=true"
    ))
    .header("Content-Type", "application/apply-patch+yaml")
    .header("Impersonate-User", user)
    .header("Impersonate-Group", "system:authenticated")
    .body(object.to_string().into_bytes())
    .unwrap();
    match cluster.runtime.block_on(client.request_text(request)) {
        Ok(text) => (200, text),
        Err(kube::Error::Api(status)) => (status.code, status.message),
        Err(error) => panic!("{error:?}"),
    }
}

/// `pat` may change what is there, `carl` may make it as well, `stan` may say what was observed of tiers.
#[test]
fn applying_what_is_not_there_needs_the_right_to_create() {
    let cluster = Cluster::start();
    let gold = rule("tiers", &["gold"], &["get"]);
    let change = ["get", "patch"];
    let patch = json!([
        rule("globalnetworksets", &[], &change),
        rule("networkpolicies", &[], &["create", "get", "patch"]),
        rule("tier.networkpolicies", &["gold.*"], &change),
        gold,
    ]);
    let make = ["create", "get", "patch"];
    let create = json!([
        rule("globalnetworksets", &[], &make),
        rule("networkpolicies", &[], &make),
        rule("tier.networkpolicies", &["gold.*"], &make),
        gold,
    ]);
    let observe = json!([rule("tiers/status", &[], &make)]);
    for objects in [
        role("pat", "pat", &patch),
        role("carl", "carl", &create),
        role("stan", "stan", &observe),
    ] {
        for object in &objects {
            cluster.apply(object);
        }
    }
    cluster.apply(&tier("gold"));

    let set = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkSet",
        "metadata": {"name": "made"}, "spec": {"nets": ["10.0.0.0/8"]},
    });
    let place = "globalnetworksets/made";
    let (code, text) = applied(&cluster, "pat", place, &set);
    assert_eq!(code, 403, "{text}");
    assert_eq!(
        text,
        "globalnetworksets.projectcalico.org \"made\" is forbidden: User \"pat\" cannot create resource \
         \"globalnetworksets\" in API group \"projectcalico.org\" at the cluster scope"
    );
    // Before it there is something to change.
    assert_eq!(applied(&cluster, "carl", place, &set).0, 200);
    assert_eq!(applied(&cluster, "pat", place, &set).0, 200);

    // The right to create in the tier, beside that of the resource.
    let web = policy("gold", "default", "web");
    let place = "namespaces/default/networkpolicies/web";
    let (code, text) = applied(&cluster, "pat", place, &web);
    assert_eq!(code, 403, "{text}");
    assert!(
        text.contains("cannot create networkpolicies.projectcalico.org in tier \"gold\""),
        "{text}"
    );
    assert_eq!(applied(&cluster, "carl", place, &web).0, 200);
    assert_eq!(applied(&cluster, "pat", place, &web).0, 200);

    // Nothing is made by what is said of its state.
    let (code, text) = applied(&cluster, "stan", "tiers/evil/status", &tier("evil"));
    assert_eq!(code, 404, "{text}");
    assert_eq!(text, "tiers.projectcalico.org \"evil\" not found");
    assert!(!cluster.kubectl(&["get", "tier", "evil"]).success());
}
