//! `tortie up` and `tortie pod` as somebody uses them to try policies: with root and without, on a machine that has no
//! route to anywhere.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tortie_testkit::machine::{Machine, User, processes_with};

const PATIENCE: Duration = Duration::from_secs(30);

/// Only pods with the label `app=client` reach those with `app=web`, on any port.
const ONLY_CLIENTS: &str = "\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: only-clients, namespace: shop}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]
";

/// Nobody reaches pods with the label `app=web`.
const CLOSED: &str = "\
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: closed, namespace: shop}
spec: {selector: app == 'web', types: [Ingress]}
";

/// A machine, and a user on it who has a data folder.
struct Playground {
    machine: Machine,
    user: User,
    folder: TempDir,
    up: Option<Child>,
}

/// How a command ended.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Playground {
    fn new(user: User) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tortie");
        fs::copy(env!("CARGO_BIN_EXE_tortie"), &program).unwrap();
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        for (path, mode) in [(folder.path(), 0o755), (&program, 0o755), (&home, 0o777)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        Self {
            machine: Machine::new().unwrap(),
            user,
            folder,
            up: None,
        }
    }

    /// Starts `up`, and waits until it is ready.
    fn up(user: User, arguments: &[&str]) -> Self {
        let mut playground = Self::new(user);
        playground.start(arguments);
        playground
    }

    fn start(&mut self, arguments: &[&str]) {
        let arguments = [
            &["up", "--listen", "127.0.0.1:0", "--node", "n1"],
            arguments,
        ]
        .concat();
        let log = fs::File::create(self.log()).unwrap();
        let mut command = self.command("tortie", &arguments);
        let mut up = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut said = BufReader::new(up.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("Ready.") {
            line.clear();
            let length = said.read_line(&mut line).unwrap();
            assert_ne!(length, 0, "{}", fs::read_to_string(self.log()).unwrap());
        }
        // Whoever reads no more must not make it fail.
        thread::spawn(move || drop(said.read_to_end(&mut Vec::new())));
        self.up = Some(up);
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("home/.local/share/tortie")
    }

    /// A program of the user, in whose path `tortie` is the one to be tested.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let home = self.folder.path().join("home");
        let path = format!(
            "{}:/usr/sbin:/usr/bin:/sbin:/bin",
            self.folder.path().display()
        );
        let mut command = self.machine.command("env");
        command
            .arg("--chdir")
            .arg(&home)
            .args(self.user.words())
            .arg("env")
            .arg(format!("PATH={path}"))
            .arg(program)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", &home)
            .env("XDG_DATA_HOME", home.join(".local/share"))
            .env("KUBECONFIG", self.data().join("kubeconfig"))
            .stdin(Stdio::null());
        // `up` is to be on its own.
        if program == "tortie" {
            command.env_remove("KUBECONFIG");
        }
        command
    }

    /// Runs a line of words.
    #[track_caller]
    fn run(&self, line: &str) -> Done {
        let mut words = line.split(' ');
        let program = words.next().unwrap();
        let output = self
            .command(program, &words.collect::<Vec<_>>())
            .output()
            .unwrap();
        Done {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// What a line prints, which must succeed.
    #[track_caller]
    fn succeed(&self, line: &str) -> String {
        let done = self.run(line);
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
        done.stdout
    }

    /// What a line complains about, which must fail.
    #[track_caller]
    fn fail(&self, line: &str) -> String {
        let done = self.run(line);
        assert_eq!(done.code, Some(1), "{line}: {done:?}");
        done.stderr
    }

    /// Waits until a connection has this outcome; then `why` must agree.
    #[track_caller]
    fn await_connection(&self, line: &str, word: &str) {
        let end = Instant::now() + PATIENCE;
        let done = loop {
            let done = self.run(line);
            if done.stdout.starts_with(word) {
                break done;
            }
            assert!(Instant::now() < end, "{line}: {done:?}");
        };
        let (code, verdict) = match word {
            "CONNECTED" => (0, "why: ALLOWED"),
            _ => (2, "why: DENIED"),
        };
        assert_eq!(done.code, Some(code), "{line}: {done:?}");
        assert!(done.stdout.contains(verdict), "{line}: {done:?}");
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// The addresses that the API and the datastore have of a pod, which must be the same one.
    #[track_caller]
    fn address_of(&self, name: &str) -> String {
        let pod = self.succeed(&format!("kubectl get pod -n shop {name} -o json"));
        let pod: Value = serde_json::from_str(&pod).unwrap();
        assert_eq!(pod["status"]["phase"], "Running", "{pod}");
        let address = pod["status"]["podIP"].as_str().unwrap().to_owned();
        let endpoints = self.succeed("tortie get workloadendpoint -n shop -o json");
        assert!(endpoints.contains(&format!("{address}/32")), "{endpoints}");
        address
    }

    /// The processes that hold pods of this playground: they are in its network or in one that was made there.
    fn holders(&self) -> Vec<u32> {
        let program = self.folder.path().join("tortie");
        let is_own = |process: &u32| {
            let exe = fs::read_link(format!("/proc/{process}/exe"));
            exe.is_ok_and(|exe| exe == program)
        };
        let found = processes_with(&["pod", "serve", "shop/web"]).into_iter();
        let others = processes_with(&["pod", "serve", "shop/client"]).into_iter();
        found.chain(others).filter(is_own).collect()
    }

    /// Waits for the end of `up`, and of all that belongs to it.
    #[track_caller]
    fn await_end(&mut self) -> Option<i32> {
        let status = self.up.take().unwrap().wait().unwrap();
        let end = Instant::now() + PATIENCE;
        while !self.holders().is_empty() {
            assert!(Instant::now() < end, "pods are left: {:?}", self.holders());
            thread::sleep(Duration::from_millis(5));
        }
        status.code()
    }

    fn signal(&self, signal: &str) {
        let process = self.up.as_ref().unwrap().id().to_string();
        let killed = Command::new("kill").args([signal, &process]).status();
        assert!(killed.unwrap().success());
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        let _ = self.run("tortie down");
        if let Some(mut up) = self.up.take() {
            let _ = up.kill();
            let _ = up.wait();
        }
    }
}

/// From nothing to a policy of one's own on real packets, and back.
#[track_caller]
fn check_policy(user: User, arguments: &[&str]) {
    let mut playground = Playground::up(user, arguments);
    assert_eq!(playground.machine_routes(), "", "there is a way out");
    playground
        .succeed("tortie pod run web -n shop -l app=web,tier=front --serve tcp:80 --serve udp:53");
    playground.succeed("tortie pod run client -n shop -l app=client");
    playground.succeed("tortie pod run shop/other");
    let address = playground.address_of("web");
    let listed = playground.succeed("tortie pod list");
    for part in [
        address.as_str(),
        "app=web,tier=front",
        "tcp:80,udp:53",
        "other",
    ] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    let by_client = [
        "tortie pod connect shop/client shop/web:80",
        "tortie pod connect client web:53 -n shop --protocol udp",
    ];
    let by_other = "tortie pod connect other web:80 -n shop";
    for line in by_client.iter().chain([&by_other]) {
        playground.await_connection(line, "CONNECTED");
    }
    let refused = playground.run("tortie pod connect shop/client shop/web:81");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stdout.starts_with("REFUSED"), "{refused:?}");
    let inside = playground.succeed("tortie pod exec shop/web -- ip -brief address show eth0");
    assert!(inside.contains(&address), "{inside}");
    let code = playground
        .run("tortie pod exec shop/web -- sh -c exit${IFS}7")
        .code;
    assert_eq!(code, Some(7));

    let file = playground.file("only-clients.yaml", ONLY_CLIENTS);
    playground.succeed(&format!("kubectl apply -f {file}"));
    playground.await_connection(by_other, "TIMED OUT");
    for line in by_client {
        playground.await_connection(line, "CONNECTED");
    }
    playground.await_connection(
        &format!("tortie pod connect shop/other {address}:80"),
        "TIMED OUT",
    );

    // The agent and the kernel that these ask are those of `up`, wherever that is.
    let status = playground.succeed("tortie status");
    assert!(!status.contains("no agent"), "{status}");
    playground.succeed("tortie node verify --node n1");

    playground.succeed("tortie pod delete client other -n shop");
    let left = playground.succeed("kubectl get pods -A -o name");
    assert_eq!(left, "pod/web\n");
    let endpoints = playground.succeed("tortie get workloadendpoint -n shop -o name");
    assert_eq!(endpoints.lines().count(), 1, "{endpoints}");
    let told = playground.succeed("tortie down");
    assert!(told.contains("Deleted pod shop/web"), "{told}");
    assert_eq!(playground.await_end(), Some(0));
    let links = Command::new("nsenter")
        .args([
            "--net",
            "--target",
            &playground.machine.holder().to_string(),
            "ip",
            "-o",
            "link",
        ])
        .output();
    let links = String::from_utf8(links.unwrap().stdout).unwrap();
    assert_eq!(links.lines().count(), 1, "{links}");
}

impl Playground {
    fn machine_routes(&self) -> String {
        let output = self
            .machine
            .command("ip")
            .args(["route", "show", "default"])
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }
}

#[test]
fn root_tries_a_policy_on_the_machine() {
    check_policy(User::Root, &[]);
}

#[test]
fn root_tries_a_policy_in_a_network_apart() {
    check_policy(User::Root, &["--own-network"]);
}

#[test]
fn anybody_tries_a_policy() {
    check_policy(User::Nobody, &[]);
}

/// However `up` ends, what it had is gone, and the next one begins without it.
#[track_caller]
fn check_ending(user: User, arguments: &[&str], signal: &str, code: Option<i32>) {
    let mut playground = Playground::up(user, arguments);
    let run = "tortie pod run web -n shop -l app=web --serve tcp:80";
    playground.succeed(run);
    assert_eq!(playground.holders().len(), 1);
    playground.signal(signal);
    assert_eq!(playground.await_end(), code);
    let told = playground.fail("tortie pod list");
    assert!(told.contains("no `tortie up` runs"), "{told}");
    playground.start(arguments);
    assert_eq!(playground.succeed("tortie pod list").lines().count(), 1);
    assert_eq!(playground.succeed("kubectl get pods -A -o name"), "");
    assert_eq!(
        playground.succeed("tortie get workloadendpoint -A -o name"),
        ""
    );
    playground.succeed(run);
    playground.address_of("web");
}

#[test]
fn pods_end_with_a_network_of_their_own() {
    check_ending(User::Nobody, &[], "-INT", Some(0));
    check_ending(User::Nobody, &[], "-KILL", None);
    check_ending(User::Root, &["--own-network"], "-TERM", Some(0));
}

#[test]
fn pods_on_the_machine_outlive_a_crash() {
    let mut playground = Playground::up(User::Root, &[]);
    playground.succeed("tortie pod run web -n shop --serve tcp:80");
    playground.succeed("tortie pod run client -n shop");
    playground.signal("-KILL");
    playground.up.take().unwrap().wait().unwrap();
    assert_eq!(playground.holders().len(), 2);
    playground.start(&[]);
    playground.await_connection("tortie pod connect shop/client shop/web:80", "CONNECTED");
    // One whose process has ended meanwhile is told of, and can be deleted.
    let process = playground.holders()[0].to_string();
    Command::new("kill")
        .args(["-KILL", &process])
        .status()
        .unwrap();
    let end = Instant::now() + PATIENCE;
    while !playground.succeed("tortie pod list").contains("ended") {
        assert!(Instant::now() < end);
    }
    playground.succeed("tortie pod delete shop/web shop/client");
    assert_eq!(playground.holders(), Vec::<u32>::new());
}

/// Reads lines until one begins with this word, and gives it.
#[track_caller]
fn read_until(lines: &mut BufReader<ChildStdout>, word: &str) -> String {
    let mut seen = String::new();
    loop {
        let start = seen.len();
        assert_ne!(
            lines.read_line(&mut seen).unwrap(),
            0,
            "{word} is not in {seen}"
        );
        if seen[start..].starts_with(word) {
            return seen.split_off(start);
        }
    }
}

#[test]
fn a_watched_connection_tells_when_it_changes() {
    let playground = Playground::up(User::Nobody, &[]);
    playground.succeed("tortie pod run web -n shop -l app=web --serve tcp:80");
    playground.succeed("tortie pod run client -n shop");
    let arguments = ["pod", "connect", "shop/client", "shop/web:80", "--watch"];
    let mut command = playground.command("tortie", &arguments);
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap());
    read_until(&mut lines, "CONNECTED");
    let file = playground.file("closed.yaml", CLOSED);
    playground.succeed(&format!("tortie apply -f {file}"));
    let line = read_until(&mut lines, "TIMED OUT");
    assert!(line.contains("after the last change"), "{line}");
    let why = read_until(&mut lines, "  why: DENIED");
    assert!(why.contains("ingress"), "{why}");
    playground.succeed(&format!("tortie delete -f {file}"));
    read_until(&mut lines, "CONNECTED");
    let process = watch.id().to_string();
    Command::new("kill")
        .args(["-INT", &process])
        .status()
        .unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

#[test]
fn a_service_leads_to_a_pod_that_it_selects() {
    let playground = Playground::up(User::Nobody, &[]);
    playground.succeed("tortie pod run web -n shop -l app=web --serve tcp:8080");
    playground.succeed("tortie pod run client");
    let service = "\
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";
    let file = playground.file("service.yaml", service);
    playground.succeed(&format!("kubectl apply -f {file}"));
    playground.await_connection("tortie pod connect client svc/shop/front:80", "CONNECTED");
    let told = playground.fail("tortie pod connect client svc/shop/front:81");
    assert!(told.contains("has no port 81 for TCP"), "{told}");
}

#[test]
fn mistakes_are_told_in_plain_words() {
    let mut playground = Playground::new(User::Nobody);
    let told = playground.fail("tortie pod run web");
    assert!(
        told.contains("no `tortie up` runs with the data folder"),
        "{told}"
    );
    let told = playground.succeed("tortie down");
    assert_eq!(told, "Nothing was running\n");
    playground.start(&[]);
    playground.succeed("tortie pod run web");
    for (line, expected) in [
        ("tortie pod run web", "there is a pod default/web already"),
        ("tortie pod run Web", "small letters"),
        ("tortie pod run w2 --serve 80", "tcp:80 or udp:53"),
        (
            "tortie pod run w2 --serve tcp:80 --serve tcp:80",
            "tcp:80 cannot be served",
        ),
        ("tortie pod run w2 -l app", "KEY=VALUE"),
        (
            "tortie pod connect web nobody:80",
            "there is no pod default/nobody",
        ),
        ("tortie pod connect web web", "has no port"),
        (
            "tortie pod connect nobody web:80",
            "there is no pod default/nobody of `tortie pod run`",
        ),
        ("tortie pod delete nobody", "`tortie pod list`"),
        (
            "tortie pod exec web -- nosuchprogram",
            "`nosuchprogram` cannot be run",
        ),
        (
            "tortie up --own-network --datastore etcdv3",
            "--own-network is for an `up` without a cluster",
        ),
    ] {
        let told = playground.fail(line);
        assert!(told.contains(expected), "{line}: {told}");
    }
    // What failed has left nothing.
    assert_eq!(
        playground.succeed("kubectl get pods -A -o name"),
        "pod/web\n"
    );
}
