//! Everything together, on packets: what `kubectl` applies is enforced, and `tortie down` leaves nothing.

mod live;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_testkit::cni::{Call, Runtime, path};
use tortie_testkit::net::{Dialogue, Namespace, Node};

use crate::up::server::{NODE, Up, node};

/// How long to wait for a change to be in force. Mostly it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

const PORT: u16 = 80;

/// A node with everything on it.
struct Site {
    node: Node,
    runtime: Runtime,
    up: Up,
    /// What the plugin takes for the datastore.
    datastore: Value,
}

/// A pod that is connected.
struct Pod {
    name: &'static str,
    namespace: Namespace,
    address: IpAddr,
}

impl Site {
    fn new() -> Self {
        Self::with(Vec::new())
    }

    /// With these variables of the environment.
    fn with(variables: Vec<(&'static str, String)>) -> Self {
        let node = node();
        let binary = Path::new(env!("CARGO_BIN_EXE_tortie"));
        let runtime = Runtime::new(node.namespace(), binary).unwrap();
        let up = Up::on(node.namespace(), variables);
        let file = up.file("tortie.redb");
        Self {
            node,
            runtime,
            up,
            datastore: json!({"datastore_type": "embedded", "datastore_path": file}),
        }
    }

    /// Where the plugin knows the API server alone, as in a cluster.
    fn with_kubeconfig_only() -> Self {
        Self {
            datastore: json!({"datastore_type": "kubernetes"}),
            ..Self::new()
        }
    }

    fn cni(&self, command: &str, name: &str, namespace: &Namespace) -> Value {
        let mut config = json!({
            "cniVersion": "1.0.0", "name": "net", "type": "calico", "nodename_file": self.up.node_name_file(),
            "policy": {"type": "k8s"}, "kubernetes": {"kubeconfig": self.up.file("kubeconfig")},
            "ipam_lock_file": self.up.folder().join("ipam.lock"), "ipam": {"type": "calico-ipam"},
        });
        for (name, value) in self.datastore.as_object().unwrap() {
            config[name] = value.clone();
        }
        let arguments = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={name};K8S_POD_INFRA_CONTAINER_ID=id-{name}"
        );
        let call = Call {
            command,
            container: &format!("id-{name}"),
            namespace: path(namespace),
            interface: "eth0",
            arguments: &arguments,
            config: config.to_string(),
        };
        self.runtime.call("calico", &call).unwrap().unwrap()
    }

