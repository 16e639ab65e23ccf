//! Addresses and ports of services.

use serde_json::{Value, json};

use super::Both;
use crate::up::server::Up;

/// The server that is compared with knows these; others came later.
const FIELDS: &[&str] = &[
    ".spec.type",
    ".spec.externalTrafficPolicy",
    ".spec.sessionAffinity",
    ".spec.ports[*].targetPort",
];

fn service(name: &str, spec: &Value) -> String {
    let metadata = json!({"name": name});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}).to_string()
}

fn create(both: &Both, name: &str, spec: &Value) {
    both.same(&["create", "--filename=-"], &service(name, spec));
    both.same_fields("service", name, FIELDS);
}

#[test]
fn services_get_what_kube_apiserver_gives_them() {
    let both = Both::new();
    let ports = json!([{"port": 80}]);
    create(
        &both,
        "plain",
        &json!({"ports": ports, "selector": {"app": "web"}}),
    );
    create(
        &both,
        "own",
        &json!({"ports": ports, "clusterIP": "10.96.7.7"}),
    );
    create(
        &both,
        "headless",
        &json!({"ports": ports, "clusterIP": "None", "selector": {"a": "b"}}),
    );
    create(
        &both,
        "node-port",
        &json!({"ports": [{"port": 80, "nodePort": 30080}], "type": "NodePort"}),
    );
    create(
        &both,
        "balanced",
        &json!({"ports": ports, "type": "LoadBalancer"}),
    );
    create(
        &both,
        "elsewhere",
        &json!({"type": "ExternalName", "externalName": "example.org"}),
    );
    let addresses = &[".spec.clusterIP", ".spec.clusterIPs"];
    for name in ["own", "headless", "elsewhere"] {
        both.same_fields("service", name, addresses);
    }
    for name in ["plain", "balanced"] {
        let service = both.up.json(&["service", name]);
        let address = service["spec"]["clusterIP"].as_str().unwrap();
        assert!(address.starts_with("10."), "{service}");
        assert_eq!(service["spec"]["clusterIPs"], json!([address]));
        assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4"]));
        assert_eq!(service["spec"]["ipFamilyPolicy"], "SingleStack");
        assert_eq!(service["spec"]["internalTrafficPolicy"], "Cluster");
    }
    let on_node = both.up.json(&["service", "balanced"])["spec"]["ports"][0]["nodePort"].clone();
    assert!(
        (30000..=32767).contains(&on_node.as_u64().unwrap()),
        "{on_node}"
    );

    for (name, spec, why) in [
        (
            "taken",
            json!({"ports": ports, "clusterIP": "10.96.7.7"}),
            "already allocated",
        ),
        (
            "outside",
            json!({"ports": ports, "clusterIP": "192.0.2.1"}),
            "not in the valid range",
        ),
        (
            "malformed",
            json!({"ports": ports, "clusterIP": "web"}),
            "spec.clusterIP",
        ),
        ("no-ports", json!({}), "spec.ports"),
        (
            "port",
            json!({"ports": [{"port": 80, "nodePort": 30080}], "type": "NodePort"}),
            "already allocated",
        ),
        (
            "low",
            json!({"ports": [{"port": 80, "nodePort": 80}], "type": "NodePort"}),
            "not in the valid range",
        ),
        (
            "twice",
            json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]}),
            "spec.ports[1]",
        ),
        (
            "nameless",
            json!({"ports": [{"port": 80}, {"port": 81}]}),
            "spec.ports[0].name",
        ),
    ] {
        both.refused(&["create", "--filename=-"], &service(name, &spec), why);
    }
    let dual = service(
        "dual",
        &json!({"ports": ports, "ipFamilyPolicy": "RequireDualStack"}),
    );
    let told = both.up.refusal(&["create", "--filename=-"], &dual);
    assert!(told.contains("spec.ipFamilyPolicy"), "{told}");
}

#[test]
fn what_a_service_was_given_it_keeps_until_it_is_gone() {
    let both = Both::new();
    let port = json!([{"port": 80}]);
    create(
        &both,
        "web",
        &json!({"ports": port, "clusterIP": "10.96.7.7", "type": "NodePort"}),
    );
    let merge = |name: &str, spec: &Value| {
        let patch = json!({"spec": spec}).to_string();
        ["patch", "service", name, "--type=merge", "--patch", &patch].map(ToOwned::to_owned)
    };
    let refused = merge(
        "web",
        &json!({"clusterIP": "10.96.7.8", "clusterIPs": ["10.96.7.8"]}),
    );
    both.refused(
        &refused.each_ref().map(String::as_str),
        "",
        "spec.clusterIPs[0]",
    );
    let inside = merge("web", &json!({"type": "ClusterIP"}));
    both.same(&inside.each_ref().map(String::as_str), "");
    let given = [".spec.clusterIP", ".spec.clusterIPs"];
    both.same_fields("service", "web", &given);
    let dropped = [".spec.ports[0].nodePort", ".spec.externalTrafficPolicy"];
    both.same_fields("service", "web", &dropped);
    // What it held is free again.
    both.same(&["delete", "service", "web"], "");
    create(
        &both,
        "other",
        &json!({"ports": port, "clusterIP": "10.96.7.7"}),
    );
    let name = json!({"type": "ExternalName", "externalName": "example.org", "clusterIP": null});
    both.same(&merge("other", &name).each_ref().map(String::as_str), "");
    both.same_fields("service", "other", &given);
    create(
        &both,
        "third",
        &json!({"ports": port, "clusterIP": "10.96.7.7"}),
    );
}

/// Later versions of Kubernetes fill in what the client that wrote a service at first did not know.
#[test]
fn a_service_may_be_written_again_as_it_was_at_first() {
    let up = Up::api_server();
    let spec = json!({"ports": [{"port": 80}], "type": "NodePort"});
    up.kubectl_with(&["create", "--filename=-"], &service("web", &spec));
    let given = || {
        let spec = up.json(&["service", "web"])["spec"].clone();
        (spec["clusterIPs"].clone(), spec["ports"].clone())
    };
    let before = given();
    let spec = json!({"ports": [{"port": 80}], "type": "NodePort", "selector": {"app": "web"}});
    up.kubectl_with(&["replace", "--filename=-"], &service("web", &spec));
    assert_eq!(given(), before);
}
