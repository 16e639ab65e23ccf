//! Routes as the kernel has them, in a namespace of the test's own.

use std::os::fd::AsFd as _;

use ipnet::IpNet;
use tortie_engine::Message;
use tortie_engine::message::{Encapsulation, PoolType, RouteTypes, Vtep};
use tortie_kernel::namespace;
use tortie_kernel::route::{Kind, LAST_METRIC, Protocol, Route, Socket};

use super::{REMOTE, end, everything, options, to, told};
use crate::cluster::ClusterNetwork;

/// A node in a namespace of its own, whose address is on `eth0`.
fn on_a_node(test: impl FnOnce(&mut ClusterNetwork, &mut Socket) + Send) {
    namespace::run_in_new(|| {
        let mut socket = Socket::open().unwrap();
        let here = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
        socket
            .execute(|batch| batch.create_veth("eth0", "peer", here.as_fd()))
            .unwrap();
        for name in ["eth0", "peer"] {
            let index = socket.link(name).unwrap().unwrap().index;
            socket
                .execute(|batch| batch.set_link_up(index, true))
                .unwrap();
        }
        let parent = socket.link("eth0").unwrap().unwrap().index;
        socket
            .execute(|batch| {
                batch.add_address(parent, "192.0.2.1/24".parse().unwrap());
                batch.add_address(parent, "2001:db8::1/64".parse().unwrap());
            })
            .unwrap();
        let mut network = ClusterNetwork::open(options()).unwrap();
        let encapsulation = Encapsulation {
            ipip_enabled: false,
            ..everything()
        };
        network.on_message(&Message::Encapsulation(encapsulation));
        network.on_message(&end("here", 1));
        network.on_message(&end("there", 2));
        let remote = [
            told("10.65.2.0/26", REMOTE, PoolType::Vxlan),
            told("fd00:2::/122", REMOTE, PoolType::Vxlan),
            told("10.66.2.0/26", REMOTE, PoolType::NoEncap),
            told("10.65.1.0/26", RouteTypes::LOCAL_WORKLOAD, PoolType::Vxlan),
            told("fd00:1::/122", RouteTypes::LOCAL_WORKLOAD, PoolType::Vxlan),
        ];
        for route in remote {
            network.on_message(&Message::RouteUpdate(route));
        }
        test(&mut network, &mut socket);
    })
    .unwrap();
}

/// The namespace's own routes, as text that does not depend on numbers.
fn ours(socket: &mut Socket) -> Vec<String> {
    let mut routes = socket.routes(254).unwrap();
    routes.retain(|route| route.protocol != Protocol::KERNEL);
    routes.sort();
    routes
        .iter()
        .map(|route| format!("{:?} {} {:?}", route.kind, route.destination, route.gateway))
        .collect()
}

#[track_caller]
fn apply(network: &mut ClusterNetwork) {
    let mtus = network.mtus(|name| name == "eth0").unwrap();
    assert_eq!(network.apply(&mtus).unwrap(), [] as [&str; 0]);
}

#[test]
fn the_kernel_gets_devices_entries_and_routes_and_loses_them() {
    on_a_node(|network, socket| {
        apply(network);
        let (link, _) = socket.vxlan("vxlan.calico").unwrap().unwrap();
        assert_eq!((link.mtu, link.is_up), (1450, true));
        assert_eq!(link.addresses[0], "10.65.1.1/32".parse::<IpNet>().unwrap());
        assert_eq!(socket.forwardings(link.index).unwrap().len(), 1);
        assert_eq!(socket.neighbours(Some(link.index)).unwrap().len(), 1);
        let (link_v6, _) = socket.vxlan("vxlan-v6.calico").unwrap().unwrap();
        assert_eq!(socket.forwardings(link_v6.index).unwrap().len(), 1);
        let all = ours(socket);
        assert_eq!(
            all,
            [
                "Blackhole 10.65.1.0/26 None",
                "Unicast 10.65.2.0/26 Some(10.65.2.1)",
                "Unicast 10.66.2.0/26 Some(192.0.2.2)",
                "Blackhole fd00:1::/122 None",
                "Unicast fd00:2::/122 Some(fd00:2::1)",
            ]
        );

        // A second start finds everything right: the device stays the same.
        network.distrust_kernel();
        apply(network);
        assert_eq!(socket.link("vxlan.calico").unwrap().unwrap(), link);
        assert_eq!(ours(socket), all);

        network.on_message(&Message::VtepRemove("there".to_owned()));
        for dst in ["10.65.2.0/26", "fd00:2::/122", "10.66.2.0/26"] {
            network.on_message(&Message::RouteRemove(dst.parse().unwrap()));
        }
        apply(network);
        assert_eq!(socket.forwardings(link.index).unwrap(), []);
        assert_eq!(socket.neighbours(Some(link.index)).unwrap(), []);
        assert_eq!(
            ours(socket),
            ["Blackhole 10.65.1.0/26 None", "Blackhole fd00:1::/122 None"]
        );

        network.on_message(&Message::Encapsulation(Encapsulation::default()));
        apply(network);
        assert_eq!(socket.link("vxlan.calico").unwrap(), None);
        assert_eq!(socket.link("vxlan-v6.calico").unwrap(), None);
    });
}

