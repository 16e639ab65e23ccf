//! Every program does its work with the rights that the chart gives it, and no others.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_testkit::net::Namespace;

use crate::multi_node::cluster::Cluster;
use crate::multi_node::member::{BINARY, Member};

const NAMESPACE: &str = "tortie-system";

/// How long a program may take for its first work.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program that goes on, with its log.
struct Program {
    process: Child,
    log: PathBuf,
}

impl Program {
    fn start(member: &Member, name: &str, args: &[&str]) -> Self {
        let args = [args, &["--log-level", "info"]].concat();
        Self::start_other(member, name, BINARY, &args)
    }

    fn start_other(member: &Member, name: &str, program: &str, args: &[&str]) -> Self {
        let log = member.folder().join(name);
        let mut command = member.command(program);
        command.args(args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap());
        let process = member
            .node
            .namespace()
            .run(|| command.spawn())
            .unwrap()
            .unwrap();
        Self { process, log }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    #[track_caller]
    fn await_word(&self, word: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.said().contains(word) {
            assert!(Instant::now() < end, "no `{word}`: {}", self.said());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Nothing was refused so far.
    #[track_caller]
    fn assert_allowed(&self) {
        let said = self.said();
        let refused: Vec<_> = said.lines().filter(|line| is_refusal(line)).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_refusal(line: &str) -> bool {
    line.contains("orbidden") || line.contains("cannot list") || line.contains("cannot get")
}

/// A kubeconfig with a token of an account, in place of the administrator's.
fn kubeconfig_of(cluster: &Cluster, account: &str) -> String {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = cluster.kubectl(&["create", "--raw", &path, "-f", "-"], &request.to_string());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let token = answer["status"]["token"].as_str().unwrap();
    let folder = cluster.members()[0].folder();
    let of_admin = std::fs::read_to_string(folder.join("kubeconfig")).unwrap();
    let (before, rest) = of_admin.split_once("token: \"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    let file = folder.join(account);
    std::fs::write(&file, format!("{before}token: \"{token}\"{after}")).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn kubernetes_lets_each_program_do_its_work() {
    let mut cluster = Cluster::on_kubernetes(&[1]);
    let admin = cluster.members()[0]
        .folder()
        .join("kubeconfig")
        .to_str()
        .unwrap()
        .to_owned();
    let node = cluster.members()[0].name.clone();
    let set = "bgp.enabled=true";
    cluster.members()[0].tortie(&["install", "--no-wait", "--set", set], "");
    // As if nothing had run here before.
    let kinds = "ippools,felixconfigurations,clusterinformations,ipamconfigurations,tiers";
    cluster.kubectl(&["delete", kinds, "--all"], "");
    cluster.kubectl(&["delete", "node", &node], "");
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}});
    cluster.kubectl(&["create", "-f", "-"], &object.to_string());

    cluster.set("KUBECONFIG", &kubeconfig_of(&cluster, "tortie-node"));
    cluster.set("NO_DEFAULT_POOLS", "false");
    cluster.set("CALICO_IPV4POOL_VXLAN", "Always");
    cluster.set("CALICO_K8S_NODE_REF", &node);
    let member = &cluster.members()[0];
    let started = member.tortie(&["node", "startup"], "");
    assert!(
        started.contains("The VXLAN device has the address"),
        "{started}"
    );
    let folder = member.folder().to_str().unwrap().to_owned();
    let (status, mtu, ready) = (
        format!("{folder}/status"),
        format!("{folder}/mtu"),
        format!("{folder}/ready"),
    );
    let agent = [
        "agent",
        "--status-folder",
        &status,
        "--mtu-file",
        &mtu,
        "--ready-file",
        &ready,
    ];
    let agent = Program::start(member, "agent.log", &agent);
    let (config, run) = (format!("{folder}/bird"), format!("{folder}/run"));
    std::fs::create_dir(&run).unwrap();
    let bgp = [
        "bgp",
        "--no-bird",
        "--config-folder",
        &config,
        "--run-folder",
        &run,
        "--secret-namespace",
        NAMESPACE,
    ];
    let bgp = Program::start(member, "bgp.log", &bgp);
    let addresses = Program::start(member, "addresses.log", &["node", "tunnel-addresses"]);

    cluster.set("KUBECONFIG", &kubeconfig_of(&cluster, "tortie-controllers"));
    let member = &cluster.members()[0];
    let health = format!("{folder}/health.json");
    let lease = ["--leader-elect", "--leader-elect-namespace", NAMESPACE];
    let controllers = [&["controllers", "--status-file", &*health][..], &lease].concat();
    let controllers = Program::start(member, "controllers.log", &controllers);

    agent.await_word("Everything is in force");
    let end = Instant::now() + PATIENCE;
    while !std::fs::exists(format!("{config}/bird.cfg")).unwrap() {
        assert!(Instant::now() < end, "{}", bgp.said());
        thread::sleep(Duration::from_millis(50));
    }
    connect_a_pod(&cluster, &kubeconfig_of(&cluster, "tortie-cni-plugin"));
    // A pod that is gone, a tier that nobody needs, and a pool that is deleted are work for the controllers.
    cluster.set("KUBECONFIG", &admin);
    let member = &cluster.members()[0];
    member.tortie(
        &["apply", "-f", "-"],
        "apiVersion: projectcalico.org/v3\nkind: Tier\nmetadata: {name: t}\nspec: {order: 5}\n",
    );
    member.tortie(&["delete", "tier", "t"], "");
    member.tortie(&["delete", "ippool", "default-ipv4-ippool"], "");
    thread::sleep(Duration::from_secs(5));
    for program in [&agent, &bgp, &addresses, &controllers] {
        program.assert_allowed();
    }
    assert!(controllers.said().lines().count() > 0);
}

/// What a pod sees of its account, in mounts of its own. `$1` is the folder with that, `$2` the program, `$3` the node's files.
const IN_A_POD: &str = r#"
mount --make-rprivate /
mount -t tmpfs none /var/run
mkdir -p /var/run/secrets/kubernetes.io
cp -r "$1" /var/run/secrets/kubernetes.io/serviceaccount
exec "$2" cni install --sleep --root "$3" --log-level info
"#;

/// The token of plugins is renewed, and comes back if its file goes.
#[test]
fn kubernetes_gives_plugins_a_token_again_and_again() {
    let mut cluster = Cluster::on_kubernetes(&[1]);
    let member = &cluster.members()[0];
    member.tortie(&["install", "--no-wait"], "");
    let of_node = std::fs::read_to_string(kubeconfig_of(&cluster, "tortie-node")).unwrap();
    let value = |key: &str| {
        let (_, rest) = of_node.split_once(&format!("{key}: \"")).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let (account, host) = (
        member.folder().join("account"),
        member.folder().join("host"),
    );
    std::fs::create_dir(&account).unwrap();
    std::fs::write(account.join("token"), value("token")).unwrap();
    std::fs::write(account.join("namespace"), NAMESPACE).unwrap();
    std::fs::copy(value("certificate-authority"), account.join("ca.crt")).unwrap();
    std::fs::create_dir_all(host.join("opt/cni/bin")).unwrap();
    let port = member.endpoint.rsplit_once(':').unwrap().1.to_owned();
    for (name, value) in [
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
        ("KUBERNETES_SERVICE_PORT", &port),
        ("CALICO_CNI_SERVICE_ACCOUNT", "tortie-cni-plugin"),
    ] {
        cluster.set(name, value);
    }
    let member = &cluster.members()[0];
    let (account, host) = (account.to_str().unwrap(), host.to_str().unwrap());
    let script = [
        "--mount", "sh", "-euc", IN_A_POD, "sh", account, BINARY, host,
    ];
    let program = Program::start_other(member, "cni-install.log", "unshare", &script);
    let kubeconfig = format!("{host}/etc/cni/net.d/calico-kubeconfig");
    let await_token = || {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = std::fs::read_to_string(&kubeconfig).unwrap_or_default();
            if let Some((_, token)) = text.split_once("token: ") {
                return token.lines().next().unwrap().to_owned();
            }
            assert!(Instant::now() < end, "{}", program.said());
            thread::sleep(Duration::from_millis(50));
        }
    };
    let first = await_token();
    assert_ne!(first, value("token"));
    // A token of the same second would be the same.
    thread::sleep(Duration::from_secs(2));
    std::fs::remove_file(&kubeconfig).unwrap();
    assert_ne!(await_token(), first);
    program.assert_allowed();
    assert!(!program.said().contains("WARN"), "{}", program.said());
}

/// By the plugin, as a container runtime does.
fn connect_a_pod(cluster: &Cluster, kubeconfig: &str) {
    let member = &cluster.members()[0];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"nodeName": member.name, "containers": [{"name": "web", "image": "web"}]},
    });
    cluster.kubectl(&["create", "-f", "-"], &pod.to_string());
    let namespace = Namespace::new().unwrap();
    let folder = member.folder();
    let config = json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "calico", "datastore_type": "kubernetes",
        "kubernetes": {"kubeconfig": kubeconfig}, "policy": {"type": "k8s"}, "nodename": member.name,
        "nodename_file": folder.join("nodename"), "require_agent": false, "ipam_lock_file": folder.join("ipam.lock"), "log_file_path": folder.join("cni.log"),
        "log_level": "info", "ipam": {"type": "calico-ipam"}, "calico_api_group": "projectcalico.org/v3",
    });
    for verb in ["ADD", "CHECK", "DEL", "DEL"] {
        let mut command = member.command(folder.join("calico"));
        command
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", "container")
            .env(
                "CNI_ARGS",
                "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;IgnoreUnknown=1",
            )
            .env("CNI_NETNS", tortie_testkit::cni::path(&namespace))
            .env("CNI_IFNAME", "eth0")
            .env("CNI_PATH", folder);
        let mut config = config.clone();
        if verb == "CHECK" {
            config["prevResult"] =
                serde_json::from_str(&std::fs::read_to_string(folder.join("result")).unwrap())
                    .unwrap();
        }
        let printed = member.finish(command, &config.to_string());
        if verb == "ADD" {
            std::fs::write(folder.join("result"), printed).unwrap();
        }
    }
    let said = std::fs::read_to_string(folder.join("cni.log")).unwrap();
    let refused: Vec<_> = said.lines().filter(|line| is_refusal(line)).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    cluster.kubectl(&["delete", "pod", "web", "--force", "--grace-period=0"], "");
}
