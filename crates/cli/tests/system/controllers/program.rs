//! `tortie controllers` as a process, as it is installed.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::controllers::site::{Site, eventually};

/// The process. It is killed when this is dropped.
pub(crate) struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Program {
    /// Starts it, and does not wait.
    pub(crate) fn start(site: &Site, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .arg("controllers")
            .arg("--status-file")
            .arg(site.status_file())
            .args(arguments)
            .env_clear()
            .env("DATASTORE_TYPE", "etcdv3")
            .env("ETCD_ENDPOINTS", site.etcd.endpoint())
            .env("KUBECONFIG", site.kubeconfig())
            .env("FV_TEST", "true")
            .env("NO_COLOR", "1")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let stderr = child.stderr.take().unwrap();
        let heard = Arc::clone(&lines);
        thread::spawn(move || listen(stderr, &heard));
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    /// How often it has said this.
    pub(crate) fn said(&self, words: &str) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.contains(words)).count()
    }

    pub(crate) fn await_words(&self, words: &str) {
        let found = eventually(|| self.said(words) > 0);
        assert!(found, "`{words}` was never said: {}", self.log());
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        self.child.wait().unwrap()
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        // The listener may be a moment behind.
        eventually(|| Arc::strong_count(&self.lines) == 1);
        (status, self.log())
    }

    /// Ends it in a way that cannot be caught.
    pub(crate) fn kill(mut self) {
        assert_eq!(
            self.child.try_wait().unwrap(),
            None,
            "it ended by itself: {}",
            self.log()
        );
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// How much memory it holds, in MB.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        let kilobytes = line.split_whitespace().nth(1).unwrap();
        kilobytes.parse::<u64>().unwrap() / 1024
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if thread::panicking() {
            let lines = self.lines.lock().unwrap();
            let last = &lines[lines.len().saturating_sub(40)..];
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("the last lines of the controllers:\n{}\n", last.join("\n")).as_bytes(),
            );
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(stderr: impl Read, lines: &Mutex<Vec<String>>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        lines.lock().unwrap().push(line);
    }
}
