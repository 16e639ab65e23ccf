//! A cluster of nodes.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_testkit::Etcd;
use tortie_testkit::net::{Fabric, Namespace, Node, open_passage};

use crate::multi_node::member::Member;
use crate::multi_node::reach::Pod;

/// How long a change may take to reach all nodes.
const PATIENCE: Duration = Duration::from_secs(30);

/// How pods of other nodes are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlay {
    Vxlan,
    CrossSubnet,
    None,
    /// None, and BIRD is to make the routes.
    Bgp,
}

/// What enforces policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    Nftables,
    Iptables,
}

/// Nodes in networks with a router between them, and one etcd.
pub(crate) struct Cluster {
    members: Vec<Member>,
    pods: usize,
    etcd: Etcd,
    fabric: Fabric,
}

impl Cluster {
    /// One node for each number, which is that of its network. They enforce with nftables.
    pub(crate) fn new(overlay: Overlay, networks: &[u8]) -> Self {
        Self::with_plane(overlay, networks, Plane::Nftables)
    }

    /// The same, with this data plane.
    pub(crate) fn with_plane(overlay: Overlay, networks: &[u8], plane: Plane) -> Self {
        let mut fabric = Fabric::new(2).unwrap();
        let etcd = fabric.router().run(Etcd::start).unwrap().unwrap();
        let members: Vec<Member> = networks
            .iter()
            .enumerate()
            .map(|(number, network)| {
                let mut node = Node::new().unwrap();
                fabric.join(&mut node, *network).unwrap();
                let namespace = node.namespace().clone();
                let endpoint = open_passage(&namespace, fabric.router(), etcd.endpoint()).unwrap();
                let name = format!("node-{number}");
                Member::new(name, node, endpoint, settings(overlay, plane))
            })
            .collect();
        let mut cluster = Self {
            members,
            pods: 0,
            etcd,
            fabric,
        };
        cluster.apply(&pools(overlay));
        for member in &mut cluster.members {
            member.tortie(&["node", "startup"], "");
            member.start_agent();
        }
        cluster
    }

