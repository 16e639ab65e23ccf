//! Endpoints and network sets.

use serde_json::{Value, json};
use tortie_api::Kind;

use super::{Converter, convert, only_update, problems, resource, value_of, with_metadata};
use crate::Fidelity;
use tortie_engine::input::{HostEndpointKey, Update};

const NAME: &str = "node--a-k8s-web--1-eth0";

fn endpoint(spec: &Value) -> tortie_api::Resource {
    resource(Kind::WorkloadEndpoint, "shop", NAME, spec)
}

#[test]
fn a_workload_endpoint_is_reduced_to_what_is_enforced() {
    let metadata = json!({
        "name": NAME, "namespace": "shop",
        "labels": {
            "a": "b", "pcns.x": "y", "pcsa.x": "y", "projectcalico.org/namespace": "shop",
            "projectcalico.org/serviceaccount": "old",
        },
        "annotations": {"k": "v"},
    });
    let spec = json!({
        "interfaceName": "cali1", "mac": "AA-BB-CC-00-11-22", "profiles": ["kns.shop"],
        "serviceAccountName": "sa",
        "ipNetworks": ["10.0.0.1/32", "fd00::1", "10.0.0.2"],
        "ipNATs": [
            {"internalIP": "10.0.0.1", "externalIP": "192.0.2.1"},
            {"internalIP": "fd00::1", "externalIP": "fd01::1"},
        ],
        "ports": [
            {"name": "http", "protocol": "TCP", "port": 80, "hostPort": 0, "hostIP": ""},
            {"name": "", "protocol": "TCP", "port": 81, "hostPort": 8081, "hostIP": ""},
        ],
        "allowSpoofedSourcePrefixes": ["10.9.9.9/8"],
        "qosControls": {"ingressBandwidth": 1000, "egressPacketRate": 5, "dscp": "AF21"},
    });
    let update = only_update(&with_metadata(Kind::WorkloadEndpoint, &metadata, &spec));
    let expected = json!({
        "interface": "cali1", "mac": "aa:bb:cc:00:11:22", "profiles": ["kns.shop"],
        "labels": {
            "a": "b", "projectcalico.org/namespace": "shop",
            "projectcalico.org/serviceaccount": "sa",
        },
        "ipv4Nets": ["10.0.0.1/32", "10.0.0.2/32"], "ipv6Nets": ["fd00::1/128"],
        "nats": [
            {"external": "192.0.2.1", "internal": "10.0.0.1"},
            {"external": "fd01::1", "internal": "fd00::1"},
        ],
        "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
        "allowSpoofedSourcePrefixes": ["10.0.0.0/8"],
        "annotations": {"k": "v"},
        "qos": {"ingressBandwidth": 1000, "egressPacketRate": 5, "dscp": 18},
    });
    assert_eq!(value_of(&update), expected);
}

#[test]
fn the_key_of_a_workload_endpoint_comes_from_its_name() {
    let check = |name: &str, expected: Option<[&str; 4]>| {
        let updates = Converter::new().remove(Kind::WorkloadEndpoint, "ns", name);
        let key = updates.first().map(|update| match update {
            Update::WorkloadEndpoint(key, None) => key.clone(),
            other => panic!("{other:?}"),
        });
        let parts = key.as_ref().map(|key| {
            [&key.node, &key.orchestrator, &key.workload, &key.endpoint].map(String::as_str)
        });
        assert_eq!(parts, expected, "{name}");
    };
    check(NAME, Some(["node-a", "k8s", "ns/web-1", "eth0"]));
    check("n-cni-0123-eth0", Some(["n", "cni", "ns/0123", "eth0"]));
    check(
        "n-libnetwork-libnetwork-eth0",
        Some(["n", "libnetwork", "ns/libnetwork", "eth0"]),
    );
    check("n-nova-vm-eth0", Some(["n", "nova", "ns/vm", "eth0"]));
    check("n-k8s-pod", None);
    check("n-k8s-pod-eth0-x", None);
    check("", None);

    let spec = json!({"interfaceName": "cali1", "ipNetworks": ["10.0.0.1"]});
    for (namespace, name) in [("", NAME), ("ns", "web")] {
        let converted = convert(&resource(Kind::WorkloadEndpoint, namespace, name, &spec));
        assert_eq!(converted.updates, []);
        let problems = problems(&converted);
        assert!(
            problems[0].contains(&format!("metadata.name = \"{name}\": ")),
            "{problems:?}"
        );
    }
}

#[test]
fn a_workload_endpoint_without_addresses_is_absent_and_no_problem() {
    let update = only_update(&endpoint(&json!({"interfaceName": "cali1"})));
    assert_eq!(value_of(&update), Value::Null);
}

