use std::io;

use CalicoNodeRouteSourceType::{Direct, NodeMesh, Static};
use CalicoNodeRouteType::{Fib, Rib};

use super::super::peers;
use super::*;
use crate::bird::answer;
use crate::bird::answer::recorded::{recorded, reply};
use crate::bird::error::Error;

fn answers(status: &str, protocols: &str, routes: &str) -> Answers {
    Answers {
        status: answer::status(&reply(status)).expect("a status"),
        peers: peers(&answer::protocols(&reply(protocols))),
        routes: Some(answer::routes(&reply(routes))),
    }
}

/// BIRD 1.6 for IPv4, and nothing for IPv6.
fn one_family() -> Families<Result<Answers>> {
    Families {
        v4: Ok(answers(
            recorded!("1.6.8/status"),
            recorded!("1.6.8/protocols-all"),
            recorded!("1.6.8/routes"),
        )),
        v6: Err(Error::Unreachable {
            socket: "bird6.ctl".into(),
            source: io::ErrorKind::NotFound.into(),
        }),
    }
}

#[test]
fn a_daemon_that_does_not_answer_is_not_ready() {
    let agent = agent(&one_family());
    assert_eq!(
        agent.bird_v4,
        BgpDaemonStatus {
            state: Some(BgpDaemonState::Ready),
            version: "v0.3.3+birdv1.6.8".to_owned(),
            router_id: "172.20.0.1".to_owned(),
            last_boot_time: "2026-11-19 02:20:12".to_owned(),
            last_reconfiguration_time: "2026-11-19 02:20:12".to_owned(),
        }
    );
    assert_eq!(agent.bird_v6.state, Some(BgpDaemonState::NotReady));
    assert_eq!(agent.bird_v6.version, "");
}

#[test]
fn sessions_are_counted_and_listed() {
    let bgp = bgp(&one_family());
    assert_eq!(
        (bgp.number_established_v4, bgp.number_not_established_v4),
        (1, 3)
    );
    assert_eq!((bgp.number_established_v6, bgp.peers_v6.len()), (0, 0));
    let peers: Vec<_> = bgp
        .peers_v4
        .iter()
        .map(|peer| {
            (
                peer.peer_ip.as_str(),
                peer.r#type.unwrap(),
                peer.state.unwrap(),
            )
        })
        .collect();
    assert_eq!(
        peers,
        [
            (
                "172.20.0.2",
                BgpPeerType::NodeMesh,
                BgpSessionState::Established
            ),
            (
                "172.20.0.9",
                BgpPeerType::GlobalPeer,
                BgpSessionState::Connect
            ),
            ("172.20.0.3", BgpPeerType::NodePeer, BgpSessionState::Active),
            (
                "172.20.0.10",
                BgpPeerType::GlobalPeer,
                BgpSessionState::Idle
            ),
        ]
    );
}

#[test]
fn routes_say_where_they_lead_and_where_they_come_from() {
    let routes = routes(&one_family()).routes_v4;
    let of = |destination: &str| -> Vec<_> {
        let found = routes
            .iter()
            .filter(|route| route.destination == destination);
        found
            .map(|route| {
                (
                    route.r#type.unwrap(),
                    route.gateway.as_str(),
                    route.interface.as_str(),
                    route.learned_from.source_type.unwrap(),
                    route.learned_from.peer_ip.as_str(),
                )
            })
            .collect()
    };
    assert_eq!(
        of("10.65.1.0/26"),
        [
            (Fib, "N/A", "blackhole", Static, ""),
            (Rib, "172.20.0.2", "eth0", NodeMesh, "172.20.0.2"),
        ]
    );
    assert_eq!(of("172.20.0.0/24"), [(Fib, "N/A", "eth0", Direct, "")]);
    assert_eq!(
        of("10.65.6.0/24"),
        [
            (Fib, "172.20.0.2", "eth0", Static, ""),
            (Fib, "172.20.0.5", "eth0", Static, ""),
        ]
    );
}
