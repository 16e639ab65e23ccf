//! Workloads, host endpoints and network sets.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::global_network_set::GlobalNetworkSetSpec;
use tortie_api::host_endpoint::{EndpointPort, HostEndpointSpec};
use tortie_api::network_set::NetworkSetSpec;
use tortie_api::scalar::Protocol;
use tortie_api::workload_endpoint::{WorkloadEndpointPort, WorkloadEndpointSpec};
use tortie_api::{GlobalNetworkSet, HostEndpoint, NetworkSet, WorkloadEndpoint};

use super::words::{
    ACCOUNTS, MISSING_PROFILE, NAMESPACES, NETS4, NETS6, NODES, PORT_NAMES, PORTS, labels,
    port_protocol,
};
use super::{maybe, resource, some};
use crate::verdict::world::Object;

pub(super) fn workload() -> impl Strategy<Value = Object> {
    let names = (
        some(&NAMESPACES),
        select(vec!["pod1", "pod2", "pod3"]),
        some(&NODES),
        prop::bool::weighted(0.9),
    );
    let addresses = (
        prop::option::weighted(0.95, 1..9_u8),
        prop::option::weighted(0.4, 1..9_u8),
    );
    let parts = (
        names,
        addresses,
        labels(),
        maybe(0.6, some(&ACCOUNTS)),
        select(vec![
            &[][..],
            &[],
            &[],
            &[],
            &[],
            &[],
            &["prof1"],
            &["prof2", "prof1"],
            &[MISSING_PROFILE],
        ]),
        prop::bool::weighted(0.8),
        ports(),
    );
    parts.prop_map(
        |(names, (v4, v6), labels, account, profiles, is_of_namespace, ports)| {
            let (namespace, name, node, is_pod) = names;
            let own = profiles.iter().map(|&name| name.to_owned());
            // Kubernetes' own have it always.
            let of_namespace = (is_pod || is_of_namespace).then(|| format!("kns.{namespace}"));
            let of_account = (!account.is_empty()).then(|| format!("ksa.{namespace}.{account}"));
            let v4 = v4.map(|n| format!("10.0.0.{n}/32"));
            let v6 = v6.map(|n| format!("fd00::{n}/128"));
            let spec = WorkloadEndpointSpec {
                orchestrator: if is_pod { "k8s" } else { "openstack" }.to_owned(),
                pod: if is_pod { name } else { "" }.to_owned(),
                workload: if is_pod { "" } else { name }.to_owned(),
                node,
                endpoint: "eth0".to_owned(),
                interface_name: format!("cali{namespace}{name}"),
                service_account_name: account,
                ip_networks: v4.into_iter().chain(v6).collect(),
                profiles: own.chain(of_namespace).chain(of_account).collect(),
                ports: ports
                    .into_iter()
                    .map(|(name, protocol, port)| WorkloadEndpointPort {
                        name,
                        protocol,
                        port,
                        ..WorkloadEndpointPort::default()
                    })
                    .collect(),
                ..WorkloadEndpointSpec::default()
            };
            let mut endpoint = WorkloadEndpoint::new(&namespace, "", spec);
            endpoint.metadata.labels = labels;
            resource(endpoint)
        },
    )
}

/// Some of them claim the address of a workload.
pub(super) fn host() -> impl Strategy<Value = Object> {
    let address = some(&["192.168.0.1", "192.168.0.2", "10.0.0.1", "fd00:1::1"]);
    let profile = some(&[
        "prof1",
        "prof2",
        MISSING_PROFILE,
        "projectcalico-default-allow",
    ]);
    let parts = (
        select(vec!["host1", "host2"]),
        some(&NODES),
        some(&["*", "eth0", ""]),
        btree_set(address, 0..3),
        btree_set(profile, 0..3),
        labels(),
        ports(),
    );
    parts.prop_map(
        |(name, node, interface_name, addresses, profiles, labels, ports)| {
            let spec = HostEndpointSpec {
                node,
                interface_name,
                expected_ips: list(addresses),
                profiles: list(profiles),
                ports: ports
                    .into_iter()
                    .map(|(name, protocol, port)| EndpointPort {
                        name,
                        protocol,
                        port,
                    })
                    .collect(),
            };
            let mut endpoint = HostEndpoint::new("", name, spec);
            endpoint.metadata.labels = labels;
            resource(endpoint)
        },
    )
}

pub(super) fn network_set() -> impl Strategy<Value = Object> {
    let parts = (some(&NAMESPACES), some(&["set1", "set2"]), nets(), labels());
    parts.prop_map(|(namespace, name, nets, labels)| {
        let mut set = NetworkSet::new(&namespace, &name, NetworkSetSpec { nets });
        set.metadata.labels = labels;
        resource(set)
    })
}

pub(super) fn global_network_set() -> impl Strategy<Value = Object> {
    let parts = (some(&["set1", "set2"]), nets(), labels());
    parts.prop_map(|(name, nets, labels)| {
        let mut set = GlobalNetworkSet::new("", &name, GlobalNetworkSetSpec { nets });
        set.metadata.labels = labels;
        resource(set)
    })
}

/// Networks of both IP versions, one within another, with and without bits beyond the prefix.
fn nets() -> impl Strategy<Value = Vec<String>> {
    let net = prop_oneof![
        4 => some(&NETS4),
        1 => some(&["10.0.0.1/30", "10.0.0.7/29"]),
        2 => some(&NETS6),
    ];
    btree_set(net, 0..4).prop_map(list)
}

/// Ports with names; a name may stand for several.
fn ports() -> impl Strategy<Value = Vec<(String, Protocol, u16)>> {
    let port = (some(&PORT_NAMES), port_protocol(), select(PORTS.to_vec()));
    vec(port, 0..4).prop_map(|ports| {
        let ports = ports.into_iter().map(|port| (format!("{port:?}"), port));
        ports.collect::<BTreeMap<_, _>>().into_values().collect()
    })
}

fn list(set: BTreeSet<String>) -> Vec<String> {
    set.into_iter().collect()
}
