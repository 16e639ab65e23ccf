//! What is wrong on this machine: BIRD, its sessions, the ports of peers, addresses and MTU.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::net::TcpSocket;
use tortie_bgp::bird::answer::{Interface, Protocol};
use tortie_bgp::bird::status::Sockets;
use tortie_bgp::bird::{self, Socket};
use tortie_bgp::doctor::Finding;
use tortie_bgp::plan::{FamilyPlan, Origin, Peer, Plan};
use tortie_bgp::{Family, Reason};
use tortie_error::Causes;

/// The port of RFC 4271.
const PORT: u16 = 179;

/// How long a peer has to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many peers are tried at once, and of how many sessions at most.
const AT_ONCE: usize = 64;
const MAX_TRIED: usize = 512;

pub(super) async fn examine(folder: &Path, plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sockets = Sockets::in_folder(folder);
    let mut is_silent = false;
    for family in Family::BOTH {
        let of_family = plan.family(family);
        if of_family.address.is_none() && of_family.peers.is_empty() {
            continue;
        }
        let asked = async {
            let socket = sockets.of_family(family).await?;
            of_bird(socket, plan, of_family).await
        };
        match asked.await {
            Ok(found) => findings.extend(found),
            // One BIRD 2 speaks both, and where neither answers it is said once.
            Err(bird::Error::Unreachable { .. }) if is_silent => {}
            Err(error) => {
                findings.push(silent(&Causes(&error).to_string(), folder));
                is_silent = true;
            }
        }
    }
    findings
        .into_iter()
        .map(|finding| finding.on([&plan.node]))
        .collect()
}

fn silent(error: &str, folder: &Path) -> Finding {
    let text = format!("BIRD does not answer: {error}");
    let reason = Reason::new(text).remedy(format!(
        "`tortie bgp` on this node, which starts it; or --run-folder, if its socket is not in {}",
        folder.display()
    ));
    Finding::error(reason)
}

async fn of_bird(
    socket: &Socket,
    plan: &Plan,
    of_family: &FamilyPlan,
) -> bird::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let status = socket.status().await?;
    if let Some(recovery) = status.recovery {
        let left = recovery.left.map_or(String::new(), |left| {
            format!(", for {} s at most", left.as_secs())
        });
        findings.push(Finding::warning(
            Reason::new(format!(
                "BIRD has been restarted and waits for {} peer(s){left}: until then it tells nobody of its routes",
                recovery.channels
            ))
            .remedy("nothing: it goes on by itself"),
        ));
    }
    let interfaces = socket.interfaces().await?;
    let own = of_family
        .address
        .map(|address| (address, holder(&interfaces, address)));
    if let Some((address, None)) = own {
        findings.push(absent(plan, of_family.family, address));
    }
    let protocols = socket.protocols_all().await?;
    let mut down = Vec::new();
    for peer in &of_family.peers {
        match protocols.iter().find(|one| one.name == peer.name) {
            Some(one) if one.is_established() => {
                if let Some((_, Some(interface))) = own {
                    findings.extend(narrow(peer, interface));
                }
            }
            Some(one) => down.push((peer, one)),
            None => findings.push(Finding::error(
                Reason::new(format!("BIRD has no session {}, which the datastore asks for", peer.name))
                    .of(peer.origin.clone())
                    .remedy("`tortie bgp` that follows the datastore; `tortie bgp status` says why BIRD has not got it"),
            )),
        }
    }
    let tried = futures::stream::iter(down.into_iter().take(MAX_TRIED))
        .map(|(peer, protocol)| async move { not_established(peer, protocol).await })
        .buffered(AT_ONCE);
    findings.extend(tried.collect::<Vec<_>>().await);
    Ok(findings)
}

fn holder(interfaces: &[Interface], address: IpAddr) -> Option<&Interface> {
    let mut interfaces = interfaces.iter();
    interfaces.find(|one| one.addresses.iter().any(|net| net.addr() == address))
}

fn absent(plan: &Plan, family: Family, address: IpAddr) -> Finding {
    let field = if family == Family::V4 {
        "spec.bgp.ipv4Address"
    } else {
        "spec.bgp.ipv6Address"
    };
    Finding::error(
        Reason::new(format!(
            "no interface of this machine has {address}: sessions cannot start from it"
        ))
        .of(Origin::new("Node", plan.node.as_str(), field))
        .value(address)
        .remedy("an address that the machine has; `tortie node startup` finds it"),
    )
}

