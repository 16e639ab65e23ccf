//! Random packets between what is in a world and what is outside of it.

use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use tortie_api::Resource;
use tortie_api::scalar::Protocol;
use tortie_engine::input::Icmp;
use tortie_engine::verdict::{End, EndpointKey, Flow};

use crate::verdict::evaluate::party::{host_key, nets, workload_key};
use crate::verdict::world::World;

/// A packet whose ends are chosen once the world is known.
#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    is_v6: bool,
    source: Index,
    destination: Index,
    protocol: Option<Protocol>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    icmp: Option<Icmp>,
}

/// Addresses outside of any endpoint, some of them in network sets, and one that workloads may have.
const OUTSIDE: [&str; 8] = [
    "1.1.1.1",
    "10.0.0.1",
    "10.0.0.99",
    "192.168.0.2",
    "203.0.113.5",
    "2001:db8::1",
    "fd00::2",
    "2002::1",
];

const PORTS: [u16; 12] = [22, 53, 68, 79, 80, 81, 82, 443, 2379, 8080, 8081, 65535];

/// Any packet.
pub(crate) fn sketch() -> impl Strategy<Value = Sketch> {
    let with_ports = (
        select(vec![
            Protocol::Tcp,
            Protocol::Tcp,
            Protocol::Number(6),
            Protocol::Udp,
            Protocol::Sctp,
        ]),
        prop::option::weighted(0.95, select(PORTS.to_vec())),
        prop::option::of(select(vec![53_u16, 80, 8080, 40_000])),
    );
    let with_ports = with_ports.prop_map(|(protocol, to, from)| (Some(protocol), to, from, None));
    let icmp = (
        select(vec![8_u8, 0, 128]),
        prop::option::weighted(0.9, 0..2_u8),
    );
    let icmp = prop::option::weighted(0.9, icmp);
    let is_icmp = (
        select(vec![Protocol::Icmp, Protocol::Icmpv6, Protocol::Number(1)]),
        icmp,
    );
    let is_icmp = is_icmp.prop_map(|(protocol, icmp)| {
        let icmp = icmp.map(|(r#type, code)| Icmp { r#type, code });
        (Some(protocol), None, None, icmp)
    });
    let others = vec![None, Some(Protocol::Number(47)), Some(Protocol::UdpLite)];
    let other = select(others).prop_map(|protocol| (protocol, None, None, None));
    let packet = prop_oneof![8 => with_ports, 2 => is_icmp, 1 => other];
    let parts = (
        prop::bool::weighted(0.3),
        any::<Index>(),
        any::<Index>(),
        packet,
    );
    parts.prop_map(|(is_v6, source, destination, packet)| {
        let (protocol, destination_port, source_port, icmp) = packet;
        Sketch {
            is_v6,
            source,
            destination,
            protocol,
            source_port,
            destination_port,
            icmp,
        }
    })
}

impl Sketch {
    /// The packet in this world.
    pub(crate) fn flow(&self, ends: &[End]) -> Flow {
        let ends = ends.iter();
        let ends: Vec<&End> = ends
            .filter(|end| end.address.is_ipv6() == self.is_v6)
            .collect();
        let pick = |index: &Index| (*index.get(&ends)).clone();
        Flow {
            source: pick(&self.source),
            destination: pick(&self.destination),
            protocol: self.protocol.clone(),
            source_port: self.source_port,
            destination_port: self.destination_port,
            icmp: self.icmp,
        }
    }
}

/// All ends that packets can have: every address of every endpoint, and those outside.
pub(crate) fn ends(world: &World) -> Vec<End> {
    let outside = OUTSIDE.iter().map(|text| End {
        address: text.parse().expect("an address"),
        endpoint: None,
    });
    let inside = || {
        world.resources().flat_map(|resource| match resource {
            Resource::WorkloadEndpoint(endpoint) => {
                at(&endpoint.spec.ip_networks, &workload_key(endpoint))
            }
            // The addresses of a host need not be known.
            Resource::HostEndpoint(host) => {
                let unknown = [String::from("192.168.0.9"), String::from("fd00:1::9")];
                let addresses = [&host.spec.expected_ips[..], &unknown].concat();
                at(&addresses, &host_key(&host.metadata, &host.spec))
            }
            _ => Vec::new(),
        })
    };
    // Most packets should have to do with policies.
    outside
        .chain(inside())
        .chain(inside())
        .chain(inside())
        .chain(inside())
        .collect()
}

fn at(addresses: &[String], key: &EndpointKey) -> Vec<End> {
    let addresses = nets(addresses).into_iter().map(|net| net.addr());
    let end = |address: IpAddr| End {
        address,
        endpoint: Some(key.clone()),
    };
    addresses.map(end).collect()
}
