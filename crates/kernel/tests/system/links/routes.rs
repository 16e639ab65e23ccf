use std::time::Instant;

use ipnet::{IpNet, Ipv4Net};
use tortie_kernel::link::Mac;
use tortie_kernel::route::{Batch, Kind, MAIN_TABLE, Neighbour, Protocol, Route, Scope, Socket};

use crate::links::support::{in_namespace, ip, veth};

fn to(destination: &str) -> Route {
    Route::to(destination.parse().unwrap())
}

/// The table's routes that the kernel did not make itself.
fn made(socket: &mut Socket, table: u32) -> Vec<Route> {
    let mut routes = socket.routes(table).unwrap();
    routes.retain(|route| route.protocol != Protocol::KERNEL);
    routes.sort();
    routes
}

#[test]
fn what_is_added_is_listed_and_deleted() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        let device = Some(a.index);
        socket
            .execute(|batch| batch.add_address(a.index, "192.0.2.1/24".parse().unwrap()))
            .unwrap();
        let mut routes = vec![
            Route {
                device,
                scope: Scope::LINK,
                metric: 1024,
                ..to("10.0.0.1/32")
            },
            Route {
                device,
                scope: Scope::LINK,
                metric: 512,
                ..to("10.0.0.1/32")
            },
            Route {
                device,
                gateway: Some("192.0.2.9".parse().unwrap()),
                ..to("0.0.0.0/0")
            },
            Route {
                device,
                gateway: Some("198.51.100.1".parse().unwrap()),
                on_link: true,
                protocol: Protocol::CALICO,
                source: Some("192.0.2.1".parse().unwrap()),
                ..to("10.65.0.0/26")
            },
            Route {
                kind: Kind::Blackhole,
                protocol: Protocol::CALICO,
                ..to("10.66.0.0/26")
            },
            Route {
                kind: Kind::Unreachable,
                ..to("10.67.0.0/26")
            },
            Route {
                kind: Kind::Prohibit,
                service_type: 8,
                ..to("10.68.0.0/26")
            },
            Route {
                kind: Kind::Throw,
                ..to("10.69.0.0/26")
            },
            Route {
                device,
                scope: Scope::LINK,
                ..to("fd00::1/128")
            },
            Route {
                device,
                metric: 100,
                ..to("fd00:1::/64")
            },
            Route {
                device,
                gateway: Some("fe80::1".parse().unwrap()),
                ..to("::/0")
            },
            Route {
                kind: Kind::Blackhole,
                protocol: Protocol::CALICO,
                ..to("fd00:2::/64")
            },
        ];
        socket
            .execute(|batch| routes.iter().for_each(|route| batch.add_route(route)))
            .unwrap();
        let mut expected: Vec<Route> = routes.iter().map(Route::as_listed).collect();
        expected.sort();
        assert_eq!(made(socket, MAIN_TABLE), expected);
        let printed = ip("route show");
        for line in [
            "10.0.0.1 dev a scope link metric 512",
            "10.65.0.0/26 via 198.51.100.1 dev a proto 80 src 192.0.2.1 onlink",
            "blackhole 10.66.0.0/26 proto 80",
        ] {
            assert!(printed.lines().any(|l| l == line), "{line}\n{printed}");
        }

        while let Some(route) = routes.pop() {
            socket.execute(|batch| batch.delete_route(&route)).unwrap();
            assert_eq!(made(socket, MAIN_TABLE).len(), routes.len(), "{route}");
        }
        let again = socket
            .execute(|batch| batch.delete_route(&to("10.0.0.1/32")))
            .unwrap_err();
        assert!(again.is_missing(), "{again}");
    });
}

#[test]
fn replacing_takes_the_place_of_the_route_with_the_same_key() {
    in_namespace(|socket| {
        let (a, b) = veth(socket, "a", "b");
        for destination in ["10.0.0.1/32", "fd00::1/128"] {
            let first = Route {
                device: Some(a.index),
                metric: 1024,
                ..to(destination)
            };
            let second = Route {
                device: Some(b.index),
                protocol: Protocol::CALICO,
                ..first.clone()
            };
            socket.execute(|batch| batch.add_route(&first)).unwrap();
            let refused = socket
                .execute(|batch| batch.add_route(&second))
                .unwrap_err();
            assert!(refused.is_existing(), "{refused}");
            socket
                .execute(|batch| batch.replace_route(&second))
                .unwrap();
            let listed = made(socket, MAIN_TABLE);
            assert!(listed.contains(&second.as_listed()) && !listed.contains(&first.as_listed()));
            // And adds where there is none.
            socket.execute(|batch| batch.delete_route(&second)).unwrap();
            socket.execute(|batch| batch.replace_route(&first)).unwrap();
            assert!(made(socket, MAIN_TABLE).contains(&first.as_listed()));
        }
    });
}

