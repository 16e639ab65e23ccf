//! A router with another program: `GoBGP` learns what BIRD does.

use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tortie_testkit::net::{Namespace, Node};

use crate::bgp::peers::{configure, peer_with};
use crate::bgp::router::block_of;
use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::speaker::Speaker;

const OUTSIDE: u32 = 65001;

/// `GoBGP`, which ends with the value.
struct GoBgp {
    namespace: Namespace,
    process: Child,
    _folder: TempDir,
    _node: Node,
}

impl GoBgp {
    /// On a machine with an address, with sessions to all nodes.
    fn start(cluster: &Cluster, node: Node, router_id: std::net::IpAddr) -> Self {
        let mut conf = format!("[global.config]\nas = {OUTSIDE}\nrouter-id = \"{router_id}\"\n");
        for address in cluster.members().iter().flat_map(|member| member.addresses) {
            let family = if address.is_ipv4() {
                "ipv4-unicast"
            } else {
                "ipv6-unicast"
            };
            let _ = write!(
                conf,
                "[[neighbors]]\n[neighbors.config]\nneighbor-address = \"{address}\"\npeer-as = 64512\n\
                 [neighbors.timers.config]\nconnect-retry = 1\n\
                 [[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = \"{family}\"\n"
            );
        }
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("gobgpd.toml");
        fs::write(&file, conf).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new("gobgpd");
        command
            .arg("-f")
            .arg(file)
            .args(["-t", "toml", "--api-hosts", "127.0.0.1:50051"]);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let namespace = node.namespace().clone();
        let process = namespace.run(|| command.spawn()).unwrap().unwrap();
        Self {
            namespace,
            process,
            _folder: folder,
            _node: node,
        }
    }

    /// The paths to a network, as it prints them.
    fn paths(&self, network: ipnet::IpNet) -> Vec<Value> {
        let version = if network.addr().is_ipv4() {
            "ipv4"
        } else {
            "ipv6"
        };
        let mut command = Command::new("gobgp");
        command.args(["global", "rib", "-a", version, "-j", &network.to_string()]);
        let output = self.namespace.run(|| command.output()).unwrap().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let paths = found[network.to_string()].as_array();
        paths.cloned().unwrap_or_default()
    }

    /// Whether it has a path through an address, with a community or without any.
    fn has(&self, network: ipnet::IpNet, via: std::net::IpAddr, community: Option<u32>) -> bool {
        let paths = self.paths(network);
        paths.iter().any(|path| {
            let attributes = path["attrs"].as_array().into_iter().flatten();
            let text: String = attributes.map(ToString::to_string).collect();
            let is_marked = community.is_none_or(|one| text.contains(&one.to_string()));
            text.contains(&format!("\"{via}\"")) && is_marked
        })
    }
}

impl Drop for GoBgp {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn gobgp_learns_blocks_borrowed_addresses_and_services() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
    let (node, addresses) = cluster.add_stranger(0);
    peer_with(&cluster, "go", (&addresses, OUTSIDE), "");
    configure(
        &cluster,
        "communities: [{name: pods, value: '64512:100'}], \
         prefixAdvertisements: [{cidr: 10.65.0.0/16, communities: [pods]}], \
         serviceClusterIPs: [{cidr: 10.96.0.0/16}, {cidr: 'fd96::/112'}]",
    );
    let speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    let gobgp = GoBgp::start(&cluster, node, addresses[0]);
    // 64512:100, as one number.
    let community = 64512 * 65536 + 100;
    for (pod, member) in pods.iter().zip(cluster.members()) {
        for (address, via) in pod.addresses.iter().zip(member.addresses) {
            let expected = address.is_ipv4().then_some(community);
            cluster.eventually(&format!("the block of {address} is learnt"), || {
                gobgp.has(block_of(*address), via, expected)
            });
        }
        for (network, via) in ["10.96.0.0/16", "fd96::/112"].iter().zip(member.addresses) {
            cluster.eventually(&format!("{network} is learnt"), || {
                gobgp.has(network.parse().unwrap(), via, None)
            });
        }
    }
    let borrower = cluster.add_borrower(0, &pods[1]);
    let via = cluster.members()[0].addresses[0];
    cluster.eventually("the borrowed address is learnt", || {
        gobgp.has(borrower.addresses[0].into(), via, Some(community))
    });
    drop(speakers);
}
