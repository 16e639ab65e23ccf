//! Addresses of services.

use serde_json::{Value, json};
use tortie_bgp::explain::{Question, explain};

use super::{ask, cluster, with};
use crate::world::{configuration, labelled, node};

fn service(policy: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "externalTrafficPolicy": policy},
    })
}

fn slice(node: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "endpoints": [{"addresses": ["10.65.1.7"], "nodeName": node, "conditions": {"ready": true}}],
    })
}

#[test]
fn addresses_of_services() {
    let ranges = configuration(json!({"serviceClusterIPs": [{"cidr": "10.96.0.0/12"}]}));
    let world = |policy: &str| with(&[ranges.clone(), service(policy), slice("node2")]);
    let answer = ask(&world("Cluster"), "10.96.0.0/12", Some("node1"), None);
    assert!(answer.is_well, "{answer:#?}");
    let answer = ask(&world("Local"), "10.96.0.7", Some("node2"), None);
    assert!(
        answer.is_well && answer.prefix.to_string() == "10.96.0.7/32",
        "{answer:#?}"
    );
    let answer = ask(&world("Local"), "10.96.0.7/32", None, None);
    assert_eq!(answer.nodes.len(), 1, "{answer:#?}");
    assert_eq!(answer.nodes[0].node, "node2");

    let mut excluded = world("Local");
    let label = json!({"node.kubernetes.io/exclude-from-external-load-balancers": "true"});
    excluded[0] = labelled(node("node1", "192.0.2.1/24"), label);
    let question = Question {
        target: "10.96.0.0/12".parse().unwrap(),
        node: Some("node1".to_owned()),
        peer: None,
    };
    let answer = explain(&mut cluster(&excluded), &question).unwrap();
    let asked = answer.nodes.last().unwrap();
    assert!(asked.node == "node1" && !asked.is_holder, "{answer:#?}");
    let origin = asked.lacks[0].origin.as_ref().unwrap();
    assert!(origin.field.contains("exclude-from"), "{origin}");
}

#[test]
fn what_all_nodes_tell_is_asked_of_some_or_of_one() {
    let ranges = configuration(json!({"serviceClusterIPs": [{"cidr": "10.96.0.0/12"}]}));
    let mut world = vec![ranges];
    world.extend((1..40).map(|index| node(&format!("n{index}"), &format!("192.0.2.{index}/24"))));
    let answer = ask(&world, "10.96.0.0/12", None, None);
    assert_eq!(answer.nodes.len(), 20);
    assert!(answer.is_well && answer.notes[0].contains("other nodes tell it as well"));
    let answer = ask(&world, "10.96.0.0/12", Some("n9"), None);
    assert!(answer.is_well && answer.nodes.len() == 1, "{answer:#?}");
    assert_eq!(answer.nodes[0].told.len(), 38);
}
