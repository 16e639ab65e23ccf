//! An agent as a process, which is killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use std::{env, fs};

use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::agent::{RunningAgent, Start};
use crate::etcd::{WithEtcd, connect};
use crate::flow::eventually;
use crate::objects::policy;
use crate::planes::Plane;
use crate::setting::Setting;
use crate::traffic::{Conversation, Datagrams};

on_both_data_planes!(what_is_in_force_survives_that_the_agent_is_killed_at_any_time);

/// What the process is told: the endpoint of etcd, the data plane, and a folder for what it writes.
const ETCD: &str = "TORTIE_TEST_AGENT_ETCD";
const PLANE: &str = "TORTIE_TEST_AGENT_PLANE";
const FOLDER: &str = "TORTIE_TEST_AGENT_FOLDER";

/// An agent in a process of its own, which is this program once more.
struct AgentProcess(Child);

impl AgentProcess {
    /// Starts it, and does not wait.
    fn spawn(setting: &Setting, endpoint: &str, plane: Plane, folder: &Path) -> Self {
        let _ = fs::remove_file(ready_file(folder));
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "killed::agent_process",
                "--ignored",
                "--nocapture",
            ])
            .env(ETCD, endpoint)
            .env(PLANE, format!("{plane:?}"))
            .env(FOLDER, folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let spawned = setting.node.namespace().run(|| command.spawn());
        Self(spawned.unwrap().unwrap())
    }

    /// Ends it as nothing can be caught.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ready_file(folder: &Path) -> PathBuf {
    folder.join("ready")
}

#[test]
#[ignore = "the process that another test starts"]
fn agent_process() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let plane = match env::var(PLANE).unwrap().as_str() {
        "Nftables" => Plane::Nftables,
        _ => Plane::Iptables,
    };
    let runtime = Runtime::new().unwrap();
    let store = connect(&runtime, &env::var(ETCD).unwrap());
    let start = Start {
        namespace: None,
        store: Arc::clone(&store),
        runtime: runtime.handle().clone(),
        status_folder: folder.join("status"),
        parameters: &[],
    };
    let _agent = RunningAgent::start(plane, &start);
    fs::write(ready_file(&folder), "").unwrap();
    loop {
        thread::park();
    }
}

fn what_is_in_force_survives_that_the_agent_is_killed_at_any_time(plane: Plane) {
    let mut world = WithEtcd::new();
    let folder = TempDir::new().unwrap();
    let endpoint = world.etcd.endpoint().to_owned();
    let setting = &mut world.setting;
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let rule = |protocol: &str, port: u16| json!({"action": "Allow", "protocol": protocol, "destination": {"ports": [port]}});
    let guard = |last: u16| {
        let rules = [rule("UDP", 7000), rule("TCP", 7000), rule("UDP", last)];
        let spec = json!({"order": 10, "selector": "role == 'server'", "types": ["Ingress"], "ingress": rules});
        policy("guard", &spec)
    };
    setting.put(guard(7002));
    let mut agent = AgentProcess::spawn(setting, &endpoint, plane, folder.path());
    setting.await_flows(&[
        (client.udp(&server, 7002), true),
        (client.udp(&server, 7001), false),
    ]);
    let open = Datagrams::start(&client, &server, 7000);
    let closed = Datagrams::start(&client, &server, 7001);
    let mut conversation = Conversation::open(&client, &server, server.ipv4(), 7000);
    for round in 0..6_u16 {
        eventually("ready", &true, || ready_file(folder.path()).exists());
        // Killed at another moment of its work each time.
        for number in 0..10 {
            let spec = json!({
                "order": 20 + number,
                "selector": "role == 'server'",
                "types": ["Ingress"],
                "ingress": [rule("TCP", 9000 + 10 * round + number)],
            });
            setting.put(policy(&format!("more-{number}"), &spec));
        }
        thread::sleep(Duration::from_millis(4 * u64::from(round)));
        agent.kill();
        closed.go_on();
        open.await_arrivals();
        conversation.go_on();
        let (old, new) = (7002 + round, 7003 + round);
        setting.put(guard(new));
        agent = AgentProcess::spawn(setting, &endpoint, plane, folder.path());
        let last = 9000 + 10 * round + 9;
        setting.await_flows(&[
            (client.udp(&server, new), true),
            (client.udp(&server, old), false),
            (client.tcp(&server, last), true),
            (client.tcp(&server, last + 1), false),
        ]);
    }
    conversation.go_on();
    assert_eq!(closed.arrived(), 0, "the closed port was open");
    assert_eq!(open.lost(), 0, "the open port was closed");
    agent.kill();
}
