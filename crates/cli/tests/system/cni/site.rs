//! A node with an etcd of its own and a runtime.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tortie_kernel::route::Route;
use tortie_testkit::Etcd;
use tortie_testkit::cni::{Answer, Call, Runtime, path};
use tortie_testkit::net::{Namespace, Node, ping};

/// The node's own address, which containers can reach.
pub(crate) const NODE_IPV4: &str = "192.0.2.1";
pub(crate) const NODE_IPV6: &str = "2001:db8::1";

const PATIENCE: Duration = Duration::from_secs(30);

/// Pools of both families, small enough to be used up.
pub(crate) const POOLS: &str = "\
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: four}
spec: {cidr: 10.65.0.0/26, blockSize: 29, nodeSelector: all()}
---
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: six}
spec: {cidr: 'fd00:65::/112', blockSize: 122, nodeSelector: all()}
---
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: other}
spec: {cidr: 10.66.0.0/26, blockSize: 29, nodeSelector: '!all()'}
---
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n1}
spec: {bgp: {ipv4Address: 192.0.2.1/32}}
---
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n2}
";

/// A node with an etcd of its own and a runtime.
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) etcd: Etcd,
    pub(crate) runtime: Runtime,
    pub(crate) folder: TempDir,
}

/// A container that may be connected.
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) namespace: Namespace,
    pub(crate) arguments: String,
}

impl Site {
    /// With pools, and the datastore initialised.
    pub(crate) fn new() -> Self {
        let site = Self::empty();
        site.tortie(&["apply", "-f", "-"], POOLS);
        site
    }

