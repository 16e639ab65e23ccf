//! What is there, in all forms.

use serde_json::Value;

use super::objects::{config_map, list, policy, tier};
use crate::up::server::Up;

#[track_caller]
fn check_words(text: &str, line: usize, expected: &[&str]) {
    let words: Vec<&str> = text
        .lines()
        .nth(line)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let words = words.get(..expected.len());
    assert_eq!(words, Some(expected), "line {line} of\n{text}");
}

#[test]
fn resources_are_found_and_explained() {
    let up = Up::api_server();
    let resources = up.kubectl(&["api-resources", "--no-headers"]);
    for (name, short, version, is_namespaced, kind) in [
        (
            "globalnetworkpolicies",
            "gnp,cgnp",
            "projectcalico.org/v3",
            "false",
            "GlobalNetworkPolicy",
        ),
        ("pods", "po", "v1", "true", "Pod"),
        ("namespaces", "ns", "v1", "false", "Namespace"),
    ] {
        let lines: Vec<Vec<&str>> = resources
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let expected = vec![name, short, version, is_namespaced, kind];
        assert!(lines.contains(&expected), "{expected:?} in\n{resources}");
    }
    let action = up.kubectl(&["explain", "globalnetworkpolicies.spec.ingress.action"]);
    for part in ["FIELD: action <string>", "Allow", "Deny", "Log", "Pass"] {
        assert!(action.contains(part), "{part} in\n{action}");
    }
    let port = up.kubectl(&["explain", "pods.spec.containers.ports.hostPort"]);
    assert!(port.contains("FIELD: hostPort <integer>"), "{port}");
    let told = up.refusal(&["explain", "tiers.spec.colour"], "");
    assert!(told.contains("colour"), "{told}");
}

#[test]
fn objects_are_given_in_all_forms() {
    let up = Up::api_server();
    let objects = list(&[
        tier("gold", 10),
        policy("gold.web", 5),
        config_map("one", "1"),
    ]);
    let objects = objects.replace(r#""order":5"#, r#""order":5,"tier":"gold""#);
    up.kubectl_with(&["apply", "--filename=-"], &objects);

    let wide = up.kubectl(&["get", "gnp", "--output=wide"]);
    check_words(&wide, 0, &["NAME", "TIER", "ORDER"]);
    check_words(&wide, 1, &["gold.web", "gold", "5"]);
    let wide = up.kubectl(&["get", "configmap/one", "tier/gold", "--output=wide"]);
    assert!(
        wide.contains("configmap/one") && wide.contains("tier.projectcalico.org/gold"),
        "{wide}"
    );
    let names = up.kubectl(&["get", "gnp,cm", "--output=name"]);
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(
        names,
        [
            "globalnetworkpolicy.projectcalico.org/gold.web",
            "configmap/one"
        ]
    );
    let path = "--output=jsonpath={.spec.ingress[0].destination.ports[*]}";
    assert_eq!(
        up.kubectl(&["get", "gnp", "gold.web", path]),
        "80 8000:8080"
    );
    let columns = "--output=custom-columns=N:.metadata.name,O:.spec.order";
    check_words(
        &up.kubectl(&["get", "tier", "gold", columns]),
        1,
        &["gold", "10"],
    );

    let json = up.json(&["gnp", "gold.web"]);
    assert_eq!(json["spec"]["tier"], "gold");
    assert_eq!(json["metadata"]["generation"], 1);
    let yaml = up.kubectl(&["get", "gnp", "gold.web", "--output=yaml"]);
    let yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(yaml, json);
    let described = up.kubectl(&["describe", "gnp", "gold.web"]);
    assert!(described.contains("role == 'web'"), "{described}");
}

#[test]
fn long_lists_come_in_pages_and_in_order() {
    let up = Up::api_server();
    let maps: Vec<Value> = (0..10)
        .map(|n| config_map(&format!("map-{n}"), "x"))
        .collect();
    let sets = (0..10).map(|n| policy(&format!("default.p{n}"), n));
    let all: Vec<Value> = maps.into_iter().chain(sets).collect();
    up.kubectl_with(&["create", "--filename=-"], &list(&all));
    for (kind, prefix) in [
        ("configmaps", "configmap/map-"),
        ("gnp", "globalnetworkpolicy.projectcalico.org/default.p"),
    ] {
        let arguments = ["get", kind, "--chunk-size=3", "--output=name", "--v=8"];
        let output = up.try_kubectl(&arguments, "");
        let expected: Vec<String> = (0..10).map(|n| format!("{prefix}{n}")).collect();
        assert_eq!(output.stdout.lines().collect::<Vec<_>>(), expected);
        let pages = output
            .stderr
            .lines()
            .filter(|line| line.contains("limit=3") && line.contains("GET"))
            .count();
        assert_eq!(pages, 4, "{}", output.stderr);
    }
    // Selections are made before pages are cut.
    up.kubectl(&["label", "configmap", "map-9", "last=yes"]);
    let last = up.kubectl(&[
        "get",
        "cm",
        "-l",
        "last=yes",
        "--chunk-size=1",
        "-o",
        "name",
    ]);
    assert_eq!(last, "configmap/map-9\n");
}
