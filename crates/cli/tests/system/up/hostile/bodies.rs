//! Bodies that are no objects, or are too much of one.

use serde_json::json;

use super::Target;
use super::http::{MAPS, POLICIES, config_map, policy};

const JSON: &str = "application/json";

#[test]
fn bodies_that_are_no_objects_are_refused() {
    let target = Target::new();
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(10_000), close.repeat(10_000));
    let digits = "9".repeat(1_000);
    let bodies: Vec<(Vec<u8>, &[u16])> = vec![
        (b"".to_vec(), &[400]),
        (b"{".to_vec(), &[400]),
        (b"{} {}".to_vec(), &[400]),
        (b"{\"metadata\": {\"name\": \"a\",}}".to_vec(), &[400]),
        (b"null".to_vec(), &[400]),
        (b"true".to_vec(), &[400]),
        (b"7".to_vec(), &[400]),
        (b"\"text\"".to_vec(), &[400]),
        (b"[]".to_vec(), &[400]),
        (b"\xff\xfe{}".to_vec(), &[400]),
        (b"{\"metadata\": {\"name\": \"\xff\"}}".to_vec(), &[400]),
        (b"{\"metadata\": {\"name\": \"\\ud800\"}}".to_vec(), &[400]),
        (b"\0".repeat(1000), &[400]),
        (deep("[", "]").into_bytes(), &[400]),
        (deep("{\"a\":", "}").into_bytes(), &[400]),
        (
            format!(
                "{{\"metadata\": {{\"name\": \"a\", \"labels\": {}}}}}",
                deep("[", "]")
            )
            .into_bytes(),
            &[400],
        ),
        (
            b"{\"metadata\": {\"name\": \"a\"}, \"spec\": {\"order\": 1e999}}".to_vec(),
            &[400],
        ),
        (
            format!("{{\"metadata\": {{\"name\": \"a\", \"generation\": {digits}}}}}").into_bytes(),
            &[400, 422],
        ),
        (b"{}".to_vec(), &[422]),
        (b"{\"metadata\": 1}".to_vec(), &[400]),
        (b"{\"metadata\": {\"name\": 1}}".to_vec(), &[400, 422]),
        (
            b"{\"metadata\": {\"name\": \"a\", \"namespace\": \"other\"}, \"kind\": \"Pod\"}"
                .to_vec(),
            &[400],
        ),
        (
            b"{\"metadata\": {\"name\": \"a\"}, \"apiVersion\": \"v2\"}".to_vec(),
            &[400],
        ),
        (
            b"{\"metadata\": {\"name\": \"a\", \"resourceVersion\": \"1\"}}".to_vec(),
            &[400],
        ),
    ];
    for path in [MAPS, POLICIES] {
        for (body, codes) in &bodies {
            let answer = target.http.send("POST", path, JSON, body);
            let shown: String = String::from_utf8_lossy(body).chars().take(60).collect();
            answer.assert_refused(codes, &format!("{path} {shown}"));
        }
    }
    target.assert_unharmed();
}

#[test]
fn bodies_that_are_too_large_are_refused() {
    let target = Target::new();
    let large =
        json!({"metadata": {"name": "large"}, "data": {"key": "x".repeat(3 << 20)}}).to_string();
    for (path, method) in [(MAPS, "POST"), (POLICIES, "POST")] {
        let answer = target.http.send(method, path, JSON, large.as_bytes());
        answer.assert_refused(&[413], path);
    }
    let one = format!("{MAPS}/one");
    for media_type in [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ] {
        let path = format!("{one}?fieldManager=a");
        let answer = target
            .http
            .send("PATCH", &path, media_type, large.as_bytes());
        answer.assert_refused(&[413], media_type);
    }
    target
        .http
        .send("DELETE", &one, JSON, large.as_bytes())
        .assert_refused(&[413], "delete");
    // The same without a length, in pieces.
    let mut pieces = format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
    for piece in large.as_bytes().chunks(1 << 16) {
        pieces.extend(format!("{:x}\r\n", piece.len()).bytes());
        pieces.extend(piece);
        pieces.extend(b"\r\n");
    }
    pieces.extend(b"0\r\n\r\n");
    target.http.raw(&pieces).assert_refused(&[413], "in pieces");
    target.assert_unharmed();
}

