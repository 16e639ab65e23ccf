//! One file, and several processes that want it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tortie_testkit::net::Namespace;

use crate::cli::program::Tortie;

/// How many commands come at once.
const AT_ONCE: usize = 6;

/// How long an agent may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that stays, and has the embedded datastore open.
struct Staying {
    child: Child,
    socket: PathBuf,
}

impl Staying {
    /// An agent, in a network namespace of its own.
    fn agent(folder: &Path) -> Self {
        let node = Namespace::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .args(["agent", "--node", "n1", "--data-file"])
            .arg(folder.join("data.redb"));
        for file in ["status-folder", "mtu-file", "ready-file"] {
            command.arg(format!("--{file}")).arg(folder.join(file));
        }
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = node.run(|| command.spawn()).unwrap().unwrap();
        let socket = folder.join("data.sock");
        let agent = Self { child, socket };
        agent.await_socket(true);
        agent
    }

    #[track_caller]
    fn await_socket(&self, is_there: bool) {
        let end = Instant::now() + PATIENCE;
        while self.socket.exists() != is_there {
            assert!(Instant::now() < end, "a socket: {}", !is_there);
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(mut self) {
        let mut kill = Command::new("kill");
        let kill = kill.arg(self.child.id().to_string());
        assert!(kill.status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
        self.await_socket(false);
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder in which a socket may be.
fn private_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn policy(name: &str) -> String {
    format!(
        "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {{name: {name}}}\nspec: {{}}\n"
    )
}

fn apply_at_once(tortie: &Tortie) {
    thread::scope(|scope| {
        let applies: Vec<_> = (0..AT_ONCE)
            .map(|i| {
                let file = policy(&format!("p{i}"));
                scope.spawn(move || tortie.run_with_input(&["apply", "-f", "-"], &file))
            })
            .collect();
        for applied in applies {
            let output = applied.join().unwrap();
            assert_eq!(output.code, 0, "{}", output.stderr);
        }
    });
    let names = tortie.ok(&["get", "gnp", "-o", "name"]);
    assert_eq!(names.lines().count(), AT_ONCE, "{names}");
}

#[test]
fn commands_at_once_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    apply_at_once(&Tortie::embedded(folder.path()));
}

#[test]
fn an_agent_serves_the_file_that_it_has_open() {
    let folder = private_folder();
    let tortie = Tortie::embedded(folder.path());
    tortie.ok_with_input(&["apply", "-f", "-"], &policy("p0"));
    let agent = Staying::agent(folder.path());
    apply_at_once(&tortie);
    agent.end();
    tortie.ok(&["delete", "gnp", "p0"]);
}

/// Who looks on, or has an editor open, keeps nobody from writing.
#[test]
fn a_watch_serves_the_file_that_it_has_open() {
    let folder = private_folder();
    let tortie = Tortie::embedded(folder.path());
    tortie.ok_with_input(&["apply", "-f", "-"], &policy("p0"));
    let watch = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(["get", "gnp", "--watch", "-o", "name", "--data-file"])
        .arg(folder.path().join("data.redb"))
        .env_clear()
        .stdout(Stdio::piped())
        .spawn();
    let mut watch = Staying {
        child: watch.unwrap(),
        socket: folder.path().join("data.sock"),
    };
    watch.await_socket(true);
    tortie.ok_with_input(&["apply", "-f", "-"], &policy("p1"));
    let told = BufReader::new(watch.child.stdout.take().unwrap());
    let told: Vec<String> = told.lines().map(Result::unwrap).take(2).collect();
    assert_eq!(told, ["globalnetworkpolicy/p0", "globalnetworkpolicy/p1"]);
}
