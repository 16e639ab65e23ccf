//! `tortie bgp` on a node of a cluster.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::multi_node::member::{BINARY, Member};

/// `tortie bgp` on a member.
pub(crate) struct Speaker {
    process: Child,
}

impl Speaker {
    pub(crate) fn start(member: &Member) -> Self {
        let mut command = member.command(BINARY);
        let folder = member.folder();
        command
            .args(["bgp", "--withdraw", "--node", &member.name])
            .arg("--config-folder")
            .arg(folder.join("bird"))
            .arg("--run-folder")
            .arg(run_folder(member))
            .arg("--workloads")
            .arg(folder.join("status"))
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
