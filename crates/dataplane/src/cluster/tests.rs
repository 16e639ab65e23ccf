//! Routes as they follow from what is known.

mod kernel;

use ipnet::IpNet;
use tortie_engine::Message;
use tortie_engine::message::{
    Encapsulation, Host, PoolType, Route as Told, RouteTypes, TunnelType, Vtep,
};
use tortie_kernel::route::{Kind, Protocol, Route, Scope};
use tortie_rules::IpVersion;

use super::ClusterOptions;
use super::topology::{Devices, Topology};
use crate::mtu::{MtuOptions, Mtus};

const PARENT: u32 = 11;
const VXLAN: u32 = 12;
const IPIP: u32 = 13;

fn options() -> ClusterOptions {
    ClusterOptions {
        hostname: "here".to_owned(),
        versions: vec![IpVersion::V4, IpVersion::V6],
        device_protocol: 3,
        workload_prefixes: vec!["cali".to_owned()],
        vxlan_id: 4096,
        vxlan_port: 4789,
        ipip_address: Some("10.65.9.9".parse().unwrap()),
        routes_of_ipip: true,
        mtu: MtuOptions::default(),
    }
}

fn mtus() -> Mtus {
    Mtus::new(Some(1500), &MtuOptions::default(), everything())
}

fn everything() -> Encapsulation {
    Encapsulation {
        ipip_enabled: true,
        vxlan_enabled: true,
        vxlan_enabled_v6: true,
        no_encap_enabled: true,
    }
}

fn told(dst: &str, types: RouteTypes, ip_pool_type: PoolType) -> Told {
    Told {
        dst: dst.parse().unwrap(),
        types,
        ip_pool_type,
        dst_node_name: "there".to_owned(),
        dst_node_ip: Some(if dst.contains(':') {
            "2001:db8::2".parse().unwrap()
        } else {
            "192.0.2.2".parse().unwrap()
        }),
        same_subnet: false,
        nat_outgoing: false,
        local_workload: false,
        tunnel_type: None,
        borrowed: false,
    }
}

fn end(node: &str, number: u8) -> Message {
    Message::VtepUpdate(Vtep {
        node: node.to_owned(),
        mac: format!("66:00:00:00:00:0{number}"),
        ipv4_addr: Some([10, 65, number, 1].into()),
        parent_device_ip: Some([192, 0, 2, number].into()),
        mac_v6: format!("66:00:00:00:06:0{number}"),
        ipv6_addr: Some(format!("fd00:{number}::1").parse().unwrap()),
        parent_device_ipv6: Some(format!("2001:db8::{number}").parse().unwrap()),
    })
}

fn topology(encapsulation: Encapsulation) -> Topology {
    let mut topology = Topology::default();
    topology.on_message(&Message::Encapsulation(encapsulation));
    topology.on_message(&end("here", 1));
    topology.on_message(&end("there", 2));
    topology
}

#[track_caller]
fn check(told: Told, options: &ClusterOptions, expected: Option<Route>) {
    let version = match told.dst {
        IpNet::V4(_) => IpVersion::V4,
        IpNet::V6(_) => IpVersion::V6,
    };
    let mut topology = topology(everything());
    topology.on_message(&Message::RouteUpdate(told));
    let devices = Devices {
        parent: Some(PARENT),
        vxlan: Some(VXLAN),
        ipip: Some(IPIP),
    };
    let routes = topology.routes(version, devices, &mtus(), options);
    assert_eq!(routes.ours, Vec::from_iter(expected));
}

fn to(destination: &str) -> Route {
    Route::to(destination.parse().unwrap())
}

const REMOTE: RouteTypes = RouteTypes::REMOTE_WORKLOAD;

#[test]
fn another_subnet_is_reached_through_the_tunnel_of_the_pool() {
    let vxlan = Route {
        device: Some(VXLAN),
        gateway: Some("10.65.2.1".parse().unwrap()),
        on_link: true,
        mtu: Some(1450),
        ..to("10.65.2.0/26")
    };
    check(
        told("10.65.2.0/26", REMOTE, PoolType::Vxlan),
        &options(),
        Some(vxlan),
    );
    let vxlan_v6 = Route {
        device: Some(VXLAN),
        gateway: Some("fd00:2::1".parse().unwrap()),
        on_link: true,
        mtu: Some(1430),
        ..to("fd00:2::/122")
    };
    check(
        told("fd00:2::/122", REMOTE, PoolType::Vxlan),
        &options(),
        Some(vxlan_v6),
    );
    let ipip = Route {
        device: Some(IPIP),
        gateway: Some("192.0.2.2".parse().unwrap()),
        on_link: true,
        protocol: Protocol::CALICO,
        mtu: Some(1480),
        ..to("10.65.2.0/26")
    };
    check(
        told("10.65.2.0/26", REMOTE, PoolType::Ipip),
        &options(),
        Some(ipip),
    );
}