    fn pod(&self, name: &'static str) -> Pod {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": {"role": name}},
            "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "none"}]},
        });
        self.apply(&pod);
        let namespace = Namespace::new().unwrap();
        let result = self.cni("ADD", name, &namespace);
        let address = result["ips"][0]["address"].as_str().unwrap();
        let address: IpAddr = address.split('/').next().unwrap().parse().unwrap();
        // As the kubelet does once the pod runs.
        let status =
            json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
        let patch = [
            "patch",
            "pod",
            name,
            "--namespace=shop",
            "--subresource=status",
            "--type=merge",
        ];
        let status = ["--patch", &status.to_string()];
        self.up.kubectl(&[&patch[..], &status].concat());
        Pod {
            name,
            namespace,
            address,
        }
    }

    fn apply(&self, object: &Value) {
        self.up
            .kubectl_with(&["apply", "--filename=-"], &object.to_string());
    }

    /// Waits until a connection is possible, or is not, as it should be.
    #[track_caller]
    fn await_connection(&self, from: &Pod, to: &Pod, expected: bool) {
        let end = Instant::now() + PATIENCE;
        let destination = SocketAddr::new(to.address, PORT);
        while Dialogue::new(&from.namespace, &to.namespace, destination)
            .tcp()
            .unwrap()
            != expected
        {
            let (from, to) = (from.name, to.name);
            assert!(
                Instant::now() < end,
                "{from} to {to}: expected {expected}\n{}",
                self.run("nft list ruleset")
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until there are so many workload endpoints.
    #[track_caller]
    fn await_endpoints(&self, expected: usize) {
        let end = Instant::now() + PATIENCE;
        loop {
            let endpoints = self.up.tortie(&["get", "workloadendpoints", "-A"]);
            if endpoints.matches("shop").count() == expected {
                return;
            }
            assert!(Instant::now() < end, "{endpoints}\n{}", self.up.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What `tortie why` answers beside the process that runs.
    #[track_caller]
    fn assert_explained(&self, from: &Pod, to: &Pod, verdict: &str, policy: &str) {
        let (from, to) = (format!("shop/{}", from.name), format!("shop/{}", to.name));
        let arguments = [
            "why",
            &from,
            &to,
            "--protocol=TCP",
            "--port=80",
            "--output=json",
        ];
        let told = self.up.try_tortie(&arguments);
        let answer: Value = serde_json::from_str(&told.stdout).unwrap();
        let text = answer.to_string();
        assert_eq!(answer["verdict"], verdict, "{text}");
        assert!(text.contains(policy), "{policy} in {text}");
    }

    /// What a program prints on the node.
    #[track_caller]
    fn run(&self, line: &str) -> String {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        let output = self.up.run(command, b"");
        assert!(output.success(), "{line}: {}", output.stderr);
        output.stdout
    }
}

#[test]
fn what_kubectl_applies_is_enforced_until_it_is_deleted() {
    let mut site = Site::new();
    site.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let [web, client, other] = ["web", "client", "other"].map(|name| site.pod(name));
    site.await_connection(&client, &web, true);
    site.await_connection(&other, &web, true);

    let kubernetes = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "only-clients", "namespace": "shop"},
        "spec": {
            "podSelector": {"matchLabels": {"role": "web"}},
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"role": "client"}}}]}],
        },
    });
    site.apply(&kubernetes);
    site.await_connection(&other, &web, false);
    site.await_connection(&client, &web, true);
    site.assert_explained(&other, &web, "Deny", "only-clients");
    site.assert_explained(&client, &web, "Allow", "only-clients");
    // A pod that gets the label is let in.
    let label = [
        "label",
        "pod",
        "other",
        "--namespace=shop",
        "--overwrite",
        "role=client",
    ];
    site.up.kubectl(&label);
    site.await_connection(&other, &web, true);
    site.up
        .kubectl(&["delete", "netpol", "only-clients", "--namespace=shop"]);

    let calico = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkPolicy",
        "metadata": {"name": "default.closed"},
        "spec": {
            "selector": "role == 'web'", "types": ["Ingress"], "order": 1,
            "ingress": [{"action": "Deny", "protocol": "TCP", "destination": {"ports": [PORT]}}],
        },
    });
    site.apply(&calico);
    site.await_connection(&client, &web, false);
    site.assert_explained(&client, &web, "Deny", "default.closed");
    site.up.kubectl(&["delete", "gnp", "default.closed"]);
    site.await_connection(&client, &web, true);
    let endpoints = site.up.tortie(&["get", "workloadendpoints", "-A"]);
    assert_eq!(endpoints.matches("shop").count(), 3, "{endpoints}");
    assert!(site.run("ip link").contains("vxlan.calico"));

    for pod in [&client, &other] {
        site.cni("DEL", pod.name, &pod.namespace);
    }
    let told = site.up.tortie(&["down"]);
    assert_eq!(site.up.await_end(), Some(0), "{}", site.up.log());
    for part in [
        "Ended process",
        "Removed nftables rules for",
        "routes",
        "vxlan.calico",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert_nothing_left(&site);
    // The pod's own interface is not ours to take.
    assert!(
        site.node
            .socket()
            .links()
            .unwrap()
            .iter()
            .any(|link| link.name.starts_with("cali"))
    );
    let again = site.up.tortie(&["down"]);
    assert!(
        again.contains("Nothing was running") && again.contains("nothing to remove"),
        "{again}"
    );
}

/// A plugin with the kubeconfig writes the address into the pod, and nowhere else.
#[test]
fn pods_that_a_plugin_tells_only_the_api_server_about_are_protected() {
    let site = Site::with_kubeconfig_only();
    site.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let [web, client, other] = ["web", "client", "other"].map(|name| site.pod(name));
    site.await_connection(&other, &web, true);
    site.apply(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "only-clients", "namespace": "shop"},
        "spec": {
            "podSelector": {"matchLabels": {"role": "web"}},
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"role": "client"}}}]}],
        },
    }));
    site.await_connection(&other, &web, false);
    site.await_connection(&client, &web, true);
    site.cni("DEL", "client", &client.namespace);
    site.await_endpoints(2);
    site.up
        .kubectl(&["delete", "pod", "other", "--namespace=shop"]);
    site.await_endpoints(1);
}

