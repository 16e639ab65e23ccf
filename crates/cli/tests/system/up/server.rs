//! `tortie up` on a data folder of its own, and what clients of it need.

use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;
use tempfile::TempDir;
use tortie_testkit::Output;
use tortie_testkit::net::{Namespace, Node};

/// The name of the node.
pub(crate) const NODE: &str = "n1";

const TORTIE: &str = env!("CARGO_BIN_EXE_tortie");

/// How long a start or an end may take. Mostly it takes less than a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the programs are that the server and its clients start.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A running `tortie up`. It ends when this is dropped.
pub(crate) struct Up {
    child: Child,
    place: Place,
}

/// Where a `tortie up` runs. It stays if the process is killed.
pub(crate) struct Place {
    folder: TempDir,
    namespace: Option<Namespace>,
    listen: String,
    parts: Parts,
    /// What the environment says besides.
    variables: Vec<(&'static str, String)>,
}

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    ApiServer,
    Everything,
    /// The same on a machine without the program `bird`.
    WithoutBird,
}

impl Up {
    /// The API server alone, which leaves the kernel as it is.
    pub(crate) fn api_server() -> Self {
        Place::new(None, "127.0.0.1:0", Parts::ApiServer).start()
    }

    /// The API server alone, on a port that stays the same when it is started again.
    pub(crate) fn api_server_with_port() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        Place::new(None, &address, Parts::ApiServer).start()
    }

    /// All of it, on a node, with these variables of the environment.
    pub(crate) fn on(node: &Namespace, variables: Vec<(&'static str, String)>) -> Self {
        let mut place = Place::new(Some(node.clone()), "127.0.0.1:0", Parts::Everything);
        place.variables = variables;
        place.start()
    }

    /// All of it, on a node without the program `bird`.
    pub(crate) fn without_bird(node: &Namespace) -> Self {
        Place::new(Some(node.clone()), "127.0.0.1:0", Parts::WithoutBird).start()
    }

    /// Ends it in a way that cannot be caught.
    pub(crate) fn kill(mut self) -> Place {
        assert_eq!(self.child.try_wait().unwrap(), None, "{}", self.log());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // What is dropped is a process that has ended.
        let place = Place {
            folder: TempDir::new().unwrap(),
            namespace: None,
            listen: String::new(),
            parts: self.place.parts,
            variables: Vec::new(),
        };
        std::mem::replace(&mut self.place, place)
    }

    /// Waits until it has ended by itself, and gives its exit code.
    pub(crate) fn await_end(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "it has not ended: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// What it said so far.
    pub(crate) fn log(&self) -> String {
        self.place.log()
    }

    /// A file of its data folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.place.data().join(name)
    }

    /// Where a test may write files.
    pub(crate) fn folder(&self) -> &Path {
        self.place.folder.path()
    }

    /// The file that tells the plugins the node's name.
    pub(crate) fn node_name_file(&self) -> PathBuf {
        self.place.node_name_file()
    }

    /// `https://127.0.0.1:PORT`
    pub(crate) fn url(&self) -> String {
        let text = fs::read_to_string(self.file("kubeconfig")).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("server: "));
        line.unwrap().to_owned()
    }

    pub(crate) fn token(&self) -> String {
        let text = fs::read_to_string(self.file("token")).unwrap();
        text.trim().to_owned()
    }

    /// A command for `kubectl`.
    pub(crate) fn kubectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.file("kubeconfig"))
            .args(arguments)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.folder());
        command
    }

    /// Runs `kubectl`, however it may end.
    pub(crate) fn try_kubectl(&self, arguments: &[&str], input: &str) -> Output {
        self.run(self.kubectl_command(arguments), input.as_bytes())
    }

    /// What `kubectl` prints, which must succeed.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.kubectl_with(arguments, "")
    }

    /// The same, with input.
    #[track_caller]
    pub(crate) fn kubectl_with(&self, arguments: &[&str], input: &str) -> String {
        success(self.try_kubectl(arguments, input))
    }

    /// What `kubectl` complains about; it must fail.
    #[track_caller]
    pub(crate) fn refusal(&self, arguments: &[&str], input: &str) -> String {
        let output = self.try_kubectl(arguments, input);
        let told = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {told}", output.command);
        told
    }

    /// An object or a list as JSON.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [&["get"], arguments, &["--output=json"]].concat();
        serde_json::from_str(&self.kubectl(&arguments)).unwrap()
    }

    /// What another `tortie` command prints that uses the same data folder.
    #[track_caller]
    pub(crate) fn tortie(&self, arguments: &[&str]) -> String {
        success(self.try_tortie(arguments))
    }

    /// Runs another `tortie` command, however it may end.
    pub(crate) fn try_tortie(&self, arguments: &[&str]) -> Output {
        self.try_tortie_with(arguments, "")
    }

    /// The same, with input.
    pub(crate) fn try_tortie_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(TORTIE);
        command
            .arg("--data-dir")
            .arg(self.place.data())
            .args(arguments)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.folder())
            .envs(self.place.variables.clone());
        self.run(command, input.as_bytes())
    }

    /// Runs a program where the server runs.
    pub(crate) fn run(&self, mut command: Command, input: &[u8]) -> Output {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.place.spawn(&mut command);
        let mut stdin = child.stdin.take().unwrap();
        let output = thread::scope(|scope| {
            // It may end without having read everything.
            scope.spawn(move || drop(stdin.write_all(input)));
            child.wait_with_output().unwrap()
        });
        Output {
            command: format!("{command:?}"),
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts a program where the server runs.
    pub(crate) fn spawn(&self, command: &mut Command) -> Child {
        self.place.spawn(command)
    }

    /// A client for the API.
    pub(crate) async fn client(&self) -> kube::Client {
        let file = kube::config::Kubeconfig::read_from(self.file("kubeconfig")).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        kube::Client::try_from(config.unwrap()).unwrap()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let _ = writeln!(std::io::stderr(), "the server said:\n{}", self.log());
        }
    }
}

