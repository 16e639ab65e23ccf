//! The agent as a process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::usage;

/// What the agent says when everything is in force.
const READY: &str = "everything is in force";

/// A running agent. It ends when this is dropped.
pub(crate) struct AgentProcess {
    child: Child,
    pub(crate) ready: Duration,
}

impl AgentProcess {
    /// Starts the agent of a node in the network namespace of the calling thread, with the variables that tell of the
    /// datastore, and waits until it is ready.
    pub(crate) fn start(node: &str, datastore: &[(&str, &str)], dataplane: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tortie-bench-{}", std::process::id()));
        let start = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tortie"))
            .args(["agent", "--node", node, "--log-level", "info"])
            .arg("--status-folder")
            .arg(&folder)
            .arg("--mtu-file")
            .arg(folder.join("mtu"))
            .envs(datastore.iter().copied())
            .env(
                "FELIX_NFTABLESMODE",
                if dataplane == "nftables" {
                    "Enabled"
                } else {
                    "Disabled"
                },
            )
            .env("FELIX_IPTABLESBACKEND", "legacy")
            .env("NO_COLOR", "1")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let ready = loop {
            match lines.next() {
                Some(Ok(line)) if line.contains(READY) => break start.elapsed(),
                Some(Ok(line)) => said.push(line),
                _ => panic!("the agent ended: {said:#?}"),
            }
        };
        // What it says later is read, so that it does not wait for a reader.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, ready }
    }

    /// Processor time of the agent and of the programs that it started.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let id = self.child.id();
        usage::cpu_seconds(id) + usage::cpu_seconds_of_children(id)
    }

    /// A field of what the kernel says about the process's memory.
    pub(crate) fn megabytes(&self, field: &str) -> f64 {
        usage::megabytes(self.child.id(), field)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
