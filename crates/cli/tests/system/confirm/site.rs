//! A datastore, a state folder, and processes of the program.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest time for anything that should happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two policies and a tier as they are before, one of which changes later.
pub(crate) const BEFORE: &str = "\
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: kept, labels: {owner: ops}}
spec: {selector: role == 'db', order: 10, ingress: [{action: Allow}]}
";

/// The same policy changed, and what is new: a policy in a tier that is new too.
pub(crate) const AFTER: &str = "\
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: kept, labels: {more: labels}}
spec: {selector: all(), order: 1, ingress: [{action: Deny}]}
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: locks.everybody-out}
spec: {tier: locks, selector: all(), ingress: [{action: Deny}]}
---
apiVersion: projectcalico.org/v3
kind: Tier
metadata: {name: locks}
spec: {order: 5}
";

/// What is said last where all that [`AFTER`] changes is what it was before.
pub(crate) const ROLLED_BACK: &str = "Rolled back: all 3 resource(s) are what they were before\n";

/// A datastore and a state folder.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    options: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

/// What the program said.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A process of the program that waits.
pub(crate) struct Waiting {
    pub(crate) process: Child,
    pub(crate) id: String,
}

impl Site {
    /// With the embedded datastore.
    pub(crate) fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data.redb").display().to_string();
        Self {
            folder,
            options: vec!["--data-file".to_owned(), file],
            variables: Vec::new(),
        }
    }

    /// With the datastore that options and variables name, in which `{}` is a folder; `XDG_DATA_HOME` says that without
    /// them it would be another one.
    pub(crate) fn named(options: &[&str], variables: &[(&'static str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let in_folder = |text: &str| text.replace("{}", &path);
        let other = ("XDG_DATA_HOME", in_folder("{}/other"));
        let variables = variables
            .iter()
            .map(|(name, value)| (*name, in_folder(value)));
        Self {
            options: options.iter().map(|option| in_folder(option)).collect(),
            variables: variables.chain([other]).collect(),
            folder,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// With an etcd.
    pub(crate) fn etcd(endpoint: &str) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            options: Vec::new(),
            variables: vec![("ETCD_ENDPOINTS", endpoint.to_owned())],
        }
    }

    /// With the cluster of a kubeconfig.
    pub(crate) fn kubernetes(kubeconfig: &Path) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            options: Vec::new(),
            variables: vec![("KUBECONFIG", kubeconfig.display().to_string())],
        }
    }

    /// The same state folder, and no word about the datastore, as after a reboot.
    pub(crate) fn without_datastore(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::remove_dir(folder.path()).unwrap();
        std::os::unix::fs::symlink(self.folder.path(), folder.path()).unwrap();
        Self {
            folder,
            options: Vec::new(),
            variables: self
                .variables
                .iter()
                .filter(|(name, _)| *name == "XDG_DATA_HOME")
                .cloned()
                .collect(),
        }
    }

    pub(crate) fn data_file(&self) -> PathBuf {
        self.folder.path().join("data.redb")
    }

    /// Where everything is kept that is pending.
    pub(crate) fn pending(&self) -> PathBuf {
        self.folder.path().join("state/tortie/pending")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .args(&self.options)
            .args(arguments)
            .env_clear()
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
        output.stdout
    }

    /// A file with these resources.
    pub(crate) fn file(&self, text: &str) -> String {
        let path = self.folder.path().join(format!("{}.yaml", text.len()));
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    #[track_caller]
    pub(crate) fn apply(&self, text: &str) {
        self.ok(&["apply", "-f", &self.file(text)]);
    }

    /// Starts `apply --confirm`, and waits until all is applied.
    #[track_caller]
    pub(crate) fn apply_with_confirm(&self, seconds: &str, text: &str) -> Waiting {
        let file = self.file(text);
        let process = self.command(&["apply", "--confirm", seconds, "-f", &file]);
        let process = { process }.spawn().unwrap();
        let id = until("something to wait", || {
            let pending = self.all_pending().into_iter();
            let mut waiting = pending.filter(|(_, value)| value["state"] == "waiting");
            waiting.next().map(|(id, _)| id)
        });
        Waiting { process, id }
    }

    /// What is pending, by name.
    pub(crate) fn all_pending(&self) -> Vec<(String, Value)> {
        let Ok(entries) = std::fs::read_dir(self.pending()) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let pending = paths.filter_map(|path| {
            let value = serde_json::from_slice(&std::fs::read(&path).ok()?).unwrap();
            let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
            Some((id, value))
        });
        pending.collect()
    }

    /// All policies and tiers without their revisions.
    pub(crate) fn resources(&self) -> Value {
        let mut lists = Vec::new();
        for kind in ["gnp", "tier"] {
            let text = self.ok(&["get", kind, "-o", "json"]);
            let mut list: Value = serde_json::from_str(&text).unwrap();
            for item in list["items"].as_array_mut().unwrap() {
                let metadata = item["metadata"].as_object_mut().unwrap();
                metadata.remove("resourceVersion");
            }
            lists.push(list["items"].take());
        }
        Value::Array(lists)
    }
}

impl Waiting {
    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Output {
        let status = until("the process to end", || self.process.try_wait().unwrap());
        let mut output = Output {
            code: status.code().unwrap_or(-1),
            stdout: String::new(),
            stderr: String::new(),
        };
        let (stdout, stderr) = (self.process.stdout.take(), self.process.stderr.take());
        stdout.unwrap().read_to_string(&mut output.stdout).unwrap();
        stderr.unwrap().read_to_string(&mut output.stderr).unwrap();
        output
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.unwrap().success());
    }
}

/// The process that watches, by the file that it has locked.
pub(crate) fn watcher_of(id: &str) -> Option<u32> {
    for entry in std::fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let pid = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok());
        let Ok(arguments) = std::fs::read(Path::new(&path).join("cmdline")) else {
            continue;
        };
        let arguments: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
        if arguments.contains(&id.as_bytes()) && arguments.contains(&&b"--watch"[..]) {
            return pid;
        }
    }
    None
}

/// Waits until there is something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
