//! Peers as `calicoctl node status` shows them.

use std::net::IpAddr;

use crate::bird::answer::Protocol;

/// The heads of the table's columns.
pub const HEADINGS: [&str; 5] = ["PEER ADDRESS", "PEER TYPE", "STATE", "SINCE", "INFO"];

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The name of its session in BIRD's configuration.
    pub name: String,
    pub address: IpAddr,
    pub r#type: PeerType,
    /// Of BIRD's protocol: `up`, `start`, `down`, ….
    pub state: &'static str,
    pub since: String,
    /// Of the session, such as `Established`, and perhaps its last error.
    pub info: String,
    /// Of the session alone; empty where only `show protocols` was asked.
    pub session: String,
    pub is_established: bool,
}

/// Why there is a session. The beginning of its name says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerType {
    Mesh,
    Node,
    Global,
    /// A pod or virtual machine of this node.
    LocalWorkload,
}

impl PeerType {
    const ALL: [Self; 4] = [Self::Mesh, Self::Node, Self::Global, Self::LocalWorkload];

    /// None if the name is not that of a peer.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|one| name.starts_with(one.prefix()))
    }

    /// As calicoctl prints it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Mesh => "node-to-node mesh",
            Self::Node => "node specific",
            Self::Global => "global",
            Self::LocalWorkload => "local workload",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Mesh => "Mesh_",
            Self::Node => "Node_",
            Self::Global => "Global_",
            Self::LocalWorkload => "Local_Workload_",
        }
    }

    /// The address that is part of a name: `Mesh_10_0_0_1`, `Global_fd20__2_port_1179`.
    fn address(self, name: &str) -> Option<IpAddr> {
        let rest = name.strip_prefix(self.prefix())?;
        let text = rest
            .split_once("_port_")
            .map_or(rest, |(address, _)| address);
        let as_ipv4 = text.replace('_', ".").parse();
        as_ipv4.or_else(|_| text.replace('_', ":").parse()).ok()
    }
}

impl Peer {
    fn of(protocol: &Protocol) -> Option<Self> {
        if !protocol.is_bgp() {
            return None;
        }
        let r#type = PeerType::of(&protocol.name)?;
        let session = protocol.session.as_ref();
        let told = session.and_then(|session| session.neighbor);
        Some(Self {
            name: protocol.name.clone(),
            address: told.or_else(|| r#type.address(&protocol.name))?,
            r#type,
            state: protocol.state.word(),
            since: protocol.since.clone(),
            info: protocol.info.clone(),
            session: session.map_or_else(String::new, |session| session.state.clone()),
            is_established: protocol.is_established(),
        })
    }

    /// In the order of [`HEADINGS`].
    pub fn row(&self) -> [String; 5] {
        [
            self.address.to_string(),
            self.r#type.words().to_owned(),
            self.state.to_owned(),
            self.since.clone(),
            self.info.clone(),
        ]
    }
}

/// Those of BIRD's protocols that are sessions with peers, in BIRD's order.
pub fn peers(protocols: &[Protocol]) -> Vec<Peer> {
    protocols.iter().filter_map(Peer::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bird::answer;
    use crate::bird::answer::recorded::{recorded, reply};

    #[track_caller]
    fn check(text: &str, expected: &[[&str; 5]]) {
        let rows: Vec<_> = peers(&answer::protocols(&reply(text)))
            .iter()
            .map(Peer::row)
            .collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn rows_are_those_of_calicoctl() {
        let mesh = "node-to-node mesh";
        let failed = "Connect Socket: No route to host";
        check(
            recorded!("2.0.12/protocols"),
            &[
                ["172.20.0.2", mesh, "up", "02:20:31.440", "Established"],
                ["fd20::2", mesh, "up", "02:20:31.681", "Established"],
                ["172.20.0.9", "global", "start", "02:20:30.792", failed],
                [
                    "172.20.0.3",
                    "node specific",
                    "start",
                    "02:20:30.792",
                    "Passive",
                ],
                ["172.20.0.10", "global", "down", "02:20:30.792", ""],
            ],
        );
        check(
            recorded!("1.6.8/protocols"),
            &[
                ["172.20.0.2", mesh, "up", "02:20:13", "Established"],
                ["172.20.0.9", "global", "start", "02:20:12", failed],
                [
                    "172.20.0.3",
                    "node specific",
                    "start",
                    "02:20:12",
                    "Passive",
                ],
                ["172.20.0.10", "global", "down", "02:20:12", ""],
            ],
        );
    }

    #[test]
    fn an_address_in_a_name_is_read_for_both_families() {
        let address = |name| {
            let r#type = PeerType::of(name)?;
            r#type.address(name).map(|address| address.to_string())
        };
        let of = |name, expected: Option<&str>| assert_eq!(address(name).as_deref(), expected);
        of("Mesh_172_17_8_102", Some("172.17.8.102"));
        of("Node_172_17_8_102_port_500", Some("172.17.8.102"));
        of(
            "Mesh_fd80_24e2_f998_72d7__2",
            Some("fd80:24e2:f998:72d7::2"),
        );
        of("Local_Workload_10_1_2_3", Some("10.1.2.3"));
        of("Mesh_x", None);
        of("kernel4", None);
    }
}