/// Services are the API server's own, and so are the endpoints behind them.
#[test]
fn rules_that_name_services_are_enforced() {
    let site = Site::new();
    site.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let [web, client, other] = ["web", "client", "other"].map(|name| site.pod(name));
    site.await_connection(&client, &web, true);
    site.apply(&json!({
        "apiVersion": "projectcalico.org/v3", "kind": "NetworkPolicy",
        "metadata": {"name": "default.to-service", "namespace": "shop"},
        "spec": {
            "selector": "role == 'client'", "types": ["Egress"],
            "egress": [{"action": "Allow", "destination": {"services": {"name": "backend"}}}],
        },
    }));
    site.await_connection(&client, &web, false);
    let service = |role: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "backend", "namespace": "shop"},
            "spec": {"selector": {"role": role}, "ports": [{"port": 8080, "targetPort": PORT}]},
        })
    };
    site.apply(&service("web"));
    site.await_connection(&client, &web, true);
    site.await_connection(&client, &other, false);
    site.apply(&service("other"));
    site.await_connection(&client, &other, true);
    site.await_connection(&client, &web, false);
    site.up
        .kubectl(&["delete", "service", "backend", "--namespace=shop"]);
    site.await_connection(&client, &other, false);
    let slices = site
        .up
        .kubectl(&["get", "endpointslices", "--namespace=shop", "--output=name"]);
    assert_eq!(slices, "");
}

/// A set that is larger than `maxIpsetSize` is refused, and the policies that look into it deny.
#[test]
fn why_knows_what_the_kernel_of_its_machine_refused() {
    let variables = [
        ("FELIX_HEALTHENABLED", "true"),
        ("FELIX_NFTABLESMODE", "Disabled"),
        ("FELIX_IPTABLESBACKEND", "NFT"),
        ("FELIX_MAXIPSETSIZE", "4"),
    ];
    let site = Site::with(
        variables
            .map(|(name, value)| (name, value.to_owned()))
            .into(),
    );
    site.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let [web, client] = ["web", "client"].map(|name| site.pod(name));
    site.await_connection(&client, &web, true);
    let list = |members: u8| {
        let nets: Vec<String> = (0..members).map(|n| format!("172.30.{n}.0/24")).collect();
        json!({
            "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkSet",
            "metadata": {"name": "long", "labels": {"list": "long"}}, "spec": {"nets": nets},
        })
    };
    site.apply(&list(5));
    site.apply(&json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkPolicy",
        "metadata": {"name": "default.but-list"},
        "spec": {
            "selector": "role == 'web'", "types": ["Ingress"],
            "ingress": [{"action": "Allow", "source": {"notSelector": "list == 'long'"}}],
        },
    }));
    site.await_connection(&client, &web, false);
    site.assert_explained(&client, &web, "Deny", "\"type\":\"refused\"");
    let told = site
        .up
        .try_tortie(&["why", "shop/client", "shop/web"])
        .stdout;
    let line = format!(
        "Deny by GlobalNetworkPolicy default.but-list in tier default, whatever its rules say: on node {NODE} the kernel \
         refused IP set "
    );
    assert!(told.contains(&line), "{told}");
    site.apply(&list(4));
    site.await_connection(&client, &web, true);
    site.assert_explained(&client, &web, "Allow", "default.but-list");
}

#[track_caller]
fn assert_nothing_left(site: &Site) {
    assert_eq!(site.run("nft list ruleset"), "");
    for program in ["iptables-legacy-save", "ip6tables-legacy-save"] {
        let rules = site.run(program);
        assert!(!rules.contains("cali"), "{rules}");
    }
    assert_eq!(site.run("ipset list -name"), "");
    let links = site.run("ip -o link");
    assert!(!links.contains("vxlan"), "{links}");
    let addresses = site.run("ip -o addr");
    assert!(!addresses.contains("10.65."), "{addresses}");
    for file in ["tortie.pid", "tortie.sock", "api.sock"] {
        assert!(!site.up.file(file).exists(), "{file}");
    }
}

