//! A demo that runs, and what it could leave behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
pub(crate) use tortie_testkit::machine::User;
use tortie_testkit::machine::{Machine, all_processes, processes_with};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A demo that was started.
pub(crate) struct Demo {
    child: Child,
    stdout: BufReader<ChildStdout>,
    seen: String,
    machine: Machine,
    before: Traces,
    /// The network namespaces that it was seen to have.
    namespaces: BTreeSet<String>,
    user: User,
    /// Holds the program, so that everybody can run it, and the user's home.
    folder: TempDir,
}

/// How a demo ended.
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit code, or minus the signal.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What a demo could leave on the machine.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    links: String,
    tables: String,
    forwarding: String,
    runtime_files: BTreeSet<PathBuf>,
    named_namespaces: usize,
}

impl Demo {
    #[track_caller]
    pub(crate) fn start(user: User, arguments: &[&str]) -> Self {
        Self::start_through(user, &[], arguments)
    }

    /// Starts it through another program.
    #[track_caller]
    pub(crate) fn start_through(user: User, through: &[&str], arguments: &[&str]) -> Self {
        assert!(
            is_root(),
            "these tests need root, to become others and to look everywhere"
        );
        let machine = Machine::new().unwrap();
        let before = traces(&machine);
        let folder = tempfile::tempdir().unwrap();
        let (home, program) = (folder.path().join("home"), folder.path().join("tortie"));
        fs::create_dir(&home).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_tortie"), &program).unwrap();
        for (path, mode) in [(folder.path(), 0o755), (&program, 0o755), (&home, 0o777)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut child = machine
            .command("env")
            .arg("--chdir")
            .arg(&home)
            .args(user.words())
            .args(through)
            .arg(&program)
            .arg("demo")
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(["HOME", "TMPDIR", "XDG_RUNTIME_DIR"].map(|name| (name, &home)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdout,
            seen: String::new(),
            machine,
            before,
            namespaces: BTreeSet::new(),
            user,
            folder,
        }
    }

    /// Reads on until a line with this text was printed.
    #[track_caller]
    pub(crate) fn read_until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.read_line(), "`{text}` is not in\n{}", self.seen);
        }
    }

    /// Reads a line, unless there are no more. When a step begins, the namespaces are there and noted.
    fn read_line(&mut self) -> bool {
        let start = self.seen.len();
        self.stdout.read_line(&mut self.seen).unwrap();
        let line = &self.seen[start..];
        if line.starts_with(|c: char| c.is_ascii_digit()) {
            let processes = processes_of(self.child.id()).into_iter();
            let found = processes.flat_map(namespaces_of);
            let outside = namespaces_of(self.machine.holder());
            self.namespaces
                .extend(found.filter(|found| !outside.contains(found)));
        }
        !line.is_empty()
    }

    /// How many network namespaces it was seen to have.
    pub(crate) fn namespace_count(&self) -> usize {
        self.namespaces.len()
    }

    /// Waits for a line on stderr with this text, which must be the last that is to come.
    #[track_caller]
    pub(crate) fn read_stderr_until(&mut self, text: &str) -> String {
        let mut stderr = BufReader::new(self.child.stderr.take().unwrap());
        let mut seen = String::new();
        while !seen.contains(text) {
            let length = stderr.read_line(&mut seen).unwrap();
            assert_ne!(length, 0, "`{text}` is not in\n{seen}");
        }
        self.child.stderr = Some(stderr.into_inner());
        seen
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Runs a line as the demo's user does, where `tortie` is this program.
    #[track_caller]
    pub(crate) fn shell(&self, folder: &Path, line: &str) -> String {
        let script = format!("cd {} && {line}", folder.display());
        let path = format!(
            "PATH={}:/usr/sbin:/usr/bin:/sbin:/bin",
            self.folder.path().display()
        );
        let home = format!("HOME={}", folder.display());
        let mut command = self.machine.command("env");
        command.args(self.user.words());
        succeed(command.args(["env", &path, &home, "sh", "-c", &script]))
    }

    /// The process in namespaces of its own.
    #[track_caller]
    pub(crate) fn inside(&self) -> u32 {
        let found = processes_of(self.child.id());
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    }

    /// Waits for the end, and checks that nothing is left.
    #[track_caller]
    pub(crate) fn end(mut self) -> Output {
        let parent = self.child.id();
        let output = self.wait();
        eventually("all processes end", || processes_of(parent).is_empty());
        eventually("nobody is in the namespaces", || {
            let in_use = || all_processes().into_iter().flat_map(namespaces_of);
            !in_use().any(|namespace| self.namespaces.contains(&namespace))
        });
        assert_eq!(traces(&self.machine), self.before);
        let home = self.folder.path().join("home");
        assert_eq!(fs::read_dir(home).unwrap().count(), 0, "files are left");
        output
    }

    fn wait(&mut self) -> Output {
        while self.read_line() {}
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        let status = self.child.wait().unwrap();
        let code = status.code().or(status.signal().map(|signal| -signal));
        Output {
            code: code.unwrap(),
            stdout: std::mem::take(&mut self.seen),
            stderr,
        }
    }
}

#[track_caller]
fn traces(machine: &Machine) -> Traces {
    let run = |program: &str, arguments: &[&str]| succeed(machine.command(program).args(arguments));
    let holder = Path::new("/proc").join(machine.holder().to_string());
    let files = fs::read_dir(holder.join("root/run")).unwrap();
    let mounts = fs::read_to_string(holder.join("mountinfo")).unwrap();
    Traces {
        links: run("ip", &["-brief", "address"]),
        tables: run("nft", &["list", "tables"]),
        forwarding: run("cat", &["/proc/sys/net/ipv4/ip_forward"]),
        runtime_files: files.map(|entry| entry.unwrap().path()).collect(),
        named_namespaces: mounts.matches(" nsfs ").count(),
    }
}

/// Runs a program, which must succeed.
#[track_caller]
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    succeed(Command::new(program).args(arguments))
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not after {PATIENCE:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn is_root() -> bool {
    run("id", &["-u"]).trim() == "0"
}

/// The processes that a demo started for itself, which say so on their command line.
fn processes_of(parent: u32) -> Vec<u32> {
    processes_with(&["--inside", &parent.to_string()])
}

/// The network namespaces of a process's threads.
fn namespaces_of(process: u32) -> BTreeSet<String> {
    let name = |path: &Path| Some(fs::read_link(path).ok()?.to_str()?.to_owned());
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    threads
        .into_iter()
        .flatten()
        .filter_map(|entry| name(&entry.ok()?.path().join("ns/net")))
        .collect()
}
