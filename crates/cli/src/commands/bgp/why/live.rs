//! What is true on this machine: what BIRD has and tells, and what the kernel has.

use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use serde::Serialize;
use tortie_bgp::Family;
use tortie_bgp::bird::answer::{Protocol, Route};
use tortie_bgp::bird::status::Sockets;
use tortie_bgp::bird::{self, Destination, Routes, Side, Socket};
use tortie_bgp::explain::{Answer, NodeAnswer};
use tortie_error::Causes;
use tortie_kernel::route::{self, Kind, MAIN_TABLE, Protocol as Maker};

/// What is true on this machine.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Live {
    /// BIRD's routes to the prefix, the one that it prefers first.
    pub(super) bird: Vec<Learnt>,
    /// Sessions that are not established.
    pub(super) down: Vec<Down>,
    /// Sessions by which BIRD tells it.
    pub(super) told: Vec<String>,
    /// The kernel's routes to the prefix.
    pub(super) kernel: Vec<String>,
    /// Where that differs from what should be.
    pub(super) differences: Vec<String>,
}

/// A route of BIRD's.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Learnt {
    /// The session or other protocol that has brought it.
    pub(super) by: String,
    pub(super) next_hops: Vec<IpAddr>,
    pub(super) since: String,
    pub(super) is_preferred: bool,
}

/// A session that is not established.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Down {
    pub(super) session: String,
    /// The session's state and last error, as BIRD says them.
    pub(super) info: String,
    pub(super) since: String,
}

impl Live {
    /// Asks BIRD and the kernel, and compares with what the answer says of this node.
    pub(super) async fn find(folder: &Path, answer: &Answer, node: &str) -> Self {
        let mut live = Self::default();
        let prefix = answer.prefix;
        let of_node = answer.nodes.iter().find(|one| one.node == node);
        let asked = live.ask_bird(folder, prefix, of_node).await;
        let has_answered = asked.is_ok();
        if let Err(error) = asked {
            let error = Causes(&error);
            live.differences
                .push(format!("BIRD does not answer: {error}"));
        }
        let made: Vec<Maker> = match kernel_routes(prefix) {
            Ok(routes) => {
                live.kernel = routes.iter().map(|(_, text)| text.clone()).collect();
                routes.into_iter().map(|(maker, _)| maker).collect()
            }
            Err(error) => {
                let error = Causes(&error);
                live.differences
                    .push(format!("the kernel's routes cannot be read: {error}"));
                return live;
            }
        };
        if let Some(of_node) = of_node {
            if has_answered {
                live.compare_bird(of_node);
            }
            live.compare_kernel(of_node, &made);
        }
        live
    }

    pub(super) fn is_well(&self) -> bool {
        self.differences.is_empty()
    }

    async fn ask_bird(
        &mut self,
        folder: &Path,
        prefix: IpNet,
        of_node: Option<&NodeAnswer>,
    ) -> bird::Result<()> {
        let sockets = Sockets::in_folder(folder);
        let socket = sockets.of_family(family(prefix)).await?;
        let asked = Routes {
            destination: Destination::Exactly(prefix),
            all: true,
            ..Routes::default()
        };
        let mut routes: Vec<Route> = socket.routes(&asked).await?;
        routes.sort_by_key(|route| !route.is_primary);
        self.bird = routes.iter().map(Learnt::new).collect();
        let protocols = socket.protocols_all().await?;
        let told = of_node.map_or(&[][..], |one| &one.told);
        let learnt = of_node.map_or(&[][..], |one| &one.learnt);
        let mut sessions: Vec<&str> = told.iter().map(|told| told.session.as_str()).collect();
        sessions.extend(learnt.iter().filter_map(|one| one.session.as_deref()));
        for session in sessions {
            match protocols.iter().find(|one| one.name == session) {
                Some(one) if one.is_established() => {
                    let is_ours = told.iter().any(|told| told.session == session);
                    if is_ours && is_told(socket, session, prefix).await? {
                        self.told.push(session.to_owned());
                    }
                }
                Some(one) => self.down.push(Down::new(one)),
                None => self.differences.push(format!(
                    "BIRD has no session {session}: it does not run with this configuration; see `tortie bgp status`"
                )),
            }
        }
        Ok(())
    }

