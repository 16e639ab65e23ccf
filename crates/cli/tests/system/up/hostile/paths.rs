//! Paths, methods and queries that nobody serves.

use super::Target;
use super::http::{MAPS, POLICIES};

#[test]
fn paths_that_name_nothing_are_not_found() {
    let target = Target::new();
    for path in [
        "/nothing",
        "/api/v2",
        "/api/v1/endpoints",
        "/apis/apps/v1/deployments",
        "/apis/projectcalico.org/v4/tiers",
        "/apis/projectcalico.org/v3/tiers/default/scale",
        "/api/v1/namespaces/default/configmaps/one/status",
        "/api/v1/namespaces/default/namespaces",
        "/apis/projectcalico.org/v3/namespaces/default/tiers",
        "/api/v1/namespaces/..%2fdefault/configmaps",
        "/api/v1/namespaces/%2e%2e/configmaps",
        "/api/v1/namespaces/../namespaces/default/configmaps",
        "/api/v1/namespaces/a%00b/configmaps/one",
        "/api/v1/namespaces/default/configmaps/%2e%2e",
        "/api/v1/namespaces/default/configmaps/a%2fb",
        "/api/v1/namespaces/default/configmaps/a%5cb",
        "/api/v1/namespaces/default/configmaps/%0d%0aX-A:b",
        "/api/v1/namespaces/default/configmaps/%",
        "/api/v1/namespaces/default/configmaps/%zz",
        "/api/v1/namespaces/default/configmaps/%ff",
        "/api/v1/namespaces//configmaps",
        "//api/v1/namespaces",
        "/api/v1/namespaces/default/configmaps/a/b/c",
        "/openapi/v4",
        "/debug/pprof",
        "/logs",
        "/api/v1/nodes/n1/proxy",
        "/api/v1/namespaces/default/pods/a/exec",
    ] {
        for method in ["GET", "DELETE", "PUT", "PATCH"] {
            let answer = target.http.send(method, path, "application/json", b"{}");
            answer.assert_refused(&[404, 405], &format!("{method} {path}"));
            assert!(
                method != "GET" || answer.code == 404,
                "{path}: {}",
                answer.code
            );
        }
    }
    let long = format!("{MAPS}/{}", "a".repeat(60_000));
    assert_eq!(target.http.get(&long).code, 404);
    for name in ["No%20Name", "-", "a_b", "default.two%20", "%E2%80%AE"] {
        for path in [MAPS, POLICIES] {
            target
                .http
                .get(&format!("{path}/{name}"))
                .assert_refused(&[404], name);
        }
    }
    target.assert_unharmed();
}

#[test]
fn methods_that_do_not_fit_are_refused() {
    let target = Target::new();
    let one = format!("{MAPS}/one");
    for (method, path) in [
        ("PUT", MAPS),
        ("PATCH", MAPS),
        ("POST", &one),
        ("OPTIONS", MAPS),
        ("TRACE", MAPS),
        ("JUMP", &one),
        ("POST", "/apis"),
        ("DELETE", "/version"),
        ("PUT", "/openapi/v2"),
        ("POST", "/"),
        ("DELETE", "/api/v1"),
    ] {
        let answer = target.http.send(method, path, "application/json", b"{}");
        answer.assert_refused(&[405], &format!("{method} {path}"));
    }
    assert_eq!(
        target
            .http
            .raw(b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .code
            / 100,
        4
    );
    target.assert_unharmed();
}

#[test]
fn queries_that_make_no_sense_are_refused() {
    let target = Target::new();
    let long = format!("labelSelector={}", "a,".repeat(30_000));
    let nested = format!("labelSelector=a+in+{}", "(".repeat(5_000));
    for query in [
        "limit=-1",
        "limit=many",
        "continue=nonsense",
        "continue=%00",
        "resourceVersion=abc",
        "resourceVersion=-1",
        "resourceVersion=1&resourceVersionMatch=Sometimes",
        "labelSelector=a%20in%20(",
        "labelSelector=%3D%3D",
        "fieldSelector=spec.nothing%3D1",
        "fieldSelector=a",
        "timeoutSeconds=soon&watch=true",
        "labelSelector=a%00b",
        &nested,
    ] {
        for path in [MAPS, POLICIES] {
            let answer = target.http.get(&format!("{path}?{query}"));
            answer.assert_refused(&[400], &format!("{path}?{query:.80}"));
        }
    }
    // Long, but right.
    assert!(matches!(
        target.http.get(&format!("{MAPS}?{long}")).code,
        200 | 400 | 414
    ));
    let body = br#"{"metadata":{"name":"two"}}"#;
    for query in [
        "dryRun=Some",
        "fieldValidation=Sometimes",
        "fieldManager=%00",
        "dryRun=All&dryRun=None",
    ] {
        let answer = target
            .http
            .send("POST", &format!("{MAPS}?{query}"), "application/json", body);
        answer.assert_refused(&[400, 422], query);
    }
    let answer = target.http.send(
        "DELETE",
        &format!("{MAPS}/one"),
        "application/json",
        br#"{"dryRun":["Some"]}"#,
    );
    answer.assert_refused(&[400], "a deletion");
    for options in [
        r#"{"preconditions":{"uid":"other"}}"#,
        r#"{"preconditions":{"resourceVersion":"1"}}"#,
    ] {
        let answer = target.http.send(
            "DELETE",
            &format!("{MAPS}/one"),
            "application/json",
            options.as_bytes(),
        );
        answer.assert_refused(&[409], options);
    }
    target.assert_unharmed();
}