#[test]
fn a_workload_endpoint_that_cannot_be_read_is_absent() {
    let check = |field: &str, value: Value, expected: &str| {
        let mut spec = json!({"interfaceName": "cali1", "ipNetworks": ["10.0.0.1"]});
        spec[field] = value;
        let converted = convert(&endpoint(&spec));
        assert_eq!(value_of(&converted.updates[0]), Value::Null, "{spec}");
        let problems = problems(&converted);
        assert!(
            problems.iter().any(|text| text.contains(expected)),
            "{problems:?}"
        );
    };
    check(
        "ipNetworks",
        json!(["10.0.0.1", "x"]),
        "spec.ipNetworks[1] = \"x\"",
    );
    check("mac", json!("aa:bb"), "spec.mac = \"aa:bb\"");
    check(
        "allowSpoofedSourcePrefixes",
        json!(["10.0.0.0/40"]),
        "spec.allowSpoofedSourcePrefixes[0] = \"10.0.0.0/40\"",
    );
    check(
        "interfaceName",
        json!(""),
        "spec.interfaceName: must be given",
    );
}

#[test]
fn what_does_not_matter_to_policy_is_left_out_alone() {
    let converted = convert(&endpoint(&json!({
        "interfaceName": "cali1", "ipNetworks": ["10.0.0.1"],
        "ipNATs": [{"internalIP": "x", "externalIP": "192.0.2.1"}],
        "qosControls": {"egressBurst": 1, "dscp": 64},
    })));
    let expected = json!({
        "interface": "cali1", "ipv4Nets": ["10.0.0.1/32"], "qos": {"egressBurst": 1}
    });
    assert_eq!(value_of(&converted.updates[0]), expected);
    assert_eq!(converted.problems.len(), 2);
}

#[test]
fn a_host_endpoint_leaves_its_old_node_first() {
    let host = |node: &str| {
        let metadata = json!({
            "name": "h", "labels": {"pcns.a": "b"},
            "annotations": {"qos.projectcalico.org/dscp": "ef"},
        });
        let spec = json!({
            "node": node, "interfaceName": "eth0", "expectedIPs": ["fd00::1", "x", "10.0.0.1"],
            "profiles": ["p"], "ports": [{"name": "ssh", "protocol": "TCP", "port": 22}],
        });
        with_metadata(Kind::HostEndpoint, &metadata, &spec)
    };
    let key = |node: &str| HostEndpointKey {
        node: node.to_owned(),
        name: "h".to_owned(),
    };
    let mut converter = Converter::new();
    let first = converter.set(&host("n1"));
    assert_eq!(first.problems.len(), 1, "{:?}", problems(&first));
    let expected = json!({
        "interface": "eth0", "expectedIps": ["fd00::1", "10.0.0.1"], "labels": {"pcns.a": "b"},
        "profiles": ["p"], "ports": [{"name": "ssh", "protocol": "TCP", "port": 22}], "dscp": 46,
    });
    assert_eq!(value_of(&first.updates[0]), expected);
    assert_eq!(converter.set(&host("n1")).updates, first.updates);

    let second = converter.set(&host("n2")).updates;
    assert_eq!(second[0], Update::HostEndpoint(key("n1"), None));
    assert!(matches!(&second[1], Update::HostEndpoint(to, Some(_)) if *to == key("n2")));
    assert_eq!(second.len(), 2);

    // What cannot be converted leaves what was there.
    let without_node = converter.set(&host(""));
    assert_eq!(without_node.updates, []);
    assert_eq!(without_node.fidelity, Fidelity::Open);
    assert!(problems(&without_node)[0].contains("spec.node: must be given"));
    assert_eq!(
        converter.remove(Kind::HostEndpoint, "", "h"),
        [Update::HostEndpoint(key("n2"), None)]
    );
    assert_eq!(converter.remove(Kind::HostEndpoint, "", "h"), []);
}

#[test]
fn a_network_set_belongs_to_its_namespace() {
    let metadata = json!({"name": "s", "namespace": "ns", "labels": {"a": "b"}});
    let spec = json!({"nets": ["10.1.2.3/16", "nowhere", "192.0.2.1", "fd00::/64"]});
    let nets = json!(["10.1.0.0/16", "192.0.2.1/32", "fd00::/64"]);

    let converted = convert(&with_metadata(Kind::NetworkSet, &metadata, &spec));
    assert!(matches!(&converted.updates[0], Update::NetworkSet(key, _) if key == "ns/s"));
    let labels = json!({"a": "b", "projectcalico.org/namespace": "ns"});
    let expected = json!({"labels": labels, "nets": nets, "profiles": ["kns.ns"]});
    assert_eq!(value_of(&converted.updates[0]), expected);
    let problem = "NetworkSet(ns/s): spec.nets[1] = \"nowhere\": must be an address or a CIDR";
    assert_eq!(problems(&converted), [problem]);

    let metadata = json!({"name": "s", "labels": {"a": "b"}});
    let converted = convert(&with_metadata(Kind::GlobalNetworkSet, &metadata, &spec));
    assert!(matches!(&converted.updates[0], Update::NetworkSet(key, _) if key == "s"));
    let expected = json!({"labels": {"a": "b"}, "nets": nets});
    assert_eq!(value_of(&converted.updates[0]), expected);
}
