//! `tortie bgp` on a node of a cluster.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use tortie_testkit::machine::processes_with;

use crate::multi_node::cluster::Cluster;
use crate::multi_node::member::{BINARY, Member};

/// `tortie bgp` on a member.
pub(crate) struct Speaker {
    process: Child,
}

/// The processes of a member's BIRD: one, or none.
pub(crate) fn birds(member: &Member) -> Vec<u32> {
    let socket = run_folder(member).join("bird.ctl");
    processes_with(&["-s", socket.to_str().unwrap()])
}

/// Ends a member's BIRD in a way that cannot be caught.
pub(crate) fn kill_bird(member: &Member) {
    for process in birds(member) {
        let process = Pid::from_raw(process.cast_signed()).unwrap();
        // It may just have ended.
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Asks a member's BIRD, as an administrator does. Nothing, where it does not run.
pub(crate) fn birdc(member: &Member, question: &str) -> String {
    let mut command = member.command("birdc");
    let socket = run_folder(member).join("bird.ctl");
    command.arg("-s").arg(socket).args(question.split(' '));
    let asked = member.node.namespace().run(|| command.output());
    String::from_utf8(asked.unwrap().unwrap().stdout).unwrap()
}

impl Speaker {
    /// On all nodes of a cluster.
    pub(crate) fn everywhere(cluster: &Cluster) -> Vec<Self> {
        cluster.members().iter().map(Self::start).collect()
    }

    pub(crate) fn start(member: &Member) -> Self {
        let mut command = member.command(BINARY);
        let folder = member.folder();
        command
            .args(["bgp", "--withdraw", "--node", &member.name])
            .args(["--log-level", "debug"])
            .arg("--config-folder")
            .arg(folder.join("bird"))
            .arg("--run-folder")
            .arg(run_folder(member))
            .arg("--workloads")
            .arg(folder.join("status/endpoint-status"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("bgp.log")).unwrap());
        std::fs::create_dir_all(run_folder(member)).unwrap();
        let spawned = member.node.namespace().run(|| command.spawn());
        let process = spawned.unwrap().unwrap();
        Self { process }
    }

    /// In a way that cannot be caught. BIRD goes on.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Speaker {
    /// BIRD ends with it.
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait()
            && let Some(process) = Pid::from_raw(self.process.id().cast_signed())
        {
            let _ = kill_process(process, Signal::TERM);
            let _ = self.process.wait();
        }
    }
}

/// Of BIRD's socket.
pub(crate) fn run_folder(member: &Member) -> PathBuf {
    member.folder().join("run")
}