/// What the kernel knows of the way is less than what the interface takes.
fn narrow(peer: &Peer, interface: &Interface) -> Option<Finding> {
    let mtu = path_mtu(peer.source?, peer.address)?;
    let of_interface = interface.mtu?;
    (mtu < of_interface).then(|| {
        Finding::warning(
            Reason::new(format!(
                "packets of more than {mtu} bytes do not reach {}, and the interface {} takes {of_interface}: long updates and packets \
                 of pods may be lost on the way",
                peer.address, interface.name
            ))
            .of(peer.origin.clone())
            .value(mtu)
            .remedy(format!("an MTU of {of_interface} on the whole way, or of {mtu} on the interface")),
        )
    })
}

fn path_mtu(source: IpAddr, to: IpAddr) -> Option<u32> {
    let socket = UdpSocket::bind((source, 0)).ok()?;
    socket.connect((to, PORT)).ok()?;
    if to.is_ipv4() {
        rustix::net::sockopt::ip_mtu(&socket).ok()
    } else {
        rustix::net::sockopt::ipv6_mtu(&socket).ok()
    }
}

async fn not_established(peer: &Peer, protocol: &Protocol) -> Finding {
    let session = protocol.session.as_ref();
    let state = session.map_or(protocol.state.word(), |session| session.state.as_str());
    let error = session.and_then(|session| session.last_error.as_deref());
    let said = error.map_or(String::new(), |error| format!(", last error: {error}"));
    let since = &protocol.since;
    let (address, name) = (peer.address, &peer.name);
    let text = format!(
        "the session with {address} ({name}) is not established: {state} since {since}{said}"
    );
    let (more, remedy) = match (hint(error.unwrap_or_default(), peer), peer.is_passive) {
        (Some(hint), _) => (String::new(), hint),
        (None, true) => (
            "; this side waits for the other one to connect".to_owned(),
            format!("a session with this node on the side of {address}, which opens it"),
        ),
        (None, false) => tried(peer).await,
    };
    Finding::error(
        Reason::new(text + &more)
            .of(peer.origin.clone())
            .remedy(remedy),
    )
}

/// What would help against an error that BIRD names.
fn hint(error: &str, peer: &Peer) -> Option<String> {
    let address = peer.address;
    let number = peer.as_number;
    if error.contains("Bad peer AS") {
        return Some(format!(
            "the same AS numbers on both sides: this one expects {number} of {address}; see spec.asNumber and spec.localASNumber"
        ));
    }
    if error.contains("Bad BGP identifier") {
        return Some("another router id on one side, since both have the same".to_owned());
    }
    if error.contains("Hold timer expired") {
        return Some("a way without loss for packets of full size: see the MTU on it".to_owned());
    }
    error
        .contains("Invalid password")
        .then(|| "the same password on both sides".to_owned())
}

/// Whether the peer's port answers, and what that means.
async fn tried(peer: &Peer) -> (String, String) {
    let port = peer.port.unwrap_or(PORT);
    let to = SocketAddr::new(peer.address, port);
    match connect(peer.source, to).await {
        Ok(()) => (
            format!("; {to} answers"),
            "what the other side says about it in its log: it knows this node by another address or AS number, or signs with another password".to_owned(),
        ),
        Err(ErrorKind::ConnectionRefused) => (
            format!("; nobody listens at {to}"),
            format!("a BGP speaker at {to}; or its port in spec.peerIP, or in spec.listenPort of the BGPConfiguration of its node"),
        ),
        Err(ErrorKind::TimedOut) => (
            format!("; {to} does not answer"),
            format!("a firewall and a policy that let TCP port {port} pass, and a machine that is up; with a password also the same one on both sides"),
        ),
        Err(ErrorKind::ConnectionReset) => (
            format!("; {to} ends connections at once"),
            "a session with this node's address on the other side".to_owned(),
        ),
        Err(kind) => (
            format!("; {to} cannot be reached: {kind}"),
            format!("a route to {}", peer.address),
        ),
    }
}

async fn connect(source: Option<IpAddr>, to: SocketAddr) -> Result<(), ErrorKind> {
    let kind = |error: std::io::Error| error.kind();
    let socket = if to.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    };
    let socket = socket.map_err(kind)?;
    if let Some(source) = source {
        socket.bind((source, 0).into()).map_err(kind)?;
    }
    match tokio::time::timeout(PATIENCE, socket.connect(to)).await {
        Ok(connected) => connected.map(drop).map_err(kind),
        Err(_) => Err(ErrorKind::TimedOut),
    }
}
