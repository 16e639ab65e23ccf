//! Who is asked: one BIRD 2, or two daemons of BIRD 1.6.

use std::net::IpAddr;
use std::path::Path;

use super::peer::{Peer, peers};
use crate::Family;
use crate::bird::answer::{Protocol, Route, Status};
use crate::bird::command::Routes;
use crate::bird::error::{Error, Result};
use crate::bird::socket::Socket;

/// The sockets of this node's BIRD.
#[derive(Debug, Clone)]
pub struct Sockets {
    /// Of BIRD 2, or of BIRD 1.6 for IPv4.
    pub main: Socket,
    /// Of BIRD 1.6 for IPv6. Not asked where the other is a BIRD 2, which speaks both.
    pub ipv6: Socket,
}

/// Something for each IP version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Families<T> {
    pub v4: T,
    pub v6: T,
}

/// What a BIRD says of one IP version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    pub status: Status,
    pub peers: Vec<Peer>,
    /// None if they were not asked for.
    pub routes: Option<Vec<Route>>,
}

/// What is asked for besides status and peers.
type AreRoutesAsked = bool;

impl Sockets {
    /// With the names that Calico gives them, in a folder such as `/var/run/calico`.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            main: Socket::new(folder.join("bird.ctl")),
            ipv6: Socket::new(folder.join("bird6.ctl")),
        }
    }

    /// That of the BIRD which has this IP version's routes.
    pub async fn of_family(&self, family: Family) -> Result<&Socket> {
        if family == Family::V4 {
            return Ok(&self.main);
        }
        let is_other = match self.main.connect().await {
            Ok(connection) => is_of_one_family(connection.version()),
            Err(Error::Unreachable { .. }) => true,
            Err(error) => return Err(error),
        };
        Ok(if is_other { &self.ipv6 } else { &self.main })
    }

    /// Asks for status and peers, and for routes if told so. A BIRD that does not run is [`Error::Unreachable`].
    ///
    /// [`Error::Unreachable`]: crate::bird::Error::Unreachable
    pub async fn ask(&self, with_routes: AreRoutesAsked) -> Families<Result<Answers>> {
        let main = ask(&self.main, with_routes).await;
        match main {
            Ok(both) if both.speaks_both => {
                let part = |is_ipv4| Ok(both.answers.of_family(is_ipv4));
                Families {
                    v4: part(true),
                    v6: part(false),
                }
            }
            main => Families {
                v4: main.map(|one| one.answers),
                v6: ask(&self.ipv6, with_routes).await.map(|one| one.answers),
            },
        }
    }
}

struct Asked {
    answers: Answers,
    speaks_both: bool,
}

async fn ask(socket: &Socket, with_routes: AreRoutesAsked) -> Result<Asked> {
    let mut connection = socket.connect().await?;
    let speaks_both = !is_of_one_family(connection.version());
    let status = connection.status().await?;
    let protocols: Vec<Protocol> = connection.protocols_all().await?;
    let routes = if with_routes {
        Some(socket.routes(&Routes::default()).await?)
    } else {
        None
    };
    Ok(Asked {
        answers: Answers {
            status,
            peers: peers(&protocols),
            routes,
        },
        speaks_both,
    })
}

/// `1.6.8`, or Calico's `v0.3.3+birdv1.6.8`.
fn is_of_one_family(version: &str) -> bool {
    let version = version.rsplit_once('v').map_or(version, |(_, last)| last);
    version.starts_with("1.")
}

impl Answers {
    fn of_family(&self, is_ipv4: bool) -> Self {
        let is_of = |address: IpAddr| address.is_ipv4() == is_ipv4;
        let peers = self.peers.iter().filter(|peer| is_of(peer.address));
        let routes = self.routes.as_ref().map(|routes| {
            let routes = routes.iter().filter(|route| is_of(route.prefix.addr()));
            routes.cloned().collect()
        });
        Self {
            status: self.status.clone(),
            peers: peers.cloned().collect(),
            routes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_one_family;

    #[test]
    fn versions_tell_how_many_families_one_daemon_speaks() {
        let of = |version| is_of_one_family(version);
        assert!(of("1.6.8") && of("v0.3.3+birdv1.6.8"));
        assert!(!of("2.0.12") && !of("3.1.2") && !of(""));
    }
}
