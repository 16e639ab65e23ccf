//! What is wrong is refused, and the answer says what and why.

use serde_json::{Value, json};

use super::objects::{config_map, list, policy, tier};
use crate::up::server::Up;

#[track_caller]
fn check(up: &Up, arguments: &[&str], input: &Value, parts: &[&str]) {
    let input = if input.is_null() {
        String::new()
    } else {
        input.to_string()
    };
    let told = up.refusal(arguments, &input);
    for part in parts {
        assert!(told.contains(part), "{part:?} in {told}");
    }
}

#[test]
fn errors_of_clients_have_their_reasons() {
    let up = Up::api_server();
    let create = ["create", "--filename=-"];
    let objects = [config_map("one", "1"), policy("default.one", 1)];
    up.kubectl_with(&create, &list(&objects));
    check(
        &up,
        &["get", "cm", "two"],
        &Value::Null,
        &["(NotFound)", "configmaps \"two\" not found"],
    );
    let missing = [
        "(NotFound)",
        "globalnetworkpolicies.projectcalico.org \"default.two\" not found",
    ];
    check(&up, &["get", "gnp", "default.two"], &Value::Null, &missing);
    check(
        &up,
        &["delete", "gnp", "default.two"],
        &Value::Null,
        &missing,
    );
    for object in &objects {
        check(&up, &create, object, &["(AlreadyExists)", "already exists"]);
    }
    for (kind, name) in [("cm", "one"), ("gnp", "default.one")] {
        let stale = up.json(&[kind, name]);
        up.kubectl(&["label", kind, name, "newer=1"]);
        let parts = ["(Conflict)", "the object has been modified"];
        check(&up, &["replace", "--filename=-"], &stale, &parts);
        let mut fresh = up.json(&[kind, name]);
        fresh["metadata"]["labels"]["newer"] = json!("2");
        up.kubectl_with(&["replace", "--filename=-"], &fresh.to_string());
        assert_eq!(up.json(&[kind, name])["metadata"]["labels"]["newer"], "2");
    }
    check(
        &up,
        &["get", "cm", "--selector=a in (b"],
        &Value::Null,
        &["labelSelector", "a in (b"],
    );
}

#[test]
fn invalid_objects_are_refused_with_the_field() {
    let up = Up::api_server();
    let create = ["create", "--filename=-"];
    let mut wrong = policy("default.one", 1);
    wrong["spec"]["ingress"][0]["protocol"] = json!("TXP");
    check(
        &up,
        &create,
        &wrong,
        &[
            "\"default.one\" is invalid",
            "spec.ingress[0].protocol",
            "TXP",
        ],
    );
    let mut wrong = policy("default.one", 1);
    wrong["spec"]["selector"] = json!("role = 'web'");
    check(&up, &create, &wrong, &["is invalid", "spec.selector"]);
    let pool = |name: &str, cidr: &str| {
        json!({
            "apiVersion": "projectcalico.org/v3", "kind": "IPPool",
            "metadata": {"name": name}, "spec": {"cidr": cidr, "blockSize": 26},
        })
    };
    check(
        &up,
        &create,
        &pool("a", "10.0.0.0/33"),
        &["is invalid", "spec.cidr", "10.0.0.0/33"],
    );
    check(
        &up,
        &create,
        &pool("a", "10.0.0.0/28"),
        &["is invalid", "spec.cidr"],
    );
    up.kubectl_with(&create, &pool("a", "10.0.0.0/16").to_string());
    check(
        &up,
        &create,
        &pool("b", "10.0.4.0/24"),
        &["is invalid", "spec.cidr", "overlaps", "10.0.0.0/16"],
    );
    let smaller = r#"{"spec":{"cidr":"10.0.0.0/24"}}"#;
    check(
        &up,
        &["patch", "ippool", "a", "--type=merge", "--patch", smaller],
        &Value::Null,
        &["spec.cidr"],
    );

    let mut wrong = config_map("one", "1");
    wrong["data"]["key"] = json!(7);
    check(&up, &create, &wrong, &["data.key", "7"]);
    let mut wrong = config_map("one", "1");
    wrong["metadata"]["name"] = json!("No Name");
    check(&up, &create, &wrong, &["metadata.name", "No Name"]);
    let mut wrong = config_map("one", "1");
    wrong["metadata"]["labels"] = json!({"a b": "c"});
    check(&up, &create, &wrong, &["metadata.labels", "a b"]);
}