    /// Writes resources, as a user does.
    pub(crate) fn apply(&self, yaml: &str) {
        self.members[0].tortie(&["apply", "-f", "-"], yaml);
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// A pod on each node.
    pub(crate) fn pods_everywhere(&mut self) -> Vec<Pod> {
        (0..self.members.len())
            .map(|node| self.add_pod(node))
            .collect()
    }

    /// Makes a pod as a container runtime does.
    pub(crate) fn add_pod(&mut self, node: usize) -> Pod {
        self.pods += 1;
        let container = format!("container-{}", self.pods);
        let namespace = Namespace::new().unwrap();
        let printed = self.plugin("ADD", node, &container, &namespace);
        let result: Value = serde_json::from_str(&printed).unwrap();
        let addresses = result["ips"].as_array().unwrap().iter().map(|ip| {
            let net: ipnet::IpNet = ip["address"].as_str().unwrap().parse().unwrap();
            net.addr()
        });
        let addresses: Vec<IpAddr> = addresses.collect();
        assert_eq!(addresses.len(), 2, "{result}");
        Pod {
            namespace,
            container,
            addresses,
        }
    }

    fn plugin(&self, verb: &str, node: usize, container: &str, namespace: &Namespace) -> String {
        use std::os::fd::{AsFd as _, AsRawFd as _};
        let member = &self.members[node];
        let folder = member.folder();
        let path = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            namespace.as_fd().as_raw_fd()
        );
        let mut command = member.command(folder.join("calico"));
        command
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", container)
            .env("CNI_NETNS", path)
            .env("CNI_IFNAME", "eth0")
            .env("CNI_PATH", folder);
        let config = json!({
            "cniVersion": "1.0.0",
            "name": "pods",
            "type": "calico",
            "datastore_type": "etcdv3",
            "etcd_endpoints": member.endpoint,
            "nodename_file": folder.join("nodename"),
            "require_agent": false,
            "ipam_lock_file": folder.join("ipam.lock"),
            "log_level": "info",
            "log_file_path": folder.join("cni.log"),
            "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"},
        });
        member.finish(command, &config.to_string())
    }

    /// Waits until every pod reaches every other in every way.
    #[track_caller]
    pub(crate) fn all_reach_all(&self, pods: &[Pod]) {
        for from in pods {
            for to in pods.iter().filter(|to| to.container != from.container) {
                let what = format!("{} reaches {}", from.container, to.container);
                self.eventually(&what, || from.pings(to) && from.reaches(to, 8080));
            }
        }
    }

    #[track_caller]
    pub(crate) fn eventually(&self, what: &str, holds: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            if Instant::now() > end {
                let routes: Vec<Vec<String>> = (0..self.members.len())
                    .map(|node| self.routes(node))
                    .collect();
                panic!("not so after {PATIENCE:?}: {what}; routes: {routes:#?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The routes of a node that lead to a pod in particular.
    pub(crate) fn routes_to(&self, node: usize, pod: &Pod) -> Vec<String> {
        let routes = self.routes_to_block_of(node, pod);
        assert_eq!(routes.len(), pod.addresses.len(), "{routes:?}");
        routes
    }

    /// The same, where there may be none.
    pub(crate) fn routes_to_block_of(&self, node: usize, pod: &Pod) -> Vec<String> {
        let addresses = pod.addresses.iter();
        let printed = addresses.map(|address| {
            let family = if address.is_ipv4() { "-4" } else { "-6" };
            self.members[node].run("ip", &format!("{family} route show to match {address}"))
        });
        let lines: Vec<String> = printed.flat_map(|printed| lines(&printed)).collect();
        let in_particular = lines
            .into_iter()
            .filter(|line| !line.starts_with("default"));
        in_particular.collect()
    }

    /// All routes of a node.
    pub(crate) fn routes(&self, node: usize) -> Vec<String> {
        let member = &self.members[node];
        let mut all = lines(&member.run("ip", "-4 route show"));
        all.extend(lines(&member.run("ip", "-6 route show")));
        all
    }

    /// What a node's tunnel devices know of other nodes.
    pub(crate) fn tunnel_entries(&self, node: usize) -> Vec<String> {
        let devices = ["vxlan.calico", "vxlan-v6.calico"];
        let printed = devices
            .map(|device| self.members[node].run("bridge", &format!("fdb show dev {device}")));
        printed.iter().flat_map(|printed| lines(printed)).collect()
    }

    pub(crate) fn has_link(&self, node: usize, name: &str) -> bool {
        let links = self.members[node].run("ip", "-o link show");
        links.contains(&format!(": {name}:"))
    }

    /// Sets a variable for what is started from now on, on all nodes.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        for member in &mut self.members {
            member.set(name, value);
        }
    }

    /// Ends a node's agent and starts it again.
    pub(crate) fn restart_agent(&mut self, node: usize) {
        self.members[node].kill_agent();
        self.members[node].start_agent();
    }

    /// Deletes a node's resource alone, as it goes with that of another system; its agent and its pods stay.
    pub(crate) fn lose_node(&self, node: usize) {
        let name = &self.members[node].name;
        let key = format!("/calico/resources/v3/projectcalico.org/nodes/{name}");
        let delete = || self.etcd.etcdctl(&["del", &key]);
        let deleted = self.fabric.router().run(delete).unwrap().unwrap();
        assert_eq!(deleted.trim(), "1");
    }

    /// Takes a node out of the cluster with its pod.
    pub(crate) fn remove(&mut self, node: usize, pod: &Pod) {
        self.plugin("DEL", node, &pod.container, &pod.namespace);
        self.members[node].kill_agent();
        let name = self.members[node].name.clone();
        self.members[0].tortie(&["delete", "node", &name], "");
    }
}

fn settings(overlay: Overlay, plane: Plane) -> Vec<(&'static str, String)> {
    let mut settings = vec![
        ("IP", "autodetect"),
        ("IP6", "autodetect"),
        ("NO_DEFAULT_POOLS", "true"),
        (
            "FELIX_NFTABLESMODE",
            match plane {
                Plane::Nftables => "Enabled",
                Plane::Iptables => "Disabled",
            },
        ),
    ];
    if overlay == Overlay::None {
        settings.push(("FELIX_PROGRAMCLUSTERROUTES", "Enabled"));
    }
    let owned = settings
        .into_iter()
        .map(|(name, value)| (name, value.to_owned()));
    owned.collect()
}

fn pools(overlay: Overlay) -> String {
    let mode = match overlay {
        Overlay::Vxlan => "Always",
        Overlay::CrossSubnet => "CrossSubnet",
        Overlay::None | Overlay::Bgp => "Never",
    };
    let pool = |name: &str, cidr: &str| {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {{name: {name}}}\n\
             spec: {{cidr: '{cidr}', vxlanMode: {mode}, ipipMode: Never}}\n---\n"
        )
    };
    pool("ipv4", "10.65.0.0/16") + &pool("ipv6", "fd65::/64")
}

fn lines(printed: &str) -> Vec<String> {
    let lines = printed.lines().map(|line| line.trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}