    fn compare_bird(&mut self, of_node: &NodeAnswer) {
        for down in &self.down {
            self.differences.push(format!(
                "the session {} is not established: {} since {}",
                down.session, down.info, down.since
            ));
        }
        for told in &of_node.told {
            let is_down = self.down.iter().any(|down| down.session == told.session);
            let is_so = self.told.contains(&told.session);
            if !is_down && is_so != told.is_told && !self.bird.is_empty() {
                let (should, does) = if told.is_told {
                    ("should be told", "is not")
                } else {
                    ("should not be told", "is")
                };
                self.differences.push(format!(
                    "{} {should} by {}, and {does}",
                    told.peer, told.session
                ));
            }
        }
        let has_session = of_node.learnt.iter().any(|one| one.is_learnt == Some(true));
        let is_made = of_node
            .programmed
            .as_ref()
            .and_then(|one| one.is_programmed);
        if self.bird.is_empty() && (has_session || !of_node.has.is_empty() && is_made == Some(true))
        {
            self.differences.push("BIRD has no route to it".to_owned());
        }
    }

    fn compare_kernel(&mut self, of_node: &NodeAnswer, made: &[Maker]) {
        let Some(programmed) = &of_node.programmed else {
            return;
        };
        let maker = match programmed.by {
            Some("BIRD") => Maker::BIRD,
            Some("the agent") => Maker::CALICO,
            _ => return,
        };
        if programmed.is_programmed != Some(true) || made.contains(&maker) {
            return;
        }
        let by = programmed.by.unwrap_or_default();
        self.differences.push(match self.kernel.first() {
            None => format!("the kernel has no route to it, which {by} should program"),
            Some(other) => format!("the kernel has {other}, and not what {by} should program"),
        });
    }
}

impl Learnt {
    fn new(route: &Route) -> Self {
        let hops = route.next_hops.iter().filter_map(|hop| hop.gateway);
        Self {
            by: route.protocol.clone(),
            next_hops: hops.collect(),
            since: route.since.clone(),
            is_preferred: route.is_primary,
        }
    }
}

impl Down {
    fn new(protocol: &Protocol) -> Self {
        let info = if protocol.info.is_empty() {
            protocol.state.word().to_owned()
        } else {
            protocol.info.clone()
        };
        Self {
            session: protocol.name.clone(),
            info,
            since: protocol.since.clone(),
        }
    }
}

async fn is_told(socket: &Socket, session: &str, prefix: IpNet) -> bird::Result<bool> {
    let asked = Routes {
        destination: Destination::Exactly(prefix),
        side: Side::To(session.to_owned()),
        ..Routes::default()
    };
    Ok(!socket.routes(&asked).await?.is_empty())
}

/// The main table's routes to the prefix, each with its maker and as `ip route` shows it.
fn kernel_routes(prefix: IpNet) -> route::Result<Vec<(Maker, String)>> {
    let mut socket = route::Socket::open()?;
    let links = socket.links()?;
    let routes = socket.routes(MAIN_TABLE)?;
    let routes = routes
        .into_iter()
        .filter(|route| route.destination == prefix);
    let shown = routes.map(|route| {
        let mut words = Vec::new();
        if route.kind != Kind::Unicast {
            words.push(format!("{:?}", route.kind).to_lowercase());
        }
        words.push(prefix.to_string());
        words.extend(route.gateway.map(|gateway| format!("via {gateway}")));
        let link = links.iter().find(|link| Some(link.index) == route.device);
        words.extend(link.map(|link| format!("dev {}", link.name)));
        words.push(format!("proto {}", maker(route.protocol)));
        if route.metric != 0 {
            words.push(format!("metric {}", route.metric));
        }
        (route.protocol, words.join(" "))
    });
    Ok(shown.collect())
}

fn maker(protocol: Maker) -> String {
    match protocol {
        Maker::KERNEL => "kernel".to_owned(),
        Maker::BOOT => "boot".to_owned(),
        Maker::STATIC => "static".to_owned(),
        Maker::BIRD => "bird".to_owned(),
        Maker::CALICO => "80 (the agent)".to_owned(),
        Maker(number) => number.to_string(),
    }
}

fn family(prefix: IpNet) -> Family {
    if prefix.addr().is_ipv4() {
        Family::V4
    } else {
        Family::V6
    }
}