#[test]
fn unknown_fields_are_refused_unless_the_client_wants_them_dropped() {
    let up = Up::api_server();
    let mut wrong = policy("default.one", 1);
    wrong["spec"]["ordr"] = json!(1);
    let mut map = config_map("one", "1");
    map["dta"] = json!({"key": "1"});
    for (object, field) in [(&wrong, "ordr"), (&map, "dta")] {
        for validate in ["--validate=true", "--validate=strict"] {
            check(
                &up,
                &["create", validate, "--filename=-"],
                object,
                &[field, "unknown field"],
            );
        }
    }
    assert_eq!(up.kubectl(&["get", "cm,gnp", "--output=name"]), "");
    up.kubectl_with(
        &["create", "--validate=false", "--filename=-"],
        &list(&[wrong, map]),
    );
    assert_eq!(
        up.json(&["gnp", "default.one"])["spec"]["ordr"],
        Value::Null
    );
    assert_eq!(up.json(&["cm", "one"])["dta"], Value::Null);
}

#[test]
fn tiers_are_looked_after() {
    let up = Up::api_server();
    let policy = |tier: &str, name: &str| {
        json!({
            "apiVersion": "projectcalico.org/v3", "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"tier": tier, "selector": "all()"},
        })
    };
    let create = ["create", "--filename=-"];
    check(&up, &create, &policy("gold", "gold.one"), &["gold", "tier"]);
    up.kubectl_with(
        &create,
        &list(&[tier("gold", 10), policy("gold", "gold.one")]),
    );
    up.kubectl_with(&create, &policy("default", "default.two").to_string());
    let of_tier = |tier: &str| {
        let selector = format!("--selector=projectcalico.org/tier={tier}");
        up.kubectl(&[
            "get",
            "networkpolicies.projectcalico.org",
            &selector,
            "--output=name",
        ])
    };
    assert_eq!(
        of_tier("gold"),
        "networkpolicy.projectcalico.org/gold.one\n"
    );
    assert_eq!(
        of_tier("default"),
        "networkpolicy.projectcalico.org/default.two\n"
    );
    check(
        &up,
        &["delete", "tier", "gold"],
        &Value::Null,
        &["gold.one"],
    );
    check(
        &up,
        &["delete", "tier", "default"],
        &Value::Null,
        &["Cannot delete default tier"],
    );
    up.kubectl(&["delete", "networkpolicies.projectcalico.org", "gold.one"]);
    up.kubectl(&["delete", "tier", "gold"]);
    assert_eq!(
        of_tier("default"),
        "networkpolicy.projectcalico.org/default.two\n"
    );
}

#[test]
fn fields_that_are_not_known_are_warned_of() {
    let up = Up::api_server();
    let tier = r#"{"apiVersion": "projectcalico.org/v3", "kind": "Tier", "metadata": {"name": "gold"}, "spec": {"order": 7, "colour": "red"}}"#;
    let apply = ["apply", "--validate=warn", "-f", "-"];
    for server_side in [&[][..], &["--server-side", "--force-conflicts"]] {
        let output = up.try_kubectl(&[&apply[..], server_side].concat(), tier);
        assert!(output.status.success(), "{output:?}");
        let said = output.stderr;
        assert!(
            said.contains(r#"Warning: unknown field "spec.colour""#),
            "{said}"
        );
        up.kubectl(&["delete", "tier", "gold"]);
    }
    let said = up.refusal(&["apply", "-f", "-"], tier);
    assert!(said.contains("colour"), "{said}");
    let output = up.try_kubectl(&["apply", "--validate=ignore", "-f", "-"], tier);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}
