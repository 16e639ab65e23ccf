//! Nodes that go, their labels and their host endpoints.

use serde_json::{Value, json};

use crate::controllers::program::Program;
use crate::controllers::site::{Site, eventually, usual_settings};

fn node(name: &str, kubernetes_name: Option<&str>) -> Value {
    let references: Vec<Value> = kubernetes_name
        .iter()
        .map(|name| json!({"nodeName": name, "orchestrator": "k8s"}))
        .collect();
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "Node",
        "metadata": {"name": name, "labels": {"mine": "1"}},
        "spec": {
            "bgp": {"ipv4Address": "192.0.2.1/24"},
            "orchRefs": references,
            "interfaces": [{"name": "eth0", "addresses": ["192.0.2.1", "198.51.100.7"]}],
        },
    })
}

fn kube_node(site: &Site, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": "a"}}});
    site.apply(&node.to_string());
}

#[test]
fn nodes_go_with_those_of_kubernetes_and_have_their_labels() {
    let site = Site::new();
    for name in ["here", "goes"] {
        kube_node(&site, name);
    }
    site.store(&node("here", Some("here")));
    site.store(&node("renamed", Some("goes")));
    site.store(&node("stale", Some("never-was")));
    site.store(&node("router", None));
    let belonging = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "HostEndpoint",
        "metadata": {"name": "stale-eth0"}, "spec": {"node": "stale", "interfaceName": "eth0"},
    });
    site.store(&belonging);
    let program = Program::start(&site, &[], &[("ENABLED_CONTROLLERS", "node")]);
    site.await_gone("nodes/stale");
    site.await_gone("hostendpoints/stale-eth0");
    labels(&site);
    site.kubectl(&["delete", "node", "goes"]);
    site.await_gone("nodes/renamed");
    assert_eq!(site.paths("nodes/"), ["nodes/here", "nodes/router"]);
    assert!(program.terminate().success());
}

fn labels(site: &Site) {
    let path = "nodes/here";
    let is = |name: &'static str, value: &'static str| {
        move |node: &Value| node["metadata"]["labels"][name] == value
    };
    let stored = site.await_stored(path, is("zone", "a"));
    assert_eq!(stored["metadata"]["labels"]["mine"], "1");
    let note = stored["metadata"]["annotations"]["projectcalico.org/kube-labels"].as_str();
    assert!(
        note.is_some_and(|note| note.contains(r#""zone":"a""#)),
        "{note:?}"
    );
    site.kubectl(&["label", "node", "here", "zone=b", "--overwrite"]);
    site.await_stored(path, is("zone", "b"));
    site.kubectl(&["label", "node", "here", "zone-"]);
    let stored = site.await_stored(path, |node| {
        node["metadata"]["labels"].get("zone").is_none()
    });
    assert_eq!(stored["metadata"]["labels"]["mine"], "1");
    site.kubectl(&["label", "node", "here", "zone=c"]);
    site.await_stored(path, is("zone", "c"));
    let mut wrong = stored;
    wrong["metadata"]["labels"]["zone"] = "wrong".into();
    site.write(path, &wrong.to_string());
    site.await_stored(path, is("zone", "c"));
}

#[test]
fn nodes_have_host_endpoints_as_configured_and_none_when_that_is_off() {
    let site = Site::new();
    kube_node(&site, "n1");
    site.store(&node("n1", Some("n1")));
    let mut settings = usual_settings();
    settings["spec"]["prometheusMetricsPort"] = 0.into();
    settings["spec"]["controllers"]["node"]["hostEndpoint"] = json!({
        "autoCreate": "Enabled",
        "templates": [{
            "generateName": "lan", "interfacePattern": "eth.*", "interfaceCIDRs": ["192.0.2.0/24"],
            "nodeSelector": "all()", "labels": {"from": "template"},
        }],
    });
    site.store(&settings);
    let own = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "HostEndpoint",
        "metadata": {"name": "mine"}, "spec": {"node": "n1", "interfaceName": "eth9"},
    });
    site.store(&own);
    let program = Program::start(&site, &[], &[]);
    let default = "hostendpoints/n1-auto-hep";
    let made = "hostendpoints/n1-lan-eth0-auto-hep";
    let stored = site.await_stored(default, |endpoint| {
        endpoint["metadata"]["labels"]["zone"] == "a"
    });
    assert_eq!(stored["spec"]["interfaceName"], "*");
    assert_eq!(
        stored["spec"]["expectedIPs"],
        json!(["192.0.2.1", "198.51.100.7"])
    );
    assert_eq!(
        stored["spec"]["profiles"],
        json!(["projectcalico-default-allow"])
    );
    let creator = &stored["metadata"]["labels"]["projectcalico.org/created-by"];
    assert_eq!(creator, "calico-kube-controllers");
    let stored = site.await_stored(made, |endpoint| {
        endpoint["metadata"]["labels"]["zone"] == "a"
    });
    assert_eq!(stored["spec"]["interfaceName"], "eth0");
    assert_eq!(stored["metadata"]["labels"]["from"], "template");
    site.erase(default);
    site.await_stored(default, |_| true);
    let mut wrong = stored;
    wrong["spec"]["expectedIPs"] = json!(["203.0.113.1"]);
    site.write(made, &wrong.to_string());
    site.await_stored(made, |endpoint| {
        endpoint["spec"]["expectedIPs"][0] == "192.0.2.1"
    });
    // Without a template it goes, and when nodes get none at all, so does the other.
    settings["spec"]["controllers"]["node"]["hostEndpoint"]["templates"] = json!([]);
    site.store(&settings);
    site.await_gone(made);
    assert!(site.stored(default).is_some());
    settings["spec"]["controllers"]["node"]["hostEndpoint"]["autoCreate"] = "Disabled".into();
    site.store(&settings);
    site.await_gone(default);
    assert!(eventually(
        || site.paths("hostendpoints/") == ["hostendpoints/mine"]
    ));
    assert!(program.terminate().success());
}

#[test]
fn policies_under_older_names_are_moved() {
    let site = Site::new();
    let old = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkPolicy",
        "metadata": {
            "name": "default.web", "uid": "2d1e4a3f-0000-4000-8000-000000000001",
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "annotations": {"projectcalico.org/metadata": r#"{"name":"web"}"#},
        },
        "spec": {"selector": "app == 'web'", "types": ["Ingress"]},
    });
    site.write("globalnetworkpolicies/default.web", &old.to_string());
    let program = Program::start(&site, &[], &[("ENABLED_CONTROLLERS", "node")]);
    let stored = site.await_stored("globalnetworkpolicies/web", |_| true);
    assert_eq!(stored["spec"]["selector"], "app == 'web'");
    assert_eq!(stored["metadata"]["uid"], old["metadata"]["uid"]);
    site.await_gone("globalnetworkpolicies/default.web");
    assert!(program.terminate().success());
}