#[test]
fn tables_are_apart_and_may_have_large_numbers() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        let large = 4_000_000_000;
        let in_table = |table| Route {
            table,
            device: Some(a.index),
            ..to("10.0.0.1/32")
        };
        assert_eq!(made(socket, large), []);
        socket
            .execute(|batch| {
                batch.add_route(&in_table(large));
                batch.add_route(&in_table(7));
            })
            .unwrap();
        assert_eq!(made(socket, large), [in_table(large)]);
        assert_eq!(made(socket, 7), [in_table(7)]);
        assert_eq!(made(socket, MAIN_TABLE), []);
    });
}

#[test]
fn one_refused_route_hinders_no_other() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        let mut batch = Batch::new();
        let mut good = 0;
        for number in 0..1000_u32 {
            let missing = number % 3 == 0;
            good += usize::from(!missing);
            let destination = host(number);
            let device = Some(if missing { 9999 } else { a.index });
            batch.add_route(&Route {
                device,
                ..Route::to(destination)
            });
        }
        let refused = socket.apply(&batch).unwrap();
        assert_eq!(refused.len(), 1000 - good);
        for (number, error) in &refused {
            assert_eq!(number % 3, 0);
            assert!(error.is_missing());
            let destination = host(u32::try_from(*number).unwrap());
            let text =
                format!("the kernel refused to add the route {destination} through interface 9999");
            assert!(error.to_string().starts_with(&text), "{error}");
        }
        assert_eq!(made(socket, MAIN_TABLE).len(), good);
    });
}

#[test]
fn a_route_with_several_next_hops_is_told_as_such() {
    in_namespace(|socket| {
        let _ = veth(socket, "a", "b");
        ip("route add 10.9.0.0/24 proto static nexthop dev a weight 1 nexthop dev b weight 1");
        let listed = made(socket, MAIN_TABLE);
        assert!(
            listed[0].is_multipath && listed[0].device.is_none(),
            "{listed:?}"
        );
        socket
            .execute(|batch| batch.delete_route(&listed[0]))
            .unwrap();
        assert_eq!(made(socket, MAIN_TABLE), []);
    });
}

#[test]
fn neighbours_are_set_listed_and_deleted() {
    in_namespace(|socket| {
        let (a, b) = veth(socket, "a", "b");
        let neighbour = |device, address: &str, last| Neighbour {
            device,
            address: address.parse().unwrap(),
            mac: Mac([2, 0, 0, 0, 0, last]),
        };
        let first = neighbour(a.index, "10.0.0.1", 1);
        let changed = neighbour(a.index, "10.0.0.1", 2);
        let others = [
            neighbour(a.index, "fd00::1", 3),
            neighbour(b.index, "10.0.0.1", 4),
        ];
        socket
            .execute(|batch| {
                batch.set_neighbour(&first);
                for other in &others {
                    batch.set_neighbour(other);
                }
                batch.set_neighbour(&changed);
            })
            .unwrap();
        let mut listed = socket.neighbours(None).unwrap();
        listed.sort();
        let mut expected = [changed, others[0], others[1]];
        expected.sort();
        assert_eq!(listed, expected);
        assert_eq!(socket.neighbours(Some(b.index)).unwrap(), [others[1]]);
        let printed = ip("neigh show dev a");
        assert!(
            printed.contains("10.0.0.1 lladdr 02:00:00:00:00:02 PERMANENT"),
            "{printed}"
        );

        // One that was found is not ours to list.
        ip("neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 dev a nud reachable");
        assert_eq!(socket.neighbours(None).unwrap().len(), 3);
        socket
            .execute(|batch| batch.delete_neighbour(&changed))
            .unwrap();
        assert!(!socket.neighbours(None).unwrap().contains(&changed));
        let missing = socket
            .execute(|batch| batch.delete_neighbour(&neighbour(a.index, "10.0.0.200", 1)))
            .unwrap_err();
        assert!(missing.is_missing(), "{missing}");
    });
}

#[test]
fn ten_thousand_routes_come_and_go_in_batches() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        let (mut add, mut delete) = (Batch::new(), Batch::new());
        for number in 0..10_000 {
            let device = Some(a.index);
            let route = Route {
                device,
                scope: Scope::LINK,
                metric: 1024,
                ..Route::to(host(number))
            };
            add.replace_route(&route);
            delete.delete_route(&route);
        }
        let start = Instant::now();
        assert!(socket.apply(&add).unwrap().is_empty());
        let added = start.elapsed();
        let start = Instant::now();
        let listed = made(socket, MAIN_TABLE);
        let dumped = start.elapsed();
        assert_eq!(listed.len(), 10_000);
        let start = Instant::now();
        assert!(socket.apply(&delete).unwrap().is_empty());
        println!(
            "added in {added:?}, listed in {dumped:?}, deleted in {:?}",
            start.elapsed()
        );
        assert_eq!(made(socket, MAIN_TABLE), []);
    });
}

fn host(number: u32) -> IpNet {
    IpNet::V4(Ipv4Net::new((0x0a00_0000 + number).into(), 32).unwrap())
}