#[test]
fn the_same_subnet_needs_no_tunnel() {
    let direct = Route {
        device: Some(PARENT),
        gateway: Some("192.0.2.2".parse().unwrap()),
        on_link: true,
        protocol: Protocol::CALICO,
        ..to("10.65.2.0/26")
    };
    for pool in [PoolType::Vxlan, PoolType::Ipip] {
        let mut near = told("10.65.2.0/26", REMOTE, pool);
        near.same_subnet = true;
        check(near, &options(), Some(direct.clone()));
    }
    let plain = told("10.65.2.0/26", REMOTE, PoolType::NoEncap);
    check(plain, &options(), Some(direct));
}

#[test]
fn routes_that_bgp_makes_are_left_to_it() {
    let by_bgp = ClusterOptions {
        routes_of_ipip: false,
        ..options()
    };
    let ipip = told("10.65.2.0/26", REMOTE, PoolType::Ipip);
    check(ipip, &by_bgp, None);
    let mut topology = topology(Encapsulation {
        no_encap_enabled: false,
        ..everything()
    });
    let plain = told("10.65.2.0/26", REMOTE, PoolType::NoEncap);
    topology.on_message(&Message::RouteUpdate(plain));
    let devices = Devices {
        parent: Some(PARENT),
        ..Devices::default()
    };
    let routes = topology.routes(IpVersion::V4, devices, &mtus(), &options());
    assert_eq!(routes.ours, []);
    assert_eq!(routes.others.len(), 1);
}

#[test]
fn the_end_of_a_tunnel_is_on_the_link() {
    let both = RouteTypes(RouteTypes::REMOTE_TUNNEL.0 | REMOTE.0);
    let expected = Route {
        device: Some(VXLAN),
        scope: Scope::LINK,
        mtu: Some(1450),
        ..to("10.65.2.1/32")
    };
    check(
        told("10.65.2.1/32", both, PoolType::Vxlan),
        &options(),
        Some(expected.clone()),
    );
    let mut borrowed = told("10.65.2.1/32", RouteTypes::REMOTE_TUNNEL, PoolType::Vxlan);
    borrowed.tunnel_type = Some(TunnelType {
        vxlan: true,
        ..TunnelType::default()
    });
    check(borrowed.clone(), &options(), None);
    borrowed.borrowed = true;
    check(borrowed, &options(), Some(expected));
}

#[test]
fn our_own_blocks_end_here() {
    let local = RouteTypes::LOCAL_WORKLOAD;
    let closed = Route {
        kind: Kind::Blackhole,
        protocol: Protocol::CALICO,
        ..to("10.65.1.0/26")
    };
    check(
        told("10.65.1.0/26", local, PoolType::Vxlan),
        &options(),
        Some(closed.clone()),
    );
    let chosen = ClusterOptions {
        device_protocol: 100,
        ..options()
    };
    let closed = Route {
        protocol: Protocol(100),
        ..closed
    };
    check(
        told("10.65.1.0/26", local, PoolType::Vxlan),
        &chosen,
        Some(closed),
    );
    // A single address may be a pod's that is just coming.
    let single = told("10.65.1.7/32", local, PoolType::Vxlan);
    check(single, &options(), None);
    let mut pod = told("10.65.1.0/28", local, PoolType::Vxlan);
    pod.local_workload = true;
    check(pod, &options(), None);
}

#[test]
fn without_knowing_the_other_node_there_is_no_route() {
    let mut unknown = told("10.65.2.0/26", REMOTE, PoolType::Vxlan);
    unknown.dst_node_name = "nobody".to_owned();
    check(unknown, &options(), None);
    let mut unknown = told("10.65.2.0/26", REMOTE, PoolType::Ipip);
    unknown.dst_node_name = "nobody".to_owned();
    check(unknown, &options(), None);
}

#[test]
fn the_nodes_own_address_is_known_without_a_tunnel() {
    let mut topology = Topology::default();
    topology.on_message(&Message::HostMetadataUpdate(Host {
        hostname: "here".to_owned(),
        ipv4_addr: "192.0.2.1/24".to_owned(),
        ..Host::default()
    }));
    let address = topology.node_address("here", IpVersion::V4);
    assert_eq!(address, Some("192.0.2.1".parse().unwrap()));
    assert_eq!(topology.node_address("here", IpVersion::V6), None);
}
