//! A router that is nobody's node: a BIRD with a configuration that a person wrote.

use std::fmt::Write as _;
use std::fs;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

use ipnet::IpNet;
use tempfile::TempDir;
use tortie_testkit::net::{Namespace, Node};

use crate::multi_node::cluster::Cluster;
use crate::multi_node::reach::Pod;

const BIRD: &str = "/usr/sbin/bird";

/// A router, whose BIRD ends with it.
pub(super) struct Router {
    /// As an end of packets.
    pub(super) place: Pod,
    folder: TempDir,
    bird: Option<Child>,
    _node: Option<Node>,
}

/// What a router is told to do.
#[derive(Debug, Clone, Default)]
pub(super) struct Conf {
    pub(super) as_number: u32,
    pub(super) sessions: Vec<Session>,
    /// Networks that it says it has.
    pub(super) told: Vec<IpNet>,
    /// It also tells what it has learnt.
    pub(super) passes_on: bool,
}

/// A neighbour of a router.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) neighbour: IpAddr,
    pub(super) as_number: u32,
    /// Statements in BIRD's language, of the session.
    pub(super) more: String,
    /// The same, of its routes.
    pub(super) of_routes: String,
    /// It is in another network.
    pub(super) is_far: bool,
}

impl Session {
    pub(super) fn with(neighbour: IpAddr, as_number: u32) -> Self {
        Self {
            neighbour,
            as_number,
            more: String::new(),
            of_routes: String::new(),
            is_far: false,
        }
    }

    fn name(&self) -> String {
        format!("to_{}", self.neighbour).replace(['.', ':'], "_")
    }
}

impl Conf {
    /// Sessions of both IP versions with nodes that all have one AS number.
    pub(super) fn towards(cluster: &Cluster, nodes: &[usize], (own, theirs): (u32, u32)) -> Self {
        let nodes = nodes.iter().map(|node| &cluster.members()[*node]);
        let addresses = nodes.flat_map(|member| member.addresses);
        Self {
            as_number: own,
            sessions: addresses.map(|one| Session::with(one, theirs)).collect(),
            ..Self::default()
        }
    }

    /// The same statements for all sessions.
    pub(super) fn saying(mut self, more: &str) -> Self {
        for session in &mut self.sessions {
            more.clone_into(&mut session.more);
        }
        self
    }

    /// The same statements for the routes of all sessions.
    pub(super) fn saying_of_routes(mut self, more: &str) -> Self {
        for session in &mut self.sessions {
            more.clone_into(&mut session.of_routes);
        }
        self
    }

    pub(super) fn telling(mut self, networks: &[&str]) -> Self {
        self.told = networks.iter().map(|net| net.parse().unwrap()).collect();
        self
    }

    fn text(&self, router_id: IpAddr) -> String {
        let mut text = format!(
            "log stderr all;\nrouter id {router_id};\nprotocol device {{ scan time 1; }}\n\
             protocol direct {{ ipv4; ipv6; interface \"eth0\", \"lan*\"; }}\n"
        );
        for (version, is_ipv4) in [("ipv4", true), ("ipv6", false)] {
            let told = self
                .told
                .iter()
                .filter(|net| net.addr().is_ipv4() == is_ipv4);
            let told = told.fold(String::new(), |told, net| {
                told + &format!("route {net} blackhole; ")
            });
            let _ = writeln!(
                text,
                "protocol kernel {{ scan time 1; {version} {{ import none; export where source = RTS_BGP && dest = RTD_UNICAST; }}; }}\n\
                 protocol static {{ {version}; {told}}}"
            );
        }
        let export = if self.passes_on {
            "all"
        } else {
            "where source = RTS_STATIC"
        };
        for session in &self.sessions {
            let version = if session.neighbour.is_ipv4() {
                "ipv4"
            } else {
                "ipv6"
            };
            let (name, neighbour, theirs) = (session.name(), session.neighbour, session.as_number);
            let (own, more, of_routes) = (self.as_number, &session.more, &session.of_routes);
            let way = if session.is_far { "multihop" } else { "direct" };
            let _ = writeln!(
                text,
                "protocol bgp {name} {{ local as {own}; neighbor {neighbour} as {theirs}; {way}; \
                 connect delay time 1; connect retry time 1; error wait time 1,2; {more} \
                 {version} {{ import all; export {export}; {of_routes} }}; }}"
            );
        }
        text
    }
}

impl Router {
    /// A machine in one of the networks.
    pub(super) fn outside(cluster: &mut Cluster, network: u8) -> Self {
        let (node, addresses) = cluster.add_stranger(network);
        let namespace = node.namespace().clone();
        Self::new(namespace, addresses.into(), Some(node))
    }

    /// The one between the networks.
    pub(super) fn between(cluster: &Cluster, addresses: [IpAddr; 2]) -> Self {
        Self::new(cluster.router().clone(), addresses.into(), None)
    }

    /// A pod that is one.
    pub(super) fn in_pod(pod: &Pod) -> Self {
        Self::new(pod.namespace.clone(), pod.addresses.clone(), None)
    }

    fn new(namespace: Namespace, addresses: Vec<IpAddr>, node: Option<Node>) -> Self {
        Self {
            place: Pod {
                namespace,
                container: "router".to_owned(),
                addresses,
            },
            folder: TempDir::with_prefix("tortie-router-").unwrap(),
            bird: None,
            _node: node,
        }
    }

    /// Does this from now on.
    pub(super) fn run(&mut self, conf: &Conf) {
        let file = self.folder.path().join("bird.conf");
        fs::write(&file, conf.text(self.place.addresses[0])).unwrap();
        if self.bird.is_some() {
            let said = self.birdc("configure");
            assert!(said.contains("Reconfig"), "{said}");
            return;
        }
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(BIRD);
        command
            .arg("-f")
            .arg("-s")
            .arg(self.socket())
            .arg("-c")
            .arg(file);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let spawned = self.place.namespace.run(|| command.spawn());
        self.bird = Some(spawned.unwrap().unwrap());
    }

    /// Asks BIRD, as an administrator does.
    pub(super) fn birdc(&self, question: &str) -> String {
        let mut command = Command::new("birdc");
        command
            .arg("-s")
            .arg(self.socket())
            .args(question.split(' '));
        let output = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// All that it knows of the routes to a network; empty, if it has none.
    pub(super) fn route(&self, network: IpNet) -> String {
        let found = self.birdc(&format!("show route {network} all"));
        if found.contains("via") {
            found
        } else {
            String::new()
        }
    }

    /// What it knows of a session.
    pub(super) fn session(&self, neighbour: IpAddr) -> String {
        let name = Session::with(neighbour, 0).name();
        self.birdc(&format!("show protocols all {name}"))
    }

    pub(super) fn is_established(&self, neighbour: IpAddr) -> bool {
        self.session(neighbour).contains("Established")
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("bird.ctl")
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        if let Some(mut bird) = self.bird.take() {
            let _ = bird.kill();
            let _ = bird.wait();
        }
    }
}

/// The block that a pod's address is in.
pub(super) fn block_of(address: IpAddr) -> IpNet {
    let length = if address.is_ipv4() { 26 } else { 122 };
    IpNet::new(address, length).unwrap().trunc()
}
