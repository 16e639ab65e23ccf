//! Tokens of service accounts.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use tortie_testkit::Output;

use super::{Person, config_map};
use crate::up::server::Up;

/// Runs `kubectl` with a token and nothing else.
fn with_token(up: &Up, token: &str, arguments: &[&str]) -> Output {
    let authority = up.file("ca.crt");
    let url = up.url();
    let own = [
        "--kubeconfig=/dev/null",
        "--server",
        &url,
        "--certificate-authority",
        authority.to_str().unwrap(),
        "--token",
        token,
    ];
    up.try_kubectl(&[&own, arguments].concat(), "")
}

fn server() -> Up {
    let up = Up::api_server();
    up.kubectl(&["create", "namespace", "shop"]);
    up.kubectl(&["create", "serviceaccount", "robot", "--namespace=shop"]);
    let binding = [
        "create",
        "rolebinding",
        "robots",
        "--clusterrole=view",
        "--namespace=shop",
    ];
    up.kubectl(&[&binding[..], &["--serviceaccount=shop:robot"]].concat());
    up
}

fn token(up: &Up, more: &[&str]) -> String {
    let arguments = ["create", "token", "robot", "--namespace=shop"];
    up.kubectl(&[&arguments, more].concat()).trim().to_owned()
}

#[test]
fn a_token_is_its_account_as_long_as_that_is_there() {
    let up = server();
    let token = token(&up, &[]);
    let whoami = ["auth", "whoami", "--output=json"];
    let told: Value = serde_json::from_str(&with_token(&up, &token, &whoami).stdout).unwrap();
    let user = &told["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:shop:robot");
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:shop",
        "system:authenticated",
    ];
    assert_eq!(user["groups"], json!(groups));
    let read = ["get", "configmaps", "--namespace=shop"];
    assert!(with_token(&up, &token, &read).success());
    for refused in [
        &["get", "secrets", "--namespace=shop"][..],
        &["get", "configmaps", "--namespace=default"],
        &["create", "configmap", "a", "--namespace=shop"],
        &["create", "token", "robot", "--namespace=shop"],
    ] {
        let told = with_token(&up, &token, refused).stderr;
        assert!(told.contains("is forbidden"), "{refused:?}: {told}");
    }
    // One of the same name is another.
    for _ in 0..2 {
        up.kubectl(&["delete", "serviceaccount", "robot", "--namespace=shop"]);
        up.kubectl(&["create", "serviceaccount", "robot", "--namespace=shop"]);
        let told = with_token(&up, &token, &read).stderr;
        assert!(
            told.contains("Unauthorized") || told.contains("must be logged in"),
            "{told}"
        );
    }
}

#[test]
fn tokens_are_for_a_time_and_for_somebody() {
    let up = server();
    for (more, why) in [
        (
            &["--duration=1m"][..],
            "may not specify a duration less than 10 minutes",
        ),
        (
            &["--bound-object-kind=Secret", "--bound-object-name=none"],
            "not found",
        ),
    ] {
        let arguments = ["create", "token", "robot", "--namespace=shop"];
        let told = up.refusal(&[&arguments, more].concat(), "");
        assert!(told.contains(why), "{told}");
    }
    let told = up.refusal(&["create", "token", "nobody", "--namespace=shop"], "");
    assert!(
        told.contains("serviceaccounts \"nobody\" not found"),
        "{told}"
    );
    let whoami = ["auth", "whoami"];
    let vault = token(&up, &["--audience=vault"]);
    assert!(!with_token(&up, &vault, &whoami).success());
    let review = |token: &str, audiences: &[&str]| -> Value {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": audiences},
        });
        let arguments = [
            "create",
            "--validate=false",
            "--filename=-",
            "--output=json",
        ];
        let told = up.kubectl_with(&arguments, &review.to_string());
        serde_json::from_str::<Value>(&told).unwrap()["status"].clone()
    };
    let told = review(&vault, &["vault", "other"]);
    assert_eq!(told["authenticated"], true);
    assert_eq!(told["audiences"], json!(["vault"]));
    assert_eq!(told["user"]["username"], "system:serviceaccount:shop:robot");
    for (token, audiences) in [
        (vault.as_str(), &[][..]),
        (&vault, &["other"]),
        ("none", &[]),
    ] {
        assert_eq!(review(token, audiences), json!({"authenticated": false}));
    }
    assert_eq!(
        review(&up.token(), &[])["user"]["username"],
        "kubernetes-admin"
    );

    up.kubectl(&["create", "secret", "generic", "key", "--namespace=shop"]);
    let bound = token(
        &up,
        &["--bound-object-kind=Secret", "--bound-object-name=key"],
    );
    assert!(with_token(&up, &bound, &whoami).success());
    up.kubectl(&["delete", "secret", "key", "--namespace=shop"]);
    assert!(!with_token(&up, &bound, &whoami).success());
}

#[test]
fn who_may_write_in_a_namespace_may_be_its_accounts() {
    let up = server();
    let secret = std::fs::metadata(up.file("service-account.key")).unwrap();
    assert_eq!(secret.permissions().mode() & 0o777, 0o600);
    let binding = [
        "create",
        "rolebinding",
        "editors",
        "--clusterrole=edit",
        "--namespace=shop",
    ];
    up.kubectl(&[&binding[..], &["--user=ann"]].concat());
    let ann = Person::new(&up, "ann", &[]);
    ann.create(&config_map("shop", "mine"));
    ann.kubectl(&["create", "token", "robot", "--namespace=shop"]);
    ann.refused(
        &["create", "token", "default", "--namespace=default"],
        "cannot create resource \"serviceaccounts/token\"",
    );
    // A server that is started again knows its tokens.
    let token = token(&up, &[]);
    let up = up.kill().start();
    assert!(with_token(&up, &token, &["auth", "whoami"]).success());
}
