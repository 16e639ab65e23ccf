use std::net::SocketAddr;
use std::time::Duration;

use tortie_testkit::net::{Dialogue, ping};

use crate::net::support::{World, address};

const SHORT: Duration = Duration::from_millis(200);

#[test]
fn pods_strangers_and_the_node_talk_with_each_other() {
    let world = World::new();
    let all = [
        (&world.a.namespace, "10.65.0.1", "fd00:65::1"),
        (&world.b.namespace, "10.65.0.2", "fd00:65::2"),
        (&world.stranger.namespace, "192.0.2.9", "2001:db8::9"),
        (world.node.namespace(), "192.0.2.1", "2001:db8::1"),
    ];
    for (client, ..) in all {
        for (server, ipv4, ipv6) in all {
            for destination in [ipv4, ipv6].map(address) {
                let dialogue = Dialogue::new(client, server, SocketAddr::new(destination, 8080));
                let patient = Dialogue {
                    timeout: Duration::from_secs(5),
                    ..dialogue
                };
                assert!(patient.tcp().unwrap(), "{dialogue:?}");
                assert!(patient.udp().unwrap(), "{dialogue:?}");
                assert!(
                    ping(client, destination, Duration::from_secs(5)).unwrap(),
                    "{destination}"
                );
            }
        }
    }
}

#[test]
fn what_is_dropped_either_way_is_no_dialogue() {
    let world = World::new();
    world.filter(
        "forward",
        "th dport 80 drop; th sport 81 drop; tcp dport 82 reject with tcp reset; udp dport 82 reject; \
         th sport 2000 drop; icmp type echo-reply drop; icmpv6 type echo-reply drop",
    );
    let (client, server) = (&world.a.namespace, &world.b.namespace);
    for (source, destination) in [("10.65.0.1", "10.65.0.2"), ("fd00:65::1", "fd00:65::2")] {
        let (source, destination) = (address(source), address(destination));
        let to = |port| Dialogue {
            timeout: SHORT,
            ..Dialogue::new(client, server, SocketAddr::new(destination, port))
        };
        let from = |port| Dialogue {
            source: Some(SocketAddr::new(source, port)),
            ..to(90)
        };
        for dialogue in [to(80), to(81), to(82), from(2000)] {
            assert!(!dialogue.tcp().unwrap(), "{dialogue:?}");
            assert!(!dialogue.udp().unwrap(), "{dialogue:?}");
        }
        assert!(from(2001).tcp().unwrap() && from(2001).udp().unwrap());
        assert!(!ping(client, destination, SHORT).unwrap());
    }
}
