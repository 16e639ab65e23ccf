//! Who may not.

use std::process::Command;

use super::Target;
use crate::up::server::Up;

/// The code of an answer over TLS; 0 if there was none.
fn code(up: &Up, path: &str, arguments: &[&str]) -> u16 {
    let mut curl = Command::new("curl");
    curl.args([
        "--silent",
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code}",
        "--max-time",
        "10",
    ])
    .args(arguments)
    .arg("--cacert")
    .arg(up.file("ca.crt"))
    .arg(format!("{}{path}", up.url()));
    up.run(curl, b"").stdout.parse().unwrap()
}

#[test]
fn nobody_gets_in_without_credentials() {
    let target = Target::new();
    let up = &target.up;
    let token = format!("Authorization: Bearer {}", up.token());
    let (good_cert, good_key) = (up.file("admin.crt"), up.file("admin.key"));
    let certificate = [
        "--cert",
        good_cert.to_str().unwrap(),
        "--key",
        good_key.to_str().unwrap(),
    ];
    assert_eq!(code(up, "/api/v1/namespaces", &["--header", &token]), 200);
    assert_eq!(code(up, "/api/v1/namespaces", &certificate), 200);
    assert_eq!(
        code(up, "/api/v1/namespaces", &["--http1.1", "--header", &token]),
        200
    );
    assert_eq!(code(up, "/livez", &[]), 200);

    let cut = &token[..token.len() - 1];
    let longer = format!("{token}x");
    let upper = token.to_uppercase();
    let mut refused: Vec<Vec<&str>> = vec![vec![]];
    for header in [
        cut,
        &longer,
        &upper,
        "Authorization: Bearer",
        "Authorization: Bearer ",
        "Authorization: Basic YTpi",
        "Authorization: ",
        "X-Remote-User: kubernetes-admin",
    ] {
        refused.push(vec!["--header", header]);
    }
    refused.push(vec![
        "--header",
        "X-Remote-User: a",
        "--header",
        "X-Remote-Group: system:masters",
    ]);
    for path in [
        "/api/v1/namespaces",
        "/apis",
        "/version",
        "/api/v1/namespaces/default/configmaps/one",
    ] {
        for arguments in &refused {
            assert_eq!(code(up, path, arguments), 401, "{path} {arguments:?}");
        }
    }
    // A wrong token is not made good by anything else.
    let both = [&certificate[..], &["--header", cut]].concat();
    assert_eq!(code(up, "/api/v1/namespaces", &both), 401);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let path = "/api/v1/namespaces/default/configmaps/one";
        assert_eq!(
            code(
                up,
                path,
                &["--http1.1", "--request", method, "--data", "{}"]
            ),
            401,
            "{method}"
        );
    }
    let impersonate = ["--header", &token, "--header", "Impersonate-User: nobody"];
    assert_eq!(code(up, "/api/v1/namespaces", &impersonate), 400);
    target.assert_unharmed();
}

#[test]
fn a_certificate_of_another_authority_is_worth_nothing() {
    let target = Target::new();
    let up = &target.up;
    let (cert, key) = (up.folder().join("own.crt"), up.folder().join("own.key"));
    let mut openssl = Command::new("openssl");
    openssl
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
        ])
        .args(["-subj", "/O=system:masters/CN=kubernetes-admin", "-out"])
        .arg(&cert)
        .arg("-keyout")
        .arg(&key);
    let made = up.run(openssl, b"");
    assert!(made.success(), "{}", made.stderr);
    let arguments = [
        "--cert",
        cert.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    let code = code(up, "/api/v1/namespaces", &arguments);
    assert!(matches!(code, 0 | 401), "{code}");
    target.assert_unharmed();
}