#[test]
fn drift_is_repaired_and_foreign_routes_stay() {
    on_a_node(|network, socket| {
        apply(network);
        let all = ours(socket);
        let device = socket.link("eth0").unwrap().unwrap().index;
        let ours_to = |socket: &mut Socket, destination: &str| {
            let routes = socket.routes(254).unwrap().into_iter();
            let mut found = routes.filter(|route| route.destination.to_string() == destination);
            found.next().unwrap()
        };
        let missing = ours_to(socket, "10.65.2.0/26");
        let stale = Route {
            kind: Kind::Blackhole,
            protocol: Protocol::CALICO,
            ..to("10.99.0.0/26")
        };
        let foreign = Route {
            device: Some(device),
            protocol: Protocol::STATIC,
            ..to("10.98.0.0/26")
        };
        socket
            .execute(|batch| {
                batch.delete_route(&missing);
                batch.add_route(&stale);
                batch.add_route(&foreign);
            })
            .unwrap();
        network.distrust_kernel();
        apply(network);
        socket
            .execute(|batch| batch.delete_route(&foreign))
            .unwrap();
        assert_eq!(ours(socket), all);
    });
}

#[test]
fn a_node_that_moves_takes_its_tunnel_along() {
    on_a_node(|network, socket| {
        apply(network);
        let before = socket.link("vxlan.calico").unwrap().unwrap();
        let parent = socket.link("eth0").unwrap().unwrap().index;
        socket
            .execute(|batch| batch.add_address(parent, "192.0.2.9/24".parse().unwrap()))
            .unwrap();
        let moved = Vtep {
            node: "here".to_owned(),
            mac: "66:00:00:00:00:09".to_owned(),
            ipv4_addr: Some([10, 65, 1, 1].into()),
            parent_device_ip: Some([192, 0, 2, 9].into()),
            ..Vtep::default()
        };
        network.on_message(&Message::VtepUpdate(moved));
        apply(network);
        let (after, vxlan) = socket.vxlan("vxlan.calico").unwrap().unwrap();
        assert_ne!(after.index, before.index);
        assert_eq!(vxlan.local.to_string(), "192.0.2.9");
        let routes = socket.routes(254).unwrap();
        let through = routes
            .iter()
            .filter(|route| route.device == Some(after.index));
        assert!(through.count() >= 1);
    });
}

/// Whoever restarts in between, too.
#[test]
fn routes_that_bird_is_to_make_stay_until_it_has() {
    on_a_node(|network, socket| {
        let two = [
            told("10.66.2.0/26", REMOTE, PoolType::NoEncap),
            told("fd00:6::/122", REMOTE, PoolType::NoEncap),
        ];
        for route in two {
            network.on_message(&Message::RouteUpdate(route));
        }
        apply(network);
        let mine = |socket: &mut Socket| -> Vec<(String, u32)> {
            let mut routes = socket.routes(254).unwrap();
            routes.retain(|route| route.gateway.is_some() && route.protocol == Protocol::CALICO);
            let routes = routes.iter();
            routes
                .map(|route| (route.destination.to_string(), route.metric))
                .collect()
        };
        let pair = |v4: u32, v6: u32| {
            vec![
                ("10.66.2.0/26".to_owned(), v4),
                ("fd00:6::/122".to_owned(), v6),
            ]
        };
        assert_eq!(mine(socket), pair(0, 1024));

        let ours = Encapsulation {
            ipip_enabled: false,
            ..everything()
        };
        network.on_message(&Message::Encapsulation(Encapsulation {
            no_encap_enabled: false,
            ..ours
        }));
        // One that is new now is BIRD's alone.
        let new = told("10.66.9.0/26", REMOTE, PoolType::NoEncap);
        network.on_message(&Message::RouteUpdate(new));
        apply(network);
        assert_eq!(mine(socket), pair(LAST_METRIC, LAST_METRIC));
        assert!(network.is_handing_over());
        network.distrust_kernel();
        apply(network);
        assert_eq!(mine(socket), pair(LAST_METRIC, LAST_METRIC));

        // BIRD adds its own without replacing any.
        let parent = socket.link("eth0").unwrap().unwrap().index;
        for (destination, gateway) in [
            ("10.66.2.0/26", "192.0.2.2"),
            ("fd00:6::/122", "2001:db8::2"),
        ] {
            let route = Route {
                device: Some(parent),
                gateway: Some(gateway.parse().unwrap()),
                protocol: Protocol::BIRD,
                metric: 1024,
                ..to(destination)
            };
            socket.execute(|batch| batch.add_route(&route)).unwrap();
        }
        // It may be giving them up just now.
        apply(network);
        assert_eq!(mine(socket), pair(LAST_METRIC, LAST_METRIC));

        // What the datastore no longer knows goes, whoever is to make it.
        network.on_message(&Message::RouteRemove("10.66.2.0/26".parse().unwrap()));
        apply(network);
        assert_eq!(mine(socket), pair(0, LAST_METRIC)[1..]);

        // It comes back, in place of BIRD's where only one can be there.
        network.on_message(&Message::Encapsulation(ours));
        let back = told("10.66.2.0/26", REMOTE, PoolType::NoEncap);
        network.on_message(&Message::RouteUpdate(back));
        apply(network);
        let mut all = mine(socket);
        all.retain(|(destination, _)| destination != "10.66.9.0/26");
        assert_eq!(all, pair(0, 1024));
        assert!(!network.is_handing_over());
        let mut left = socket.routes(254).unwrap();
        left.retain(|route| route.protocol == Protocol::BIRD);
        assert_eq!(left.len(), 1, "{left:?}");
    });
}
