//! One node of a cluster: a namespace, a folder in place of the machine's, and an agent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tortie_testkit::net::Node;

/// What an agent says when everything is in force.
const READY: &str = "Everything is in force";

/// How long that may take.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_tortie");

/// A node of a cluster.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) node: Node,
    /// In the network of the nodes.
    pub(crate) addresses: [IpAddr; 2],
    /// The datastore, as it is seen from here.
    pub(crate) endpoint: String,
    folder: TempDir,
    settings: Vec<(&'static str, String)>,
    agent: Option<Child>,
}

impl Member {
    pub(crate) fn new(
        name: String,
        node: Node,
        addresses: [IpAddr; 2],
        endpoint: String,
        settings: Vec<(&'static str, String)>,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        for plugin in ["calico", "calico-ipam"] {
            std::os::unix::fs::symlink(BINARY, folder.path().join(plugin)).unwrap();
        }
        Self {
            name,
            node,
            addresses,
            endpoint,
            folder,
            settings,
            agent: None,
        }
    }

    /// Sets a variable for what is started from now on.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, value.to_owned()));
    }

    /// The folder with the plugins, the node's name and everything else that is in fixed places on a machine.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program as it is run on this node.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("NODENAME", &self.name)
            .env("CALICO_NODENAME_FILE", self.folder().join("nodename"))
            .env("DATASTORE_TYPE", "etcdv3")
            .env("ETCD_ENDPOINTS", &self.endpoint)
            .env("NO_COLOR", "1")
            .envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command of `tortie` on this node to its end.
    pub(crate) fn tortie(&self, arguments: &[&str], input: &str) -> String {
        let mut command = self.command(BINARY);
        command.args(arguments);
        self.finish(command, input)
    }

    /// Runs any program on this node to its end, and gives what it printed.
    pub(crate) fn run(&self, program: &str, arguments: &str) -> String {
        let mut command = self.command(program);
        command.args(arguments.split(' '));
        self.finish(command, "")
    }

    /// Runs a command of `tortie` on this node, and gives its exit code and what it printed.
    pub(crate) fn answer(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = self.command(BINARY);
        command.args(arguments);
        let output = self.output(command, "");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        (output.status.code().unwrap_or(-1), printed)
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn finish(&self, command: Command, input: &str) -> String {
        let what = format!("{command:?}");
        let output = self.output(command, input);
        let printed = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what}: {printed}{errors}");
        printed
    }

    fn output(&self, mut command: Command, input: &str) -> Output {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let spawned = self.node.namespace().run(|| command.spawn());
        let mut child = spawned.unwrap().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    }

    /// Starts the agent, and waits until everything is in force.
    pub(crate) fn start_agent(&mut self) {
        let mut command = self.command(BINARY);
        command
            .args(["agent", "--node", &self.name, "--log-level", "info"])
            .arg("--status-folder")
            .arg(self.folder().join("status"))
            .arg("--mtu-file")
            .arg(self.folder().join("mtu"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let spawned = self.node.namespace().run(|| command.spawn());
        let mut child = spawned.unwrap().unwrap();
        let said = listen(&mut child);
        self.agent = Some(child);
        let mut lines = Vec::new();
        while let Ok(line) = said.recv_timeout(PATIENCE) {
            let is_ready = line.contains(READY);
            lines.push(line);
            if is_ready {
                return;
            }
        }
        panic!("the agent of {} is not ready: {lines:#?}", self.name);
    }

    /// Ends the agent in a way that cannot be caught.
    pub(crate) fn kill_agent(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            agent.kill().unwrap();
            agent.wait().unwrap();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill_agent();
    }
}

/// What a process says on its standard error, which is read to the end so that it never waits for us.
fn listen(child: &mut Child) -> Receiver<String> {
    let (sender, said) = channel();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    thread::spawn(move || {
        let mut line = String::new();
        while errors.read_line(&mut line).is_ok_and(|length| length > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                let _ = errors.read_to_end(&mut Vec::new());
                return;
            }
        }
    });
    said
}
