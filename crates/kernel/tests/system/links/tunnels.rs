use std::net::IpAddr;

use tortie_kernel::link::{Mac, Vxlan};
use tortie_kernel::route::{Forwarding, MAIN_TABLE, Route};

use crate::links::support::{in_namespace, ip, link, veth};

const MAC: Mac = Mac([0x66, 1, 2, 3, 4, 5]);

#[track_caller]
fn a_vxlan_device(local: &str, words: &[&str]) {
    in_namespace(|socket| {
        let (lower, _) = veth(socket, "a", "b");
        let vxlan = Vxlan {
            id: 4096,
            port: 4789,
            local: local.parse().unwrap(),
            lower: lower.index,
            is_learning: false,
        };
        socket
            .execute(|batch| batch.create_vxlan("vxlan.calico", MAC, 1400, &vxlan))
            .unwrap();
        let (link, listed) = socket.vxlan("vxlan.calico").unwrap().unwrap();
        assert_eq!(listed, vxlan);
        assert_eq!((link.mac, link.mtu), (Some(MAC), 1400));
        let told = ip("-d link show vxlan.calico");
        for word in words {
            assert!(told.contains(word), "{word}: {told}");
        }
        assert_eq!(socket.vxlan("a").unwrap(), None, "not a VXLAN device");
        assert_eq!(socket.vxlan("nobody").unwrap(), None);
    });
}

#[test]
fn a_vxlan_device_is_as_described() {
    a_vxlan_device(
        "192.0.2.1",
        &[
            "id 4096",
            "local 192.0.2.1",
            "dev a",
            "dstport 4789",
            "nolearning",
        ],
    );
    a_vxlan_device(
        "2001:db8::1",
        &["id 4096", "local 2001:db8::1", "nolearning"],
    );
}

#[test]
fn tunnel_entries_are_set_listed_and_deleted() {
    in_namespace(|socket| {
        let (lower, _) = veth(socket, "a", "b");
        let vxlan = Vxlan {
            id: 1,
            port: 4789,
            local: "192.0.2.1".parse().unwrap(),
            lower: lower.index,
            is_learning: false,
        };
        for name in ["one", "two"] {
            let vxlan = Vxlan {
                id: vxlan.id + u32::from(name == "two"),
                ..vxlan
            };
            socket
                .execute(|batch| batch.create_vxlan(name, MAC, 1400, &vxlan))
                .unwrap();
        }
        let device = link(socket, "one").index;
        let entry = |last: u8, destination: &str| Forwarding {
            device,
            mac: Mac([0x66, 0, 0, 0, 0, last]),
            destination: destination.parse::<IpAddr>().unwrap(),
        };
        let entries = [entry(1, "192.0.2.7"), entry(2, "192.0.2.8")];
        socket
            .execute(|batch| entries.iter().for_each(|entry| batch.set_forwarding(entry)))
            .unwrap();
        let mut listed = socket.forwardings(device).unwrap();
        listed.sort();
        assert_eq!(listed, entries);
        let other = link(socket, "two").index;
        assert_eq!(socket.forwardings(other).unwrap(), []);

        let moved = entry(1, "192.0.2.9");
        socket
            .execute(|batch| {
                batch.set_forwarding(&moved);
                batch.delete_forwarding(&entries[1]);
            })
            .unwrap();
        assert_eq!(socket.forwardings(device).unwrap(), [moved]);

        let refused = socket
            .execute(|batch| batch.delete_forwarding(&entries[1]))
            .unwrap_err();
        let told = refused.to_string();
        assert!(told.contains("66:00:00:00:00:02 at 192.0.2.8"), "{told}");
    });
}

#[test]
fn a_route_may_have_a_largest_packet() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        for destination in ["10.65.0.0/26", "fd00::/122"] {
            let route = Route {
                device: Some(a.index),
                mtu: Some(1400),
                ..Route::to(destination.parse().unwrap())
            };
            socket.execute(|batch| batch.replace_route(&route)).unwrap();
            let listed = socket.routes(MAIN_TABLE).unwrap();
            assert!(listed.contains(&route.as_listed()), "{listed:?}");
        }
        assert!(ip("route show").contains("mtu 1400"));
    });
}
