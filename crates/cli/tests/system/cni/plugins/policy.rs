//! Ports of the node beside an agent's policy, in both data planes.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tortie_testkit::cni::{Call, Runtime, path};
use tortie_testkit::net::{Dialogue, Namespace};

use crate::cni::site::{Container, Site, addresses};

const PATIENCE: Duration = Duration::from_secs(30);

/// What the node and a machine outside have on their link.
const NODE: &str = "198.51.100.1";
const OUTSIDE: &str = "198.51.100.2";

/// An agent, until this is dropped.
struct Agent {
    child: Child,
}

impl Agent {
    fn start(site: &Site, mode: &str) -> Self {
        let folder = site.folder.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .args([
                "agent",
                "--node",
                "n1",
                "--log-level",
                "warn",
                "--status-folder",
            ])
            .arg(folder.join("status"))
            .arg("--mtu-file")
            .arg(folder.join("mtu"))
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DATASTORE_TYPE", "etcdv3")
            .env("ETCD_ENDPOINTS", site.etcd.endpoint())
            .env("FELIX_NFTABLESMODE", mode)
            .env("FELIX_IPTABLESBACKEND", "legacy")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let spawned = site.node.namespace().run(|| command.spawn());
        Self {
            child: spawned.unwrap().unwrap(),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn policy(action: &str, source: &str) -> String {
    let rule = json!({"action": action, "protocol": "TCP", "source": {"nets": [source]}});
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkPolicy", "metadata": {"name": "web"},
        "spec": {"selector": "all()", "types": ["Ingress"], "ingress": [rule]},
    })
    .to_string()
}

#[track_caller]
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn check(mode: &str) {
    let mut site = Site::new();
    let networks = |address: &str| [format!("{address}/24").parse().unwrap()];
    let outside = site
        .node
        .add_external("wire", &networks(NODE), &networks(OUTSIDE))
        .unwrap();
    let _agent = Agent::start(&site, mode);
    let container = Container::new("web");
    let connected = site.calico("ADD", &container, &json!({})).unwrap();
    let pod: SocketAddr = format!("{}:80", addresses(&connected)[0]).parse().unwrap();

    let binary = Path::new(env!("CARGO_BIN_EXE_tortie"));
    let runtime = Runtime::with_plugins(site.node.namespace(), binary, &["portmap"]).unwrap();
    let portmap = |command| {
        let ports = [json!({"hostPort": 8080, "containerPort": 80, "protocol": "tcp"})];
        let config = json!({
            "cniVersion": "1.0.0", "name": "net", "type": "portmap", "prevResult": connected,
            "runtimeConfig": {"portMappings": ports},
        });
        let call = Call {
            command,
            container: &container.id,
            namespace: path(&container.namespace),
            interface: "eth0",
            arguments: "",
            config: config.to_string(),
        };
        runtime.call("portmap", &call).unwrap().unwrap();
    };
    portmap("ADD");
    let is_reached = |client: &Namespace, address: &str| {
        let dialogue = Dialogue {
            listen: pod,
            ..Dialogue::new(
                client,
                &container.namespace,
                SocketAddr::new(address.parse().unwrap(), 8080),
            )
        };
        dialogue.tcp().unwrap()
    };
    let from_outside = || is_reached(&outside.namespace, NODE);
    // The profile of the network lets only its own containers in.
    eventually("the agent denies it", || !from_outside());
    let outside_alone = policy("Allow", &format!("{OUTSIDE}/32"));
    // Policy sees who really connects.
    site.tortie(&["apply", "-f", "-"], &outside_alone);
    eventually("policy allows it", from_outside);
    assert!(is_reached(site.node.namespace(), "127.0.0.1"), "{mode}");
    let others = policy("Allow", "203.0.113.0/24");
    site.tortie(&["apply", "-f", "-"], &others);
    eventually("policy does not allow it", || !from_outside());
    site.tortie(&["apply", "-f", "-"], &outside_alone);
    eventually("policy allows it again", from_outside);
    portmap("DEL");
    assert!(!from_outside());
    site.calico("DEL", &container, &json!({})).unwrap();
}

#[test]
fn a_port_leads_to_a_pod_if_nftables_allow_it() {
    check("Enabled");
}

#[test]
fn a_port_leads_to_a_pod_if_iptables_allow_it() {
    check("Disabled");
}