#[test]
fn other_forms_are_refused_and_yaml_does_not_explode() {
    let target = Target::new();
    let map = config_map("two").to_string();
    for media_type in [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json-patch+json",
        "json",
        "*/*",
    ] {
        target
            .http
            .send("POST", MAPS, media_type, map.as_bytes())
            .assert_refused(&[415], media_type);
        let put = format!("{MAPS}/one");
        target
            .http
            .send("PUT", &put, media_type, map.as_bytes())
            .assert_refused(&[415], media_type);
    }
    for (path, body, code) in [
        (MAPS, map.as_bytes(), 400),
        (MAPS, b"k8s\0", 415),
        // A Pod, and one of a kind that has no such form.
        (MAPS, b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x00", 400),
        (POLICIES, b"k8s\0\x0a\x06\x12\x04Tier\x12\x00", 415),
        (
            MAPS,
            b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            400,
        ),
    ] {
        let media_type = "application/vnd.kubernetes.protobuf";
        let answer = target.http.send("POST", path, media_type, body);
        answer.assert_refused(&[code], &format!("{path} {body:?}"));
    }
    for media_type in ["", "application/json", "text/plain"] {
        let path = format!("{MAPS}/one");
        target
            .http
            .send("PATCH", &path, media_type, b"{}")
            .assert_refused(&[415], media_type);
    }
    let laugh = |level: u32| {
        let inner = level - 1;
        format!("a{level}: &a{level} [*a{inner}, *a{inner}, *a{inner}, *a{inner}]")
    };
    let laughs: Vec<String> = (1..30).map(laugh).collect();
    let laughs = format!("a0: &a0 [lol]\n{}\n", laughs.join("\n"));
    for body in [
        laughs.as_str(),
        "a: &a [*a]",
        "{{{{",
        "- 1",
        "a: b: c",
        "? - ? - ?",
        "--- {}\n--- {}",
        "&x : *x",
        "!!python/object:os.system x",
    ] {
        for (method, path, media_type) in [
            ("POST", MAPS.to_owned(), "application/yaml"),
            (
                "PATCH",
                format!("{MAPS}/two?fieldManager=a"),
                "application/apply-patch+yaml",
            ),
            (
                "PATCH",
                format!("{POLICIES}/two?fieldManager=a"),
                "application/apply-patch+yaml",
            ),
        ] {
            let answer = target.http.send(method, &path, media_type, body.as_bytes());
            answer.assert_refused(&[400, 422], &format!("{method} {body:.40}"));
        }
    }
    target.assert_unharmed();
}

#[test]
fn names_that_are_no_names_are_refused() {
    let target = Target::new();
    let long = "a".repeat(10_000);
    for name in [
        "",
        " ",
        "a b",
        "a\0b",
        "\u{1}",
        "a\nb",
        "a/b",
        "/",
        "..",
        ".",
        "../../etc/passwd",
        "a%2fb",
        "A",
        "é",
        "-",
        "a\u{202e}b",
        "a_b",
        &long,
    ] {
        for (path, body) in [(MAPS, config_map(name)), (POLICIES, policy(name))] {
            let answer = target.http.json("POST", path, &body);
            answer.assert_refused(&[400, 422], &format!("{path} {name:?}"));
        }
        // What is only too long is cut, as Kubernetes does it.
        let fields = if name.len() > 1000 {
            &["namespace"][..]
        } else {
            &["namespace", "generateName"]
        };
        for field in fields {
            let mut body = config_map("two");
            body["metadata"] = json!({*field: name});
            // An empty namespace is that of the path.
            if name.is_empty() || *field == "namespace" {
                body["metadata"]["name"] = json!("A b");
            }
            let answer = target.http.json("POST", MAPS, &body);
            answer.assert_refused(&[400, 422], &format!("{field} {name:?}"));
        }
    }
    for name in ["", "a b", "a\0b", "a/b/c", "/a", "a/", "é", "-a", &long] {
        let mut body = config_map("two");
        body["metadata"]["labels"] = json!({name: "x"});
        let answer = target.http.json("POST", MAPS, &body);
        answer.assert_refused(&[400, 422], &format!("label {name:?}"));
    }
    let mut body = config_map("two");
    body["metadata"]["labels"] = json!({"a": 1});
    let answer = target.http.json("POST", MAPS, &body);
    answer.assert_refused(&[400, 422], "a label that is a number");
    target.assert_unharmed();
}