impl Place {
    fn new(namespace: Option<Namespace>, listen: &str, parts: Parts) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            namespace,
            listen: listen.to_owned(),
            parts,
            variables: Vec::new(),
        }
    }

    /// Starts it and waits until it serves.
    pub(crate) fn start(self) -> Up {
        let said = fs::File::create(self.folder.path().join("said")).unwrap();
        let mut options = fs::File::options();
        let log = options.append(true).create(true);
        let log = log.open(self.folder.path().join("log")).unwrap();
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(said).stderr(log);
        let child = self.spawn(&mut command);
        let mut up = Up { child, place: self };
        let end = Instant::now() + PATIENCE;
        loop {
            let said = fs::read_to_string(up.folder().join("said")).unwrap();
            if said.contains("Ready.") {
                return up;
            }
            assert!(up.is_running(), "it ended: {said}{}", up.log());
            assert!(Instant::now() < end, "not ready: {said}{}", up.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn command(&self) -> Command {
        let mut command = match self.parts {
            Parts::ApiServer => {
                let mut command = Command::new(TORTIE);
                command.env_clear();
                command
            }
            Parts::Everything | Parts::WithoutBird => {
                // The agent tells others the size of packets in a file of the system; it gets a system of its own.
                let mut command = Command::new("unshare");
                let script = match self.parts {
                    Parts::WithoutBird => {
                        "mount -t tmpfs none /var/lib && mount --bind /dev/null /usr/sbin/bird && exec \"$0\" \"$@\""
                    }
                    _ => "mount -t tmpfs none /var/lib && exec \"$0\" \"$@\"",
                };
                command
                    .env_clear()
                    .args(["--mount", "sh", "-c", script, TORTIE])
                    .envs([
                        ("IP", "192.0.2.1/32"),
                        ("CALICO_IPV4POOL_CIDR", "10.65.0.0/24"),
                    ])
                    .env("CALICO_IPV4POOL_VXLAN", "Always");
                command
            }
        };
        command
            .arg("--data-dir")
            .arg(self.data())
            .args(["up", "--listen", &self.listen, "--node", NODE])
            .env("PATH", PATH)
            .env("HOME", self.folder.path())
            .env("CALICO_NODENAME_FILE", self.node_name_file())
            .envs(self.variables.clone());
        if self.parts == Parts::ApiServer {
            command.args(["--without", "agent", "--without", "controllers"]);
        }
        command
    }

    fn spawn(&self, command: &mut Command) -> Child {
        match &self.namespace {
            None => command.spawn().unwrap(),
            Some(namespace) => namespace.run(|| command.spawn()).unwrap().unwrap(),
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn node_name_file(&self) -> PathBuf {
        self.folder.path().join("nodename")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// A node with an address, as it has in a data centre.
pub(crate) fn node() -> Node {
    let mut node = Node::new().unwrap();
    let uplink = node.socket().link("uplink").unwrap().unwrap().index;
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    let add = |batch: &mut tortie_kernel::route::Batch| batch.add_address(uplink, address.into());
    node.socket().execute(add).unwrap();
    node
}

/// The output of something that must succeed.
#[track_caller]
pub(crate) fn success(output: Output) -> String {
    let Output {
        command,
        status,
        stdout,
        stderr,
    } = output;
    let signal = status.signal();
    assert!(
        status.success(),
        "{command}\n{status} {signal:?}\n{stdout}{stderr}"
    );
    stdout
}
