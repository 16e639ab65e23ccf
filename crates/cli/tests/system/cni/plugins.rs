//! The plugins of the CNI project's names, beside the ones that the CNI project wrote.

mod bandwidth;
mod host_local;
mod loopback;
mod policy;
mod portmap;
mod tuning;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tortie_kernel::link::Link;
use tortie_kernel::route::Socket;
use tortie_testkit::cni::{Answer, Call, Runtime, path};
use tortie_testkit::net::{Namespace, Node};

use crate::cni::site::run_in;

/// The versions that both of us speak and whose results have interfaces.
const VERSIONS: [&str; 3] = ["0.3.1", "0.4.0", "1.0.0"];

/// Whose plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    Theirs,
}

/// A node with a runtime that has all plugins.
struct Bench {
    node: Node,
    runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        let node = Node::new().unwrap();
        let binary = Path::new(env!("CARGO_BIN_EXE_tortie"));
        let names = ["loopback", "portmap", "bandwidth", "tuning", "host-local"];
        let runtime = Runtime::with_plugins(node.namespace(), binary, &names).unwrap();
        Self { node, runtime }
    }

    fn call(
        &self,
        whose: Whose,
        plugin: &str,
        asked: (&str, &str),
        inside: &Namespace,
        config: &Value,
    ) -> Answer {
        let (command, container) = asked;
        let call = Call {
            command,
            container,
            namespace: path(inside),
            interface: "eth0",
            arguments: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web",
            config: config.to_string(),
        };
        match whose {
            Whose::Ours => self.runtime.call(plugin, &call).unwrap(),
            Whose::Theirs => self.runtime.call_other(plugin, &call).unwrap(),
        }
    }

    /// What a program prints on the node.
    fn run(&self, program: &[&str]) -> String {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]);
        run_in(self.node.namespace(), command, "")
    }
}

/// An interface in a namespace.
fn link(namespace: &Namespace, name: &str) -> Option<Link> {
    let read = || Socket::open().unwrap().link(name).unwrap();
    namespace.run(read).unwrap()
}

/// A result of plugins that have connected a container.
fn connected(version: &str, host: &str, inside: &Namespace, addresses: &[&str]) -> Value {
    let ips: Vec<Value> = addresses
        .iter()
        .map(|address| {
            let mut ip = json!({"address": address, "interface": 1});
            if version < "1.0.0" {
                ip["version"] = if address.contains(':') { "6" } else { "4" }.into();
            }
            ip
        })
        .collect();
    let mac = link(inside, "eth0").unwrap().mac.unwrap().to_string();
    json!({
        "cniVersion": version,
        "interfaces": [{"name": host, "mac": "ee:ee:ee:ee:ee:ee"}, {"name": "eth0", "mac": mac, "sandbox": path(inside)}],
        "ips": ips,
        "routes": [{"dst": "0.0.0.0/0"}],
        "dns": {"nameservers": ["192.0.2.53"]},
    })
}

#[test]
fn each_says_which_versions_it_speaks_and_logs_who_it_was_called_for() {
    let bench = Bench::new();
    let inside = Namespace::new().unwrap();
    for plugin in ["loopback", "portmap", "bandwidth", "tuning", "host-local"] {
        let config = json!({"cniVersion": "1.1.0"});
        let answer = bench
            .call(Whose::Ours, plugin, ("VERSION", ""), &inside, &config)
            .unwrap();
        assert_eq!(answer["cniVersion"], "1.1.0");
        assert!(
            answer["supportedVersions"]
                .as_array()
                .unwrap()
                .contains(&json!("1.1.0"))
        );
        let config = json!({"cniVersion": "9.0.0", "name": "net", "type": plugin});
        let (code, _) = bench
            .call(Whose::Ours, plugin, ("ADD", "c1"), &inside, &config)
            .unwrap_err();
        assert_eq!(code, 1, "{plugin}");
    }
    let config = json!({"cniVersion": "1.0.0", "name": "net", "type": "loopback"});
    let answer = bench.call(Whose::Ours, "loopback", ("ADD", "c1"), &inside, &config);
    for expected in [
        "plugin=\"loopback\"",
        "command=Add",
        "container=\"c1\"",
        "pod=\"web\"",
        "namespace=\"shop\"",
        "milliseconds=",
    ] {
        assert!(answer.log.contains(expected), "{expected}: {}", answer.log);
    }
    let (code, message) = bench
        .call(Whose::Ours, "portmap", ("ADD", "c1"), &inside, &config)
        .unwrap_err();
    assert_eq!(code, 7);
    assert!(message.contains("prevResult"), "{message}");
}
