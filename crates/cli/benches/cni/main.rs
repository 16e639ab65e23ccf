//! How long a container runtime waits for the plugins: whole processes, on a real etcd, in real network namespaces; and for
//! many pods at once, on a real kube-apiserver too.
//!
//! Prints `name value unit` lines. Arguments, in any order: how many containers are connected, 200 if that is not given, and
//! the program to measure, if that is not the one of this build.

#![expect(clippy::print_stdout, reason = "the figures are the output")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has nothing better to do than to say where"
)]

mod burst;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tortie_testkit::Etcd;
use tortie_testkit::cni::{Call, Runtime, path};
use tortie_testkit::net::{Namespace, Node};

const CONTAINERS: usize = 200;

/// Containers that are connected at once.
const AT_ONCE: usize = 8;

const POOLS: &str = "\
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: four}
spec: {cidr: 10.65.0.0/16, nodeSelector: all()}
---
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: six}
spec: {cidr: 'fd00:65::/64', nodeSelector: all()}
---
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n1}
";

struct Bench {
    runtime: Runtime,
    config: String,
}

fn main() {
    let given = || {
        std::env::args()
            .skip(1)
            .filter(|word| !word.starts_with('-'))
    };
    let count = given().find_map(|word| word.parse().ok());
    let count = count.unwrap_or(CONTAINERS);
    let binary = given().find(|word| word.contains('/')).map(PathBuf::from);
    let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_tortie").into());
    burst::measure(&binary, count);
    let node = Node::new().unwrap();
    let etcd = node.namespace().run(Etcd::start).unwrap().unwrap();
    apply(
        node.namespace(),
        &binary,
        &[("ETCD_ENDPOINTS", etcd.endpoint())],
        POOLS,
    );
    let folder = tempfile::tempdir().unwrap();
    let containers: Vec<(String, Namespace)> = (0..count)
        .map(|i| (format!("container{i:05}"), Namespace::new().unwrap()))
        .collect();
    for (name, ipv6) in [("ipv4", "false"), ("both", "true")] {
        let config = json!({
            "cniVersion": "1.0.0", "name": "net", "type": "calico", "datastore_type": "etcdv3",
            "etcd_endpoints": etcd.endpoint(), "nodename": "n1", "nodename_file_optional": true,
            "ipam_lock_file": folder.path().join("lock"), "log_level": "error",
            "ipam": {"type": "calico-ipam", "assign_ipv6": ipv6}, "require_agent": false,
        });
        let bench = Bench {
            runtime: Runtime::new(node.namespace(), &binary).unwrap(),
            config: config.to_string(),
        };
        for (what, at_once) in [
            (name.to_owned(), 1),
            (format!("{name}-{AT_ONCE}-at-once"), AT_ONCE),
        ] {
            print(
                &format!("cni-add/{what}"),
                bench.all("ADD", &containers, at_once),
            );
            for command in ["del", "del-again"] {
                print(
                    &format!("cni-{command}/{what}"),
                    bench.all("DEL", &containers, at_once),
                );
            }
        }
        print(
            &format!("cni-version/{name}"),
            bench.all("VERSION", &containers, 1),
        );
    }
}

impl Bench {
    /// Calls the plugin for all containers, and gives how long each call took.
    fn all(
        &self,
        command: &str,
        containers: &[(String, Namespace)],
        at_once: usize,
    ) -> Vec<Duration> {
        let part = containers.len().div_ceil(at_once);
        thread::scope(|scope| {
            let threads: Vec<_> = containers
                .chunks(part)
                .map(|part| {
                    let call =
                        |(id, namespace): &(String, Namespace)| self.call(command, id, namespace);
                    scope.spawn(move || part.iter().map(call).collect::<Vec<_>>())
                })
                .collect();
            let times = threads.into_iter().map(|thread| thread.join().unwrap());
            times.flatten().collect()
        })
    }

    fn call(&self, command: &str, container: &str, namespace: &Namespace) -> Duration {
        let call = Call {
            command,
            container,
            namespace: path(namespace),
            interface: "eth0",
            arguments: &format!("K8S_POD_NAMESPACE=shop;K8S_POD_NAME={container}"),
            config: self.config.clone(),
        };
        let start = Instant::now();
        let answer = self.runtime.call("calico", &call).unwrap();
        let time = start.elapsed();
        answer.unwrap();
        time
    }
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort();
    for (percentile, label) in [(50, "p50"), (99, "p99")] {
        let place = (times.len() * percentile / 100).min(times.len() - 1);
        println!("{name}/{label} {:.2} ms", times[place].as_secs_f64() * 1e3);
    }
}

/// Stores objects in the datastore that variables name.
fn apply(node: &Namespace, binary: &Path, variables: &[(&str, &str)], objects: &str) {
    use std::io::Write as _;

    let mut command = Command::new(binary);
    command
        .args(["apply", "-f", "-"])
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = node.run(|| command.spawn()).unwrap().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(objects.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
}
