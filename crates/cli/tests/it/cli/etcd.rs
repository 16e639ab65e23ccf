//! On a real etcd.

use tortie_testkit::Etcd;

use crate::cli::program::{Tortie, fixture};
use crate::cli::round_trip;

fn tortie(etcd: &Etcd) -> Tortie {
    Tortie::with_variables(vec![
        ("DATASTORE_TYPE", "etcdv3".to_owned()),
        ("ETCD_ENDPOINTS", etcd.endpoint().to_owned()),
    ])
}

#[test]
fn every_kind_survives_a_round_trip() {
    let etcd = Etcd::start().unwrap();
    let tortie = tortie(&etcd);
    round_trip::check(&tortie, "all-kinds.yaml", "json");
    round_trip::check(&tortie, "without-kubernetes.yaml", "yaml");
}

#[test]
fn keys_and_values_are_calicos() {
    let etcd = Etcd::start().unwrap();
    let tortie = tortie(&etcd);
    tortie.ok(&[
        "apply",
        "-f",
        &fixture("all-kinds.yaml").display().to_string(),
    ]);
    tortie.ok(&[
        "apply",
        "-f",
        &fixture("without-kubernetes.yaml").display().to_string(),
    ]);
    let keys = etcd
        .etcdctl(&["get", "--prefix", "/calico", "--keys-only"])
        .unwrap();
    for key in [
        "/calico/resources/v3/projectcalico.org/networkpolicies/shop/frontend",
        "/calico/resources/v3/projectcalico.org/globalnetworkpolicies/hosts",
        "/calico/resources/v3/projectcalico.org/tiers/default",
        "/calico/resources/v3/projectcalico.org/workloadendpoints/shop/n1-k8s-web--0-eth0",
        "/calico/resources/v3/projectcalico.org/clusterinformations/default",
        "/calico/ipam/v2/assignment/ipv4/block/10.65.0.64-30",
        "/calico/ipam/v2/host/n1/ipv4/block/10.65.0.64-26",
        "/calico/ipam/v2/handle/k8s-pod-network.abc",
    ] {
        assert!(keys.lines().any(|line| line == key), "no {key} in\n{keys}");
    }
    let key = "/calico/resources/v3/projectcalico.org/networkpolicies/shop/frontend";
    let value = etcd.etcdctl(&["get", key, "--print-value-only"]).unwrap();
    let value: serde_json::Value = serde_json::from_str(&value).unwrap();
    assert_eq!(value["kind"], "NetworkPolicy");
    assert_eq!(value["apiVersion"], "projectcalico.org/v3");
    assert_eq!(
        value["metadata"]["annotations"]["projectcalico.org/metadata"],
        "{\"name\":\"frontend\"}"
    );
    assert!(
        value["metadata"]
            .get("resourceVersion")
            .is_none_or(|v| v == ""),
        "{value}"
    );
    assert!(
        value["metadata"]["uid"].is_string() && value["metadata"]["creationTimestamp"].is_string()
    );
}

#[test]
fn an_etcd_that_is_not_there_is_named() {
    let tortie = Tortie::with_variables(vec![("ETCD_ENDPOINTS", "http://127.0.0.1:1".to_owned())]);
    let output = tortie.run(&["get", "tiers"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("127.0.0.1:1"), "{}", output.stderr);
}

#[test]
fn an_etcd_that_says_nothing_is_given_up() {
    // Connections are accepted by the kernel, and nobody answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let tortie = Tortie::with_variables(vec![("ETCD_ENDPOINTS", address.clone())]);
    let output = tortie.run(&["get", "tiers"]);
    let expected = format!(
        "Error: datastore is unavailable: etcd at {address} has not answered within 10 s; is it etcd that listens there?\n"
    );
    assert_eq!((output.code, output.stderr), (1, expected));
}
