//! A cluster of nodes.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_testkit::net::{Fabric, Namespace, Node, open_passage};
use tortie_testkit::{Etcd, KubeApiServer};

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
    datastore: Datastore,
    fabric: Fabric,
}

/// What all nodes share.
enum Datastore {
    Etcd(Box<Etcd>),
    Kubernetes(Box<KubeApiServer>),
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
        let endpoint = etcd.endpoint().to_owned();
        let members = members(&mut fabric, networks, &endpoint, &settings(overlay, plane));
        let mut cluster = Self {
            members,
            pods: 0,
            datastore: Datastore::Etcd(Box::new(etcd)),
            fabric,
        };
        cluster.apply(&pools(overlay));
        for member in &mut cluster.members {
            member.tortie(&["node", "startup"], "");
            member.start_agent();
        }
        cluster
    }

    /// The same with Kubernetes as the datastore. Nodes are registered and have neither agents nor pods.
    pub(crate) fn on_kubernetes(networks: &[u8]) -> Self {
        let mut fabric = Fabric::new(2).unwrap();
        // The server tells clients of an address that it finds by its way to the world.
        let way = || {
            Command::new("ip")
                .args(["route", "add", "default", "dev", "lan0"])
                .status()
        };
        assert!(fabric.router().run(way).unwrap().unwrap().success());
        let server = fabric.router().run(KubeApiServer::start).unwrap().unwrap();
        let endpoint = server.url().trim_start_matches("https://").to_owned();
        let settings = settings(Overlay::Bgp, Plane::Nftables);
        let mut members = members(&mut fabric, networks, &endpoint, &settings);
        let kubeconfig = std::fs::read_to_string(server.kubeconfig()).unwrap();
        for member in &mut members {
            let url = member.endpoint.replace("http://", "https://");
            let own = member.folder().join("kubeconfig");
            std::fs::write(&own, kubeconfig.replace(server.url(), &url)).unwrap();
            member.set("DATASTORE_TYPE", "kubernetes");
            member.set("KUBECONFIG", own.to_str().unwrap());
        }
        let cluster = Self {
            members,
            pods: 0,
            datastore: Datastore::Kubernetes(Box::new(server)),
            fabric,
        };
        let crds = cluster.members[0].tortie(&["crds"], "");
        cluster.kubectl(&["apply", "-f", "-"], &crds);
        let established = "--for=condition=Established";
        cluster.kubectl(&["wait", established, "crd", "--all", "--timeout=60s"], "");
        for member in &cluster.members {
            let node =
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": member.name}});
            cluster.kubectl(&["apply", "-f", "-"], &node.to_string());
            member.tortie(&["node", "startup"], "");
        }
        cluster.apply(&pools(Overlay::Bgp));
        cluster
    }

    /// Runs `kubectl` to its end, where Kubernetes is the datastore.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let Datastore::Kubernetes(server) = &self.datastore else {
            panic!("the datastore is etcd");
        };
        let run = || server.kubectl_stdin(arguments, input);
        let ran = self.fabric.router().run(run).unwrap().unwrap();
        ran.into_stdout().unwrap()
    }

    /// Writes resources, as a user does.
    pub(crate) fn apply(&self, yaml: &str) {
        self.members[0].tortie(&["apply", "-f", "-"], yaml);
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The router between the networks.
    pub(crate) fn router(&self) -> &Namespace {
        self.fabric.router()
    }

    /// A machine in one of the networks that is no node of the cluster, and its addresses.
    pub(crate) fn add_stranger(&mut self, network: u8) -> (Node, [IpAddr; 2]) {
        let mut node = Node::new().unwrap();
        let addresses = self.fabric.join(&mut node, network).unwrap();
        (node, addresses.map(|net| net.addr()))
    }

    /// A pod on each node.
    pub(crate) fn pods_everywhere(&mut self) -> Vec<Pod> {
        (0..self.members.len())
            .map(|node| self.add_pod(node))
            .collect()
    }

    /// Makes a pod as a container runtime does, with an address of each IP version.
    pub(crate) fn add_pod(&mut self, node: usize) -> Pod {
        let pod = self.add_pod_with(node, "");
        assert_eq!(pod.addresses.len(), 2, "{:?}", pod.addresses);
        pod
    }

    /// The same, with arguments for the plugin, such as `IP=10.65.0.7`.
    pub(crate) fn add_pod_with(&mut self, node: usize, arguments: &str) -> Pod {
        self.pods += 1;
        let container = format!("container-{}", self.pods);
        let namespace = Namespace::new().unwrap();
        let printed = self.plugin("ADD", node, (&container, arguments), &namespace);
        let result: Value = serde_json::from_str(&printed).unwrap();
        let addresses = result["ips"].as_array().unwrap().iter().map(|ip| {
            let net: ipnet::IpNet = ip["address"].as_str().unwrap().parse().unwrap();
            net.addr()
        });
        Pod {
            addresses: addresses.collect(),
            namespace,
            container,
        }
    }

    /// A pod whose address is of the block that another pod's address is in.
    pub(crate) fn add_borrower(&mut self, node: usize, of: &Pod) -> Pod {
        let IpAddr::V4(address) = of.addresses[0] else {
            panic!("{:?}", of.addresses);
        };
        // Blocks are of 64 addresses, and few of them are used.
        let borrowed = Ipv4Addr::from_bits(address.to_bits() ^ 32);
        let pod = self.add_pod_with(node, &format!("IP={borrowed}"));
        assert_eq!(pod.addresses, [IpAddr::V4(borrowed)]);
        pod
    }

    /// Gives a pod a label, by which policies and peers select it.
    pub(crate) fn label_pod(&self, pod: &Pod, label: &str) {
        let member = &self.members[0];
        let listed = member.tortie(&["get", "workloadendpoints", "-o", "json"], "");
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let mut endpoints = listed["items"].as_array().unwrap().iter();
        let endpoint = endpoints.find(|one| one["spec"]["containerID"] == *pod.container);
        let name = endpoint.unwrap()["metadata"]["name"].as_str().unwrap();
        member.tortie(
            &["label", "workloadendpoint", name, label, "--overwrite"],
            "",
        );
    }

    fn plugin(
        &self,
        verb: &str,
        node: usize,
        (container, arguments): (&str, &str),
        namespace: &Namespace,
    ) -> String {
        let member = &self.members[node];
        let folder = member.folder();
        let mut command = member.command(folder.join("calico"));
        command
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", container)
            .env("CNI_ARGS", arguments)
            .env("CNI_NETNS", tortie_testkit::cni::path(namespace))
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
        let Datastore::Etcd(etcd) = &self.datastore else {
            panic!("the datastore is Kubernetes");
        };
        let delete = || etcd.etcdctl(&["del", &key]);
        let deleted = self.fabric.router().run(delete).unwrap().unwrap();
        assert_eq!(deleted.trim(), "1");
    }

    /// Takes a node out of the cluster with its pod.
    pub(crate) fn remove(&mut self, node: usize, pod: &Pod) {
        self.plugin("DEL", node, (&pod.container, ""), &pod.namespace);
        self.members[node].kill_agent();
        let name = self.members[node].name.clone();
        self.members[0].tortie(&["delete", "node", &name], "");
    }
}

/// Nodes that reach a server which listens where the router is.
fn members(
    fabric: &mut Fabric,
    networks: &[u8],
    server: &str,
    settings: &[(&'static str, String)],
) -> Vec<Member> {
    let mut join = |(number, network): (usize, &u8)| {
        let mut node = Node::new().unwrap();
        let addresses = fabric.join(&mut node, *network).unwrap();
        let addresses = addresses.map(|net| net.addr());
        let endpoint = open_passage(node.namespace(), fabric.router(), server).unwrap();
        let name = format!("node-{number}");
        Member::new(name, node, addresses, endpoint, settings.to_vec())
    };
    networks.iter().enumerate().map(&mut join).collect()
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
