//! What there is with Kubernetes alone: services, and passwords in Secrets.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bgp::peers::{configure, filter, peer_with};
use crate::bgp::router::{Conf, Router};
use crate::multi_node::cluster::Cluster;
use crate::multi_node::speaker::{Speaker, run_folder};

const OUTSIDE: u32 = 65000;

const SERVICES: &str = "198.51.100.0/24";

/// The address that a load balancer has given.
const ADDRESS: &str = "198.51.100.7/32";

const RIGHT: &str = "correct horse battery staple";

const WRONG: &str = "hunter2";

/// The secret with a password for each IP version.
fn write_secret(cluster: &Cluster, v4: &str, v6: &str) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "bgp-passwords", "namespace": "kube-system"}, "stringData": {"v4": v4, "v6": v6}});
    cluster.kubectl(&["apply", "-f", "-"], &secret.to_string());
}

/// A service with an address that a load balancer gave it, for endpoints on the node that a packet comes to.
fn write_service(cluster: &Cluster) {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}});
    cluster.kubectl(&["apply", "-f", "-"], &service.to_string());
    let stored = cluster.kubectl(&["get", "service", "web", "-o", "json"], "");
    let mut service: Value = serde_json::from_str(&stored).unwrap();
    let (address, _) = ADDRESS.split_once('/').unwrap();
    service["status"] = json!({"loadBalancer": {"ingress": [{"ip": address}]}});
    let status = "/api/v1/namespaces/default/services/web/status";
    cluster.kubectl(
        &["replace", "--raw", status, "-f", "-"],
        &service.to_string(),
    );
}

/// The endpoints of the service, on these nodes.
fn write_endpoints(cluster: &Cluster, nodes: &[&str]) {
    let endpoint = |node: &&str| json!({"addresses": ["10.65.0.9"], "conditions": {"ready": true}, "topology": {"kubernetes.io/hostname": node}});
    let endpoints: Vec<Value> = nodes.iter().map(endpoint).collect();
    let slice = json!({"apiVersion": "discovery.k8s.io/v1beta1", "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"port": 80}], "endpoints": endpoints});
    cluster.kubectl(&["apply", "-f", "-"], &slice.to_string());
}

/// The nodes that tell the router of a network.
fn tellers(cluster: &Cluster, router: &Router, network: &str) -> Vec<String> {
    let found = router.route(network.parse().unwrap());
    let members = cluster.members().iter();
    let telling = members.filter(|member| found.contains(&format!("via {} ", member.addresses[0])));
    telling.map(|member| member.name.clone()).collect()
}

#[track_caller]
fn await_tellers(cluster: &Cluster, router: &Router, network: &str, nodes: &[&str]) {
    cluster.eventually(&format!("{network} is told by {nodes:?}"), || {
        tellers(cluster, router, network) == nodes
    });
}

/// Sessions with both nodes, of one IP version.
fn sessions(cluster: &Cluster, router: &Router, is_ipv4: bool) -> usize {
    let addresses = cluster.members().iter().flat_map(|member| member.addresses);
    let of_version = addresses.filter(|one: &IpAddr| one.is_ipv4() == is_ipv4);
    of_version.filter(|one| router.is_established(*one)).count()
}

#[test]
fn sessions_have_passwords_and_services_are_told_by_nodes_with_endpoints() {
    let mut cluster = Cluster::on_kubernetes(&[0, 0]);
    let mut router = Router::outside(&mut cluster, 0);
    // Nodes of a mesh pass on what they learn of each other, unless somebody says no.
    let own = "  exportV4:\n  - {action: Reject, source: RemotePeers}\n";
    filter(&cluster, "own", own);
    write_secret(&cluster, RIGHT, WRONG);
    for (address, key) in router.place.addresses.iter().zip(["v4", "v6"]) {
        let more = format!(
            ", filters: [own], password: {{secretKeyRef: {{name: bgp-passwords, key: {key}}}}}"
        );
        peer_with(&cluster, "outside", (&[*address], OUTSIDE), &more);
    }
    configure(
        &cluster,
        &format!("serviceLoadBalancerIPs: [{{cidr: {SERVICES}}}]"),
    );
    write_service(&cluster);
    write_endpoints(&cluster, &["node-1"]);
    let conf = Conf::towards(&cluster, &[0, 1], (OUTSIDE, 64512));
    router.run(&conf.saying(&format!("password \"{RIGHT}\";")));
    let speakers = Speaker::everywhere(&cluster);

    cluster.eventually("sessions come up with the right password", || {
        sessions(&cluster, &router, true) == 2
    });
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        assert_eq!(
            sessions(&cluster, &router, false),
            0,
            "with a wrong password"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    services_are_told(&cluster, &router);

    write_secret(&cluster, RIGHT, RIGHT);
    cluster.eventually("the right password is taken when it is there", || {
        sessions(&cluster, &router, false) == 2
    });
    assert_eq!(sessions(&cluster, &router, true), 2);
    passwords_are_kept(&cluster);
    drop(speakers);
}

fn services_are_told(cluster: &Cluster, router: &Router) {
    await_tellers(cluster, router, SERVICES, &["node-0", "node-1"]);
    await_tellers(cluster, router, ADDRESS, &["node-1"]);
    write_endpoints(cluster, &["node-0", "node-1"]);
    await_tellers(cluster, router, ADDRESS, &["node-0", "node-1"]);
    write_endpoints(cluster, &["node-0"]);
    await_tellers(cluster, router, ADDRESS, &["node-0"]);
    let exclude = "node.kubernetes.io/exclude-from-external-load-balancers";
    cluster.kubectl(&["label", "node", "node-0", &format!("{exclude}=true")], "");
    await_tellers(cluster, router, SERVICES, &["node-1"]);
    await_tellers(cluster, router, ADDRESS, &[]);
    cluster.kubectl(&["label", "node", "node-0", &format!("{exclude}-")], "");
    await_tellers(cluster, router, ADDRESS, &["node-0"]);
    cluster.kubectl(&["delete", "service", "web"], "");
    await_tellers(cluster, router, ADDRESS, &[]);
    await_tellers(cluster, router, SERVICES, &["node-0", "node-1"]);
}

/// In BIRD's configuration, which nobody else may read, and nowhere else.
fn passwords_are_kept(cluster: &Cluster) {
    for member in cluster.members() {
        let conf = member.folder().join("bird/bird.cfg");
        assert!(std::fs::read_to_string(&conf).unwrap().contains(RIGHT));
        let mode = std::fs::metadata(&conf).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap();
        let run = run_folder(member);
        let folder = run.display().to_string();
        for said in [
            read(member.folder().join("bgp.log")),
            read(run.join("bgp-status.json")),
            member.tortie(
                &["bgp", "status", "--run-folder", &folder, "-o", "json"],
                "",
            ),
        ] {
            assert!(!said.is_empty());
            assert!(!said.contains(RIGHT) && !said.contains(WRONG), "{said}");
        }
    }
}
