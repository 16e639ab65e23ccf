//! The agent as a process, as it is installed.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tortie_testkit::net::Node;

use crate::killed::Plane;
use crate::killed::objects::NODE;

/// What an agent says when everything is in force.
const READY: &str = "Everything is in force";

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// An agent. It ends when this is dropped.
pub(crate) struct AgentProcess {
    child: Child,
    said: Arc<Said>,
    _status: TempDir,
}

#[derive(Default)]
struct Said {
    words: Mutex<Words>,
    changed: Condvar,
}

#[derive(Default)]
struct Words {
    lines: Vec<String>,
    is_ready: bool,
    is_over: bool,
}

impl AgentProcess {
    /// Starts it on a node, and does not wait.
    pub(crate) fn start(node: &Node, etcd: &str, plane: Plane) -> Self {
        let status = TempDir::new().unwrap();
        let mode = match plane {
            Plane::Nftables => "Enabled",
            Plane::Iptables => "Disabled",
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .args(["agent", "--node", NODE, "--log-level", "info"])
            .arg("--status-folder")
            .arg(status.path())
            .arg("--mtu-file")
            .arg(status.path().join("mtu"))
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DATASTORE_TYPE", "etcdv3")
            .env("ETCD_ENDPOINTS", etcd)
            .env("FELIX_NFTABLESMODE", mode)
            .env("FELIX_IPTABLESBACKEND", "legacy")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let spawned = node.namespace().run(|| command.spawn());
        let mut child = spawned.unwrap().unwrap();
        let said = Arc::new(Said::default());
        let stderr = child.stderr.take().unwrap();
        let for_listener = Arc::clone(&said);
        thread::spawn(move || for_listener.listen(stderr));
        Self {
            child,
            said,
            _status: status,
        }
    }

    /// Waits until everything is in force.
    pub(crate) fn await_ready(&mut self) {
        let words = self.said.words.lock().unwrap();
        let is_waiting = |words: &mut Words| !words.is_ready && !words.is_over;
        let changed = &self.said.changed;
        let (words, _) = changed
            .wait_timeout_while(words, PATIENCE, is_waiting)
            .unwrap();
        assert!(words.is_ready, "the agent is not ready: {:#?}", words.lines);
    }

    /// Whether everything is in force.
    pub(crate) fn is_ready(&self) -> bool {
        self.said.words.lock().unwrap().is_ready
    }

    /// What it said so far.
    pub(crate) fn log(&self) -> String {
        self.said.words.lock().unwrap().lines.join("\n")
    }

    /// Ends it in a way that cannot be caught.
    pub(crate) fn kill(mut self) {
        let ended = self.child.try_wait().unwrap();
        let words = self.said.words.lock().unwrap();
        assert_eq!(ended, None, "the agent ended by itself: {:#?}", words.lines);
        drop(words);
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Said {
    fn listen(&self, stderr: impl Read) {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let mut words = self.words.lock().unwrap();
            words.is_ready |= line.contains(READY);
            words.lines.push(line);
            self.changed.notify_all();
        }
        self.words.lock().unwrap().is_over = true;
        self.changed.notify_all();
    }
}
