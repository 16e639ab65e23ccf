use serde_json::{Value, json};

use super::*;

fn kube_node(node: Value) -> KubeNode {
    serde_json::from_value(node).unwrap()
}

fn convert(node_json: Value, use_pod_cidr: bool) -> Value {
    let node = node(&kube_node(node_json), use_pod_cidr).resource.unwrap();
    serde_json::to_value(node).unwrap()
}

#[test]
fn annotations_and_status_become_the_spec() {
    let converted = convert(
        json!({
            "metadata": {"name": "n1", "uid": "u1", "resourceVersion": "7", "labels": {"a": "k8s"}, "annotations": {
                "projectcalico.org/IPv4Address": "10.0.0.1/24",
                "projectcalico.org/ASNumber": "64512",
                "projectcalico.org/IPv4IPIPTunnelAddr": "192.168.0.1",
                "projectcalico.org/IPv6VXLANTunnelAddr": "10.0.0.1",
                "projectcalico.org/WireguardPublicKey": "key",
                "projectcalico.org/Interfaces": r#"[{"name":"eth0","addresses":["10.0.0.1","x"]}]"#,
                "projectcalico.org/labels": r#"{"a":"calico","b":"calico"}"#,
            }},
            "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]},
            "status": {"addresses": [
                {"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "10.0.0.1"},
            ]},
        }),
        false,
    );
    let expected = json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": "Node",
        "metadata": {
            "name": "n1", "uid": "u1", "resourceVersion": "7", "labels": {"a": "k8s", "b": "calico"},
            "annotations": {"projectcalico.org/kube-labels": r#"{"a":"k8s"}"#},
        },
        "spec": {
            "addresses": [
                {"address": "10.0.0.1/24", "type": "CalicoNodeIP"}, {"address": "10.0.0.1", "type": "InternalIP"},
            ],
            "bgp": {"asNumber": 64512, "ipv4Address": "10.0.0.1/24", "ipv4IPIPTunnelAddr": "192.168.0.1"},
            "interfaces": [{"name": "eth0", "addresses": ["10.0.0.1"]}],
            "orchRefs": [{"nodeName": "n1", "orchestrator": "k8s"}],
        },
        "status": {"podCIDRs": ["10.1.0.0/24"], "wireguardPublicKey": "key"},
    });
    assert_eq!(converted, expected);
}

#[test]
fn with_pod_cidrs_the_tunnel_address_is_the_first_of_the_cidr() {
    let node = json!({
        "metadata": {"name": "n1", "annotations": {"projectcalico.org/IPv4IPIPTunnelAddr": "192.168.0.1"}},
        "spec": {"podCIDR": "10.1.0.0/24"},
    });
    assert_eq!(
        convert(node, true)["spec"]["bgp"],
        json!({"ipv4IPIPTunnelAddr": "10.1.0.1"})
    );
}

#[test]
fn an_update_writes_back_only_what_is_calicos_own() {
    let mut kube = kube_node(json!({
        "metadata": {"name": "n1", "labels": {"a": "k8s"}, "annotations": {
            "other": "stays",
            "projectcalico.org/IPv4Address": "10.0.0.1/24",
            "projectcalico.org/IPv4VXLANTunnelAddr": "192.168.0.1",
        }},
    }));
    let mut calico = node(&kube, false).resource.unwrap();
    calico.metadata.labels.insert("b".into(), "calico".into());
    calico.spec.ipv4_vxlan_tunnel_addr.clear();
    calico.spec.bgp.as_mut().unwrap().as_number = Some(crate::scalar::AsNumber(65000));
    update_node(&calico, &mut kube).unwrap();

    let expected = json!({
        "other": "stays",
        "projectcalico.org/ASNumber": "65000",
        "projectcalico.org/IPv4Address": "10.0.0.1/24",
        "projectcalico.org/labels": r#"{"b":"calico"}"#,
    });
    assert_eq!(json!(kube.metadata.annotations), expected);
    assert_eq!(json!(kube.metadata.labels), json!({"a": "k8s"}));
    assert_eq!(node(&kube, false).resource.unwrap(), calico);
}

#[test]
fn annotations_that_cannot_be_read_are_noted_and_ignored() {
    let kube = kube_node(json!({
        "metadata": {"name": "n1", "annotations": {
            "projectcalico.org/IPv4Address": "fd00::1/64",
            "projectcalico.org/labels": "{",
        }},
    }));
    let converted = node(&kube, false);
    assert_eq!(converted.resource.unwrap().spec.bgp, None);
    assert_eq!(converted.problems.iter().count(), 2);
}
