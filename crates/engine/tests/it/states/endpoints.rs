//! What else the data plane learns of workloads: addresses, floating addresses, limits, several interfaces.

use tortie_engine::Update;
use tortie_engine::input::{IpNat, QosControls};

use crate::states::build::{Object, host, pod, policy};
use crate::states::list::{check, world};

#[test]
fn addresses_of_a_workload_change() {
    check([
        world([pod("a").ip("10.0.0.1"), policy("p")]).gives(
            "policy gnp/p
             pod a 10.0.0.1 | default=deny both gnp/p",
        ),
        world([
            pod("a").ip("10.0.0.1").ip("10.0.0.2").ip("fd00::1"),
            policy("p"),
        ])
        .gives(
            "policy gnp/p
             pod a 10.0.0.1 10.0.0.2 fd00::1 | default=deny both gnp/p",
        ),
        world([pod("a").ip("10.0.0.2").ip("10.0.0.1"), policy("p")]).gives(
            "policy gnp/p
             pod a 10.0.0.2 10.0.0.1 | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn floating_addresses_go_by_family() {
    let nat = |external: &str, internal: &str| IpNat {
        external: external.parse().unwrap(),
        internal: internal.parse().unwrap(),
    };
    check([
        world([pod("a")
            .ip("10.0.0.1")
            .ip("fd00::1")
            .change_pod(|endpoint| {
                endpoint.nats = vec![nat("fd01::1", "fd00::1"), nat("192.0.2.1", "10.0.0.1")];
            })])
        .gives("pod a 10.0.0.1 fd00::1 | nat 192.0.2.1 to 10.0.0.1 | nat fd01::1 to fd00::1"),
        world([pod("a").ip("10.0.0.1")]).gives("pod a 10.0.0.1"),
    ]);
}

#[test]
fn limits_on_traffic_forbid_short_cuts_and_marks_are_passed_on() {
    let with = |qos: QosControls| {
        world([
            pod("a").change_pod(|endpoint| endpoint.qos = Some(qos)),
            host("h").change_host(|endpoint| endpoint.dscp = qos.dscp),
        ])
    };
    let none = QosControls::default();
    check([
        with(QosControls {
            ingress_bandwidth: 1_000_000,
            dscp: Some(46),
            ..none
        })
        .gives(
            "pod a | dscp 46 | no short cut in
             host h on eth0 | dscp 46",
        ),
        with(QosControls {
            egress_packet_rate: 100,
            dscp: Some(0),
            ..none
        })
        .gives(
            "pod a | dscp 0 | no short cut out
             host h on eth0 | dscp 0",
        ),
        with(QosControls {
            ingress_packet_rate: 5,
            egress_bandwidth: 1_000,
            ..none
        })
        .gives(
            "pod a | no short cut in out
             host h on eth0",
        ),
        with(QosControls {
            ingress_max_connections: 5,
            ..none
        })
        .gives(
            "pod a
             host h on eth0",
        ),
    ]);
}

/// The same workload with another interface, or of another orchestrator.
fn another(mut object: Object, orchestrator: &str, endpoint: &str) -> Object {
    if let Update::WorkloadEndpoint(key, _) = &mut object.0 {
        orchestrator.clone_into(&mut key.orchestrator);
        endpoint.clone_into(&mut key.endpoint);
    }
    object
}

#[test]
fn interfaces_of_a_workload_are_endpoints_of_their_own() {
    let first = || pod("a").ip("10.0.0.1").label("net", "main");
    let second = || another(pod("a").ip("10.9.0.1").label("net", "side"), "k8s", "net1");
    let foreign = || another(pod("a").ip("10.0.0.3"), "openstack", "eth0");
    let p = || policy("p").selector("net == 'side'");
    check([
        world([p(), first(), second()]).gives(
            "policy gnp/p for net == 'side'
             pod a 10.0.0.1
             pod k8s/default/a/net1 10.9.0.1 | default=deny both gnp/p",
        ),
        world([p(), first(), foreign()]).gives(
            "pod a 10.0.0.1
             pod openstack/default/a/eth0 10.0.0.3",
        ),
        world([p(), second()]).gives(
            "policy gnp/p for net == 'side'
             pod k8s/default/a/net1 10.9.0.1 | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn pods_and_hosts_of_one_name_are_different() {
    check([
        world([
            pod("a").ip("10.0.0.1"),
            host("a").ip("192.168.0.1"),
            policy("p"),
        ])
        .gives(
            "policy gnp/p
             pod a 10.0.0.1 | default=deny both gnp/p
             host a on eth0 192.168.0.1 | default=deny both gnp/p",
        ),
        world([host("a").ip("192.168.0.1"), policy("p")]).gives(
            "policy gnp/p
             host a on eth0 192.168.0.1 | default=deny both gnp/p",
        ),
        world([pod("a").ip("10.0.0.1"), policy("p")]).gives(
            "policy gnp/p
             pod a 10.0.0.1 | default=deny both gnp/p",
        ),
    ]);
}