    /// With a datastore in which nothing is.
    pub(crate) fn empty() -> Self {
        let mut node = Node::new().unwrap();
        let uplink = node.socket().link("uplink").unwrap().unwrap().index;
        let add = |batch: &mut tortie_kernel::route::Batch| {
            for address in [NODE_IPV4, NODE_IPV6] {
                let address: std::net::IpAddr = address.parse().unwrap();
                batch.add_address(uplink, address.into());
            }
        };
        node.socket().execute(add).unwrap();
        // In the node's namespace, as plugins that run there reach nothing else.
        let etcd = node.namespace().run(Etcd::start).unwrap().unwrap();
        let binary = Path::new(env!("CARGO_BIN_EXE_tortie"));
        let runtime = Runtime::new(node.namespace(), binary).unwrap();
        Self {
            node,
            etcd,
            runtime,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The configuration, with changes.
    pub(crate) fn config(&self, changes: &Value) -> Value {
        let mut config = json!({
            "cniVersion": "1.0.0",
            "name": "net",
            "type": "calico",
            "datastore_type": "etcdv3",
            "etcd_endpoints": self.etcd.endpoint(),
            "nodename": "n1",
            "nodename_file_optional": true,
            "require_agent": false,
            "ipam_lock_file": self.folder.path().join("ipam.lock"),
            "ipam": {"type": "calico-ipam"},
        });
        merge(&mut config, changes);
        config
    }

    /// Calls `calico`.
    pub(crate) fn calico(&self, command: &str, container: &Container, changes: &Value) -> Answer {
        self.plugin("calico", command, container, changes)
    }

    /// Calls a plugin.
    pub(crate) fn plugin(
        &self,
        plugin: &str,
        command: &str,
        container: &Container,
        changes: &Value,
    ) -> Answer {
        let call = Call {
            command,
            container: &container.id,
            namespace: path(&container.namespace),
            interface: "eth0",
            arguments: &container.arguments,
            config: self.config(changes).to_string(),
        };
        self.runtime.call(plugin, &call).unwrap()
    }

    /// Runs `tortie` on the node and gives what it printed.
    #[track_caller]
    pub(crate) fn tortie(&self, arguments: &[&str], input: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .args(arguments)
            .env_clear()
            .env("ETCD_ENDPOINTS", self.etcd.endpoint());
        run_in(self.node.namespace(), command, input)
    }

    /// Resources of a kind.
    pub(crate) fn resources(&self, kind: &str) -> Vec<Value> {
        let text = self.tortie(&["get", kind, "-A", "-o", "json"], "");
        let list: Value = serde_json::from_str(&text).unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Keys of etcd below a prefix.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let arguments = ["get", "--prefix", "--keys-only", prefix];
        let listed = self.node.namespace().run(|| self.etcd.etcdctl(&arguments));
        let text = listed.unwrap().unwrap();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// Names of the node's interfaces to containers.
    pub(crate) fn interfaces(&mut self) -> Vec<String> {
        let links = self.node.socket().links().unwrap();
        let names = links.into_iter().map(|link| link.name);
        names.filter(|name| name.starts_with("cali")).collect()
    }

    /// How many addresses are given out.
    pub(crate) fn allocations(&self) -> usize {
        let arguments = [
            "get",
            "--prefix",
            "--print-value-only",
            "/calico/ipam/v2/assignment/",
        ];
        let listed = self.node.namespace().run(|| self.etcd.etcdctl(&arguments));
        let blocks = listed.unwrap().unwrap();
        let held = |block: &str| {
            let block: Value = serde_json::from_str(block).unwrap();
            let slots = block["allocations"].as_array().cloned().unwrap_or_default();
            slots.iter().filter(|slot| !slot.is_null()).count()
        };
        blocks
            .lines()
            .filter(|line| !line.is_empty())
            .map(held)
            .sum()
    }

    /// Fails unless nothing is left of any container.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&mut self) {
        assert_eq!(self.interfaces(), Vec::<String>::new());
        assert_eq!(self.allocations(), 0);
        assert_eq!(self.keys("/calico/ipam/v2/handle/"), Vec::<String>::new());
        let endpoints = "/calico/resources/v3/projectcalico.org/workloadendpoints/";
        assert_eq!(self.keys(endpoints), Vec::<String>::new());
        let routes = self.node.socket().routes(tortie_kernel::route::MAIN_TABLE);
        let pool: ipnet::IpNet = "10.65.0.0/16".parse().unwrap();
        let is_left = |route: &Route| pool.contains(&route.destination);
        assert!(!routes.unwrap().iter().any(is_left));
    }

    /// Whether node and container reach each other.
    #[track_caller]
    pub(crate) fn assert_reachable(&self, container: &Container, address: &str) {
        let address: std::net::IpAddr = address.parse().unwrap();
        let node = if address.is_ipv4() {
            NODE_IPV4
        } else {
            NODE_IPV6
        };
        let node: std::net::IpAddr = node.parse().unwrap();
        assert!(
            ping(&container.namespace, node, PATIENCE).unwrap(),
            "to {node}"
        );
        let there = ping(self.node.namespace(), address, PATIENCE).unwrap();
        assert!(there, "to {address}");
    }
}

impl Container {
    /// One that is not a pod.
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            namespace: Namespace::new().unwrap(),
            arguments: String::new(),
        }
    }

    /// The container of a pod.
    pub(crate) fn of_pod(id: &str, namespace: &str, pod: &str) -> Self {
        Self {
            arguments: format!(
                "IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={pod};K8S_POD_INFRA_CONTAINER_ID={id}"
            ),
            ..Self::new(id)
        }
    }
}

/// The addresses of a result of version 1.0.0, without the lengths of their networks.
pub(crate) fn addresses(result: &Value) -> Vec<String> {
    let ips = result["ips"].as_array().cloned().unwrap_or_default();
    let address = |ip: &Value| {
        let text = ip["address"].as_str().unwrap();
        text.split('/').next().unwrap().to_owned()
    };
    ips.iter().map(address).collect()
}

/// Runs a program in a namespace; it must succeed.
#[track_caller]
pub(crate) fn run_in(namespace: &Namespace, mut command: Command, input: &str) -> String {
    use std::io::Write as _;

    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = namespace.run(|| command.spawn()).unwrap().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}\n{out}{err}");
    out
}

fn merge(into: &mut Value, changes: &Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, changes) => *into = changes.clone(),
    }
}