/// A route that an administrator has added is not ours, whatever protocol number the device routes have.
#[test]
fn down_removes_our_routes_and_no_others() {
    let site = Site::new();
    site.run("ip route add 10.99.0.0/24 dev uplink");
    site.up.tortie(&["down"]);
    for family in ["-4", "-6"] {
        let routes = site.run(&format!("ip {family} route show table all proto 80"));
        assert_eq!(routes, "");
    }
    let routes = site.run("ip route");
    assert!(routes.contains("10.99.0.0/24"), "{routes}");
}

/// `up` does for this machine what a kubelet does.
#[test]
fn a_node_that_is_deleted_registers_again() {
    let site = Site::new();
    let place = || {
        let node = site.up.try_tortie(&["get", "node", NODE, "-o", "json"]);
        let node: Value = serde_json::from_str(&node.stdout).unwrap_or_default();
        let bgp = &node["spec"]["bgp"];
        (
            bgp["ipv4Address"].clone(),
            node["spec"]["ipv4VXLANTunnelAddr"].clone(),
        )
    };
    let before = place();
    assert_eq!(before.0, "192.0.2.1/32");
    for _ in 0..2 {
        site.up.kubectl(&["delete", "node", NODE]);
        let end = Instant::now() + PATIENCE;
        let ready = || {
            let node = site
                .up
                .try_kubectl(&["get", "node", NODE, "--output=json"], "");
            let node: Value = serde_json::from_str(&node.stdout).unwrap_or_default();
            node["status"]["conditions"][0]["status"] == "True"
        };
        while !(ready() && place().0 == before.0 && place().1.is_string()) {
            assert!(Instant::now() < end, "{:?}: {}", place(), site.up.log());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Whoever exports its kubeconfig, for kubectl, gets the same answers from `tortie`; and the agent itself says what it was
/// started with.
#[test]
fn its_kubeconfig_and_its_socket_are_one_view() {
    let iptables = ("FELIX_NFTABLESMODE", "Disabled".to_owned());
    let site = Site::with(vec![iptables]);
    site.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let [web, client] = ["web", "client"].map(|name| site.pod(name));
    site.apply(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "nobody", "namespace": "shop"}, "spec": {"podSelector": {}},
    }));
    site.await_connection(&client, &web, false);
    let through_kubeconfig = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", site.up.folder())
            .env("KUBECONFIG", site.up.file("kubeconfig"));
        site.up.run(command, b"")
    };
    for question in [
        &[
            "why",
            "shop/client",
            "shop/web",
            "--protocol=TCP",
            "--port=80",
        ][..],
        &["why", "--policies", "shop/web"],
        &["get", "workloadendpoints", "-A", "-o", "yaml"],
        &["get", "networkpolicies", "-A", "-o", "yaml"],
        &["ipam", "check"],
    ] {
        let through_socket = site.up.try_tortie(question);
        assert_eq!(
            through_kubeconfig(question).stdout,
            through_socket.stdout,
            "{question:?}: {}",
            through_socket.stderr
        );
    }
    let verified = through_kubeconfig(&["node", "verify"]);
    let right = format!("{NODE}: iptables has what it should have; no drift\n");
    assert_eq!(verified.stdout, right, "{}", verified.stderr);
}

/// Nobody runs containers here; who made a pod is told so, and what makes one that has a network.
#[test]
fn a_pod_that_nothing_runs_has_an_event_that_says_why() {
    let site = Site::new();
    site.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    site.up
        .kubectl(&["run", "idle", "--image=web", "--namespace=shop"]);
    site.pod("web");
    let end = Instant::now() + PATIENCE;
    loop {
        let told = site
            .up
            .kubectl(&["describe", "pod", "idle", "--namespace=shop"]);
        if told.contains("`tortie pod run idle -n shop`") {
            assert!(told.contains("NoKubelet"), "{told}");
            break;
        }
        assert!(Instant::now() < end, "{told}\n{}", site.up.log());
        thread::sleep(Duration::from_millis(50));
    }
    let events = site.up.json(&["events", "--namespace=shop"]);
    let about = events["items"].as_array().unwrap().iter();
    let about: Vec<&Value> = about
        .map(|event| &event["involvedObject"]["name"])
        .collect();
    assert_eq!(about, ["idle"]);
}
