//! The parts of a `CalicoNodeStatus` that BIRD knows.

use tortie_api::kinds::calico_node_status::{
    BgpDaemonState, BgpDaemonStatus, BgpPeerType, BgpSessionState, CalicoNodeAgentStatus,
    CalicoNodeBgpRouteStatus, CalicoNodeBgpStatus, CalicoNodePeer, CalicoNodeRoute,
    CalicoNodeRouteLearnedFrom, CalicoNodeRouteSourceType, CalicoNodeRouteType,
};

use super::peer::{Peer, PeerType};
use super::sockets::{Answers, Families};
use crate::bird::answer::{Kind, NextHop, Phase, Route, Status};
use crate::bird::error::Result;

/// What Calico writes where there is no gateway.
const NO_GATEWAY: &str = "N/A";

/// Of the class `Agent`.
pub fn agent(answers: &Families<Result<Answers>>) -> CalicoNodeAgentStatus {
    CalicoNodeAgentStatus {
        bird_v4: daemon(answers.v4.as_ref().ok()),
        bird_v6: daemon(answers.v6.as_ref().ok()),
    }
}

/// Of the class `BGP`. Of a BIRD that did not answer, no peer is known.
pub fn bgp(answers: &Families<Result<Answers>>) -> CalicoNodeBgpStatus {
    let of = |one: &Result<Answers>| one.as_ref().map(sessions).unwrap_or_default();
    let (v4, v6) = (of(&answers.v4), of(&answers.v6));
    CalicoNodeBgpStatus {
        number_established_v4: v4.established,
        number_not_established_v4: v4.others,
        number_established_v6: v6.established,
        number_not_established_v6: v6.others,
        peers_v4: v4.peers,
        peers_v6: v6.peers,
    }
}

/// Of the class `Routes`, if routes were asked for.
pub fn routes(answers: &Families<Result<Answers>>) -> CalicoNodeBgpRouteStatus {
    let of = |one: &Result<Answers>| one.as_ref().map(known_routes).unwrap_or_default();
    CalicoNodeBgpRouteStatus {
        routes_v4: of(&answers.v4),
        routes_v6: of(&answers.v6),
    }
}

fn daemon(answers: Option<&Answers>) -> BgpDaemonStatus {
    let not_ready = || BgpDaemonStatus {
        state: Some(BgpDaemonState::NotReady),
        ..BgpDaemonStatus::default()
    };
    answers.map_or_else(not_ready, |answers| described(&answers.status))
}

fn described(status: &Status) -> BgpDaemonStatus {
    let state = match status.phase {
        Phase::ShuttingDown => BgpDaemonState::NotReady,
        Phase::Running | Phase::Reconfiguring => BgpDaemonState::Ready,
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    BgpDaemonStatus {
        state: Some(state),
        version: status.version.clone(),
        router_id: status
            .router_id
            .map(|id| id.to_string())
            .unwrap_or_default(),
        last_boot_time: text(&status.last_boot),
        last_reconfiguration_time: text(&status.last_reconfiguration),
    }
}

#[derive(Default)]
struct Sessions {
    established: i64,
    others: i64,
    peers: Vec<CalicoNodePeer>,
}

fn sessions(answers: &Answers) -> Sessions {
    let mut sessions = Sessions::default();
    for peer in &answers.peers {
        // The kind has no word for peers in workloads.
        let Some(r#type) = type_of(peer.r#type) else {
            continue;
        };
        if peer.is_established {
            sessions.established += 1;
        } else {
            sessions.others += 1;
        }
        sessions.peers.push(CalicoNodePeer {
            peer_ip: peer.address.to_string(),
            r#type: Some(r#type),
            state: session_state(&peer.session),
            since: peer.since.clone(),
        });
    }
    sessions
}

fn type_of(r#type: PeerType) -> Option<BgpPeerType> {
    match r#type {
        PeerType::Mesh => Some(BgpPeerType::NodeMesh),
        PeerType::Node => Some(BgpPeerType::NodePeer),
        PeerType::Global => Some(BgpPeerType::GlobalPeer),
        PeerType::LocalWorkload => None,
    }
}

/// `Passive` is an active state that does not connect, and `Down` an idle one that somebody wants.
fn session_state(state: &str) -> Option<BgpSessionState> {
    match state {
        "Idle" | "Down" => Some(BgpSessionState::Idle),
        "Connect" => Some(BgpSessionState::Connect),
        "Active" | "Passive" => Some(BgpSessionState::Active),
        "OpenSent" => Some(BgpSessionState::OpenSent),
        "OpenConfirm" => Some(BgpSessionState::OpenConfirm),
        "Established" => Some(BgpSessionState::Established),
        "Close" => Some(BgpSessionState::Close),
        _ => None,
    }
}

fn known_routes(answers: &Answers) -> Vec<CalicoNodeRoute> {
    let routes = answers.routes.iter().flatten();
    routes
        .flat_map(|route| entries(route, &answers.peers))
        .collect()
}

/// One for each next hop.
fn entries(route: &Route, peers: &[Peer]) -> Vec<CalicoNodeRoute> {
    let r#type = if route.is_primary {
        CalicoNodeRouteType::Fib
    } else {
        CalicoNodeRouteType::Rib
    };
    let entry = |gateway: String, interface: &str| CalicoNodeRoute {
        r#type: Some(r#type),
        destination: route.prefix.to_string(),
        gateway,
        interface: interface.to_owned(),
        learned_from: learned_from(&route.protocol, peers),
    };
    let instead = match route.kind {
        Kind::Unicast => {
            let through = |hop: &NextHop| {
                let gateway = hop.gateway.map(|gateway| gateway.to_string());
                entry(
                    gateway.unwrap_or_else(|| NO_GATEWAY.to_owned()),
                    &hop.interface,
                )
            };
            return route.next_hops.iter().map(through).collect();
        }
        Kind::Blackhole => "blackhole",
        Kind::Unreachable => "unreachable",
        Kind::Prohibited => "prohibited",
    };
    vec![entry(NO_GATEWAY.to_owned(), instead)]
}

fn learned_from(protocol: &str, peers: &[Peer]) -> CalicoNodeRouteLearnedFrom {
    let source_type = match PeerType::of(protocol) {
        Some(PeerType::Mesh) => Some(CalicoNodeRouteSourceType::NodeMesh),
        Some(_) => Some(CalicoNodeRouteSourceType::BGPPeer),
        None => [
            ("kernel", CalicoNodeRouteSourceType::Kernel),
            ("static", CalicoNodeRouteSourceType::Static),
            ("direct", CalicoNodeRouteSourceType::Direct),
        ]
        .into_iter()
        .find_map(|(word, source)| protocol.starts_with(word).then_some(source)),
    };
    let peer = peers.iter().find(|peer| peer.name == protocol);
    CalicoNodeRouteLearnedFrom {
        source_type,
        peer_ip: peer
            .map(|peer| peer.address.to_string())
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
