use std::time::Instant;

use tortie_testkit::net::{Node, Packet, Pod, Ports, Probe, Prober, Site};

use crate::net::support::{Sites, World, probe, tcp, udp};

const ECHO_REQUEST: Packet = Packet::Icmp { kind: 8, code: 0 };
const ECHO_REQUEST_IPV6: Packet = Packet::Icmp { kind: 128, code: 0 };

#[track_caller]
fn check(sites: &mut Sites, probes: &[(Probe, bool)]) {
    let only: Vec<Probe> = probes.iter().map(|(probe, _)| *probe).collect();
    let arrived = sites.prober.probe_all(&only).unwrap();
    for ((probe, expected), arrived) in probes.iter().zip(arrived) {
        assert_eq!(arrived, *expected, "{probe:?}");
    }
}

/// Everyone with an address of each family.
fn everyone(sites: &Sites) -> [[(Site, &'static str); 4]; 2] {
    let names = [sites.a, sites.b, sites.stranger, sites.node];
    let zip = |addresses: [&'static str; 4]| std::array::from_fn(|i| (names[i], addresses[i]));
    [
        zip(["10.65.0.1", "10.65.0.2", "192.0.2.9", "192.0.2.1"]),
        zip(["fd00:65::1", "fd00:65::2", "2001:db8::9", "2001:db8::1"]),
    ]
}

#[test]
fn everything_arrives_at_everyone_through_a_plain_node() {
    let world = World::new();
    let mut sites = world.sites();
    let mut probes = Vec::new();
    for (family, all) in everyone(&sites).into_iter().enumerate() {
        let echo = [ECHO_REQUEST, ECHO_REQUEST_IPV6][family];
        for from in all {
            for to in all.into_iter().filter(|to| to.0 != from.0) {
                for packet in [
                    tcp(80),
                    udp(53),
                    Packet::UdpLite(Ports::to(9)),
                    Packet::Sctp(Ports::to(3868)),
                    echo,
                    Packet::Icmp { kind: 13, code: 7 },
                    Packet::Other(99),
                    Packet::Other(47),
                    Packet::Tcp(Ports {
                        source: Some(1234),
                        destination: 443,
                    }),
                ] {
                    probes.push((probe(from, to, packet), true));
                }
            }
        }
    }
    assert_eq!(probes.len(), 2 * 12 * 9);
    check(&mut sites, &probes);
}

#[test]
fn what_the_node_drops_on_the_way_does_not_arrive() {
    let world = World::new();
    world.filter(
        "forward",
        "iifname calia oifname calib tcp dport 80 drop; udp sport 1000 drop; sctp dport 5 drop; \
         icmp type echo-request drop; icmpv6 type echo-request drop; meta l4proto 99 drop",
    );
    let mut sites = world.sites();
    for all in everyone(&sites) {
        let [a, b, stranger, _] = all;
        let from_port = |source| {
            Packet::Udp(Ports {
                source: Some(source),
                destination: 53,
            })
        };
        let echo = if a.1.contains(':') {
            ECHO_REQUEST_IPV6
        } else {
            ECHO_REQUEST
        };
        let probes = [
            (probe(a, b, tcp(80)), false),
            (probe(b, a, tcp(80)), true),
            (probe(a, b, tcp(81)), true),
            (probe(a, stranger, from_port(1000)), false),
            (probe(a, stranger, from_port(1001)), true),
            (probe(stranger, b, Packet::Sctp(Ports::to(5))), false),
            (probe(stranger, b, Packet::Sctp(Ports::to(6))), true),
            (probe(a, b, echo), false),
            (probe(a, b, Packet::Icmp { kind: 13, code: 0 }), true),
            (probe(a, b, Packet::Other(99)), false),
            (probe(a, b, Packet::Other(98)), true),
        ];
        check(&mut sites, &probes);
    }
}

#[test]
fn the_nodes_own_filter_counts_for_what_it_sends_and_receives() {
    let world = World::new();
    world.filter("input", "tcp dport 80 drop");
    world.filter("output", "udp dport 53 drop");
    let mut sites = world.sites();
    for all in everyone(&sites) {
        let [a, _, stranger, node] = all;
        let probes = [
            (probe(stranger, node, tcp(80)), false),
            (probe(stranger, node, tcp(81)), true),
            (probe(a, node, tcp(80)), false),
            (probe(a, node, tcp(81)), true),
            (probe(node, a, udp(53)), false),
            (probe(node, a, udp(54)), true),
            (probe(a, stranger, udp(53)), true),
        ];
        check(&mut sites, &probes);
    }
}

#[test]
fn packets_that_conntrack_looks_into_are_well_formed() {
    let world = World::new();
    world.filter("forward", "ct state invalid drop; ct state != new drop");
    let mut sites = world.sites();
    for all in everyone(&sites) {
        let [a, b, stranger, _] = all;
        let echo = if a.1.contains(':') {
            ECHO_REQUEST_IPV6
        } else {
            ECHO_REQUEST
        };
        let packets = [
            tcp(80),
            udp(53),
            Packet::Sctp(Ports::to(5)),
            echo,
            Packet::Other(99),
        ];
        let probes: Vec<_> = packets
            .iter()
            .flat_map(|packet| [probe(a, b, *packet), probe(stranger, a, *packet)])
            .map(|probe| (probe, true))
            .collect();
        check(&mut sites, &probes);
    }
}

#[test]
fn what_arrives_elsewhere_has_not_arrived() {
    let world = World::new();
    let mut sites = world.sites();
    for [a, b, stranger, _] in everyone(&sites) {
        let elsewhere = probe(a, (b.0, stranger.1), udp(53));
        let probes = [(elsewhere, false), (probe(a, stranger, udp(53)), true)];
        check(&mut sites, &probes);
    }
}

#[test]
fn addresses_of_two_families_are_refused() {
    let world = World::new();
    let mut sites = world.sites();
    let mixed = probe((sites.a, "10.65.0.1"), (sites.b, "fd00:65::2"), tcp(80));
    let error = sites.prober.probe_all(&[mixed]).unwrap_err();
    assert!(
        format!("{error:?}").ends_with("its addresses are of two families"),
        "{error:?}"
    );
}

#[test]
fn each_probe_without_a_port_of_its_own_begins_a_connection() {
    let world = World::new();
    let mut sites = world.sites();
    let [[a, b, ..], _] = everyone(&sites);
    let same = Packet::Tcp(Ports {
        source: Some(4000),
        destination: 80,
    });
    check(
        &mut sites,
        &[(probe(a, b, tcp(80)), true), (probe(a, b, same), true)],
    );
    world.filter("forward", "ct state established accept; tcp dport 80 drop");
    check(&mut sites, &[(probe(a, b, tcp(80)), false)]);
}

#[test]
fn the_receiver_tells_where_a_packet_came_from() {
    let world = World::new();
    let translate = "table ip n { chain c { type nat hook postrouting priority 100; \
                     ip saddr 10.65.0.1 udp dport 53 snat to 192.0.2.77:999; }; \
                     chain d { type nat hook prerouting priority -100; \
                     ip daddr 10.96.0.1 udp dport 54 dnat to 192.0.2.9:5454; }; }";
    crate::net::support::run(world.node.namespace(), "nft", &[translate]);
    let mut sites = world.sites();
    let from = (sites.a, "10.65.0.1");
    let ports = |destination| {
        Packet::Udp(Ports {
            source: Some(700),
            destination,
        })
    };
    let probes = [
        probe(from, (sites.stranger, "192.0.2.9"), ports(53)),
        probe(from, (sites.stranger, "10.96.0.1"), ports(54)),
        probe((sites.a, "10.65.0.200"), (sites.b, "10.65.0.2"), ports(55)),
    ];
    let arrivals = sites.prober.observe_all(&probes).unwrap();
    let seen: Vec<_> = arrivals
        .into_iter()
        .map(|a| a.map(|a| (a.source.to_string(), a.ports)))
        .collect();
    assert_eq!(seen[0], Some(("192.0.2.77".to_owned(), Some((999, 53)))));
    assert_eq!(seen[1], Some(("10.65.0.1".to_owned(), Some((700, 5454)))));
    assert_eq!(seen[2], Some(("10.65.0.200".to_owned(), Some((700, 55)))));
}

#[test]
fn many_pods_are_probed_pair_by_pair() {
    let mut node = Node::new().unwrap();
    let mut sender = Prober::new();
    let start = Instant::now();
    let pods: Vec<(Pod, Site)> = (1..=100)
        .map(|number| {
            let addresses = [format!("10.65.0.{number}"), format!("fd00:65::{number}")];
            let addresses = addresses.map(|text| text.parse().unwrap());
            let pod = node.add_pod(&format!("cali{number}"), &addresses).unwrap();
            node.route_to(&pod).unwrap();
            let site = sender.add_site(&pod.namespace);
            (pod, site)
        })
        .collect();
    println!("{} pods in {:?}", pods.len(), start.elapsed());
    let pairs = pods
        .iter()
        .flat_map(|from| pods.iter().map(move |to| (from, to)));
    let probes: Vec<Probe> = pairs
        .filter(|(from, to)| from.1 != to.1)
        .flat_map(|(from, to)| {
            [(0, tcp(80)), (1, udp(53))].map(|(family, packet)| Probe {
                from: from.1,
                to: to.1,
                source: from.0.addresses[family],
                destination: to.0.addresses[family],
                packet,
            })
        })
        .collect();
    let start = Instant::now();
    let arrived = sender.probe_all(&probes).unwrap();
    println!("{} probes in {:?}", probes.len(), start.elapsed());
    let missing: Vec<_> = probes
        .iter()
        .zip(&arrived)
        .filter(|(_, arrived)| !**arrived)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn twenty_thousand_probes_are_told_apart() {
    let world = World::new();
    world.filter("forward", "th dport & 1 == 1 drop");
    let mut sites = world.sites();
    let pairs: Vec<_> = everyone(&sites)
        .into_iter()
        .flat_map(|all| [(all[0], all[1]), (all[1], all[2])])
        .collect();
    let probes: Vec<(Probe, bool)> = (0..20_000_u16)
        .map(|number| {
            let (from, to) = pairs[usize::from(number % 4)];
            let (place, port) = (number / 4, 1000 + number / 8);
            let packet = if place % 2 == 0 { tcp(port) } else { udp(port) };
            (probe(from, to, packet), port % 2 == 0)
        })
        .collect();
    let start = Instant::now();
    check(&mut sites, &probes);
    println!("{} probes in {:?}", probes.len(), start.elapsed());
}
