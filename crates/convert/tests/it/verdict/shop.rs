//! The cluster that rules are tried in, and packets of it.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};
use tortie_api::Resource;
use tortie_api::scalar::Protocol;
use tortie_engine::input::{HostEndpointKey, Icmp, WorkloadEndpointKey};
use tortie_engine::verdict::{End, EndpointKey, Flow};

use crate::verdict::world::Object;

/// A shop: the pod `web` (`10.0.0.1`, `fd00::1`) talks to the pod `db` (`10.0.0.2`, `fd00::2`), which calls its port
/// 5432 `sql`. Outside are a host and a network set.
pub(crate) fn objects() -> Vec<Object> {
    let namespace = json!({"metadata": {
        "name": "shop",
        "labels": {"env": "prod"},
        "uid": "30316465-6365-4463-ad63-3564622d3638",
    }});
    let namespace: Namespace = serde_json::from_value(namespace).expect("a namespace");
    let slice = json!({
        "metadata": {"namespace": "shop", "name": "db-1", "labels": {"kubernetes.io/service-name": "db"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.2"]}],
        "ports": [{"port": 5432, "protocol": "TCP"}],
    });
    let slice: EndpointSlice = serde_json::from_value(slice).expect("a slice");
    let pod = |name: &str, number: u8, ports: Value| {
        resource(
            "WorkloadEndpoint",
            &json!({
                "metadata": {
                    "namespace": "shop",
                    "name": format!("n1-k8s-{name}-eth0"),
                    "labels": {"app": name},
                },
                "spec": {
                    "orchestrator": "k8s",
                    "node": "n1",
                    "pod": name,
                    "endpoint": "eth0",
                    "interfaceName": format!("cali{name}"),
                    "serviceAccountName": format!("{name}-account"),
                    "ipNetworks": [format!("10.0.0.{number}/32"), format!("fd00::{number}/128")],
                    "profiles": ["kns.shop"],
                    "ports": ports,
                },
            }),
        )
    };
    let sql =
        json!([{"name": "sql", "protocol": "TCP", "port": 5432, "hostPort": 0, "hostIP": ""}]);
    vec![
        Object::Namespace(namespace),
        Object::Slice(slice),
        pod("web", 1, json!([])),
        pod("db", 2, sql),
        resource(
            "HostEndpoint",
            &json!({
                "metadata": {"name": "n1-eth0", "labels": {"rack": "7"}},
                "spec": {"node": "n1", "interfaceName": "eth0", "expectedIPs": ["192.168.0.1"]},
            }),
        ),
        resource(
            "GlobalNetworkSet",
            &json!({"metadata": {"name": "partners", "labels": {"role": "partner"}}, "spec": {"nets": ["203.0.113.0/24"]}}),
        ),
    ]
}

pub(crate) fn resource(kind: &str, value: &Value) -> Object {
    let mut value = value.clone();
    value["apiVersion"] = json!("projectcalico.org/v3");
    value["kind"] = json!(kind);
    Object::Resource(Resource::decode_strict(&value).expect("a resource"))
}

/// From `web` to port 5432 of `db`.
pub(crate) fn query() -> Flow {
    Flow {
        source: pod("web", "10.0.0.1"),
        destination: pod("db", "10.0.0.2"),
        protocol: Some(Protocol::Tcp),
        source_port: Some(40_000),
        destination_port: Some(5432),
        icmp: None,
    }
}

pub(crate) fn ping() -> Flow {
    Flow {
        protocol: Some(Protocol::Icmp),
        source_port: None,
        destination_port: None,
        icmp: Some(Icmp {
            r#type: 8,
            code: Some(0),
        }),
        ..query()
    }
}

pub(crate) fn pod(name: &str, address: &str) -> End {
    End {
        address: address.parse().expect("an address"),
        endpoint: Some(EndpointKey::Workload(WorkloadEndpointKey {
            node: "n1".to_owned(),
            orchestrator: "k8s".to_owned(),
            workload: format!("shop/{name}"),
            endpoint: "eth0".to_owned(),
        })),
    }
}

pub(crate) fn outside(address: &str) -> End {
    End {
        address: address.parse().expect("an address"),
        endpoint: None,
    }
}

pub(crate) fn host() -> End {
    End {
        address: "192.168.0.1".parse().expect("an address"),
        endpoint: Some(EndpointKey::Host(HostEndpointKey {
            node: "n1".to_owned(),
            name: "n1-eth0".to_owned(),
        })),
    }
}
