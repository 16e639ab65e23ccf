//! A cluster and a datastore.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tortie_testkit::{Etcd, KubeApiServer};

/// Generous: machines that run many tests are slow. How fast it is on others is for the benchmark to say.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

const RESOURCES: &str = "/calico/resources/v3/projectcalico.org";

/// A cluster and a datastore.
pub(crate) struct Site {
    pub(crate) api: KubeApiServer,
    pub(crate) etcd: Etcd,
    folder: TempDir,
}

impl Site {
    /// With settings that let several processes run on one machine.
    pub(crate) fn new() -> Self {
        let site = Self {
            api: KubeApiServer::start().unwrap(),
            etcd: Etcd::start().unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        let mut settings = usual_settings();
        settings["spec"]["prometheusMetricsPort"] = 0.into();
        site.store(&settings);
        site
    }

    pub(crate) fn status_file(&self) -> PathBuf {
        self.folder.path().join("status.json")
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        let own = self.folder.path().join("kubeconfig");
        if own.exists() {
            return own;
        }
        self.api.kubeconfig().to_owned()
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.api.kubectl(arguments).unwrap().into_stdout().unwrap()
    }

    /// `kubectl apply`.
    pub(crate) fn apply(&self, objects: &str) {
        let output = self
            .api
            .kubectl_stdin(&["apply", "--validate=false", "-f", "-"], objects);
        output.unwrap().into_stdout().unwrap();
    }

    /// `tortie apply` to the datastore.
    pub(crate) fn store(&self, resource: &Value) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tortie"))
            .args(["apply", "-f", "-"])
            .env_clear()
            .env("DATASTORE_TYPE", "etcdv3")
            .env("ETCD_ENDPOINTS", self.etcd.endpoint())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        serde_json::to_writer(child.stdin.take().unwrap(), resource).unwrap();
        assert!(child.wait().unwrap().success(), "{resource}");
    }

    /// What is stored under a path such as `profiles/kns.default`.
    pub(crate) fn stored(&self, path: &str) -> Option<Value> {
        let key = format!("{RESOURCES}/{path}");
        let text = self
            .etcd
            .etcdctl(&["get", &key, "--print-value-only"])
            .unwrap();
        (!text.trim().is_empty()).then(|| serde_json::from_str(&text).unwrap())
    }

    /// The paths that start so.
    pub(crate) fn paths(&self, start: &str) -> Vec<String> {
        let key = format!("{RESOURCES}/{start}");
        let text = self
            .etcd
            .etcdctl(&["get", "--prefix", &key, "--keys-only"])
            .unwrap();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| line[RESOURCES.len() + 1..].to_owned())
            .collect()
    }

    /// Writes by hand, past all that is there to keep order.
    pub(crate) fn write(&self, path: &str, value: &str) {
        let key = format!("{RESOURCES}/{path}");
        self.etcd.etcdctl(&["put", &key, value]).unwrap();
    }

    /// Deletes by hand.
    pub(crate) fn erase(&self, path: &str) {
        let key = format!("{RESOURCES}/{path}");
        assert_eq!(
            self.etcd.etcdctl(&["del", &key]).unwrap().trim(),
            "1",
            "{path}"
        );
    }

    /// The state that etcd is in.
    pub(crate) fn revision(&self) -> i64 {
        let answer = self.etcd.etcdctl(&["get", "/", "-w", "json"]).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["header"]["revision"].as_i64().unwrap()
    }

    /// Waits for something to be stored that a function accepts.
    #[track_caller]
    pub(crate) fn await_stored(&self, path: &str, accepts: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        let found = eventually(|| {
            last = self.stored(path);
            last.as_ref().is_some_and(&accepts)
        });
        assert!(found, "{path} is {last:#?}");
        last.unwrap()
    }

    #[track_caller]
    pub(crate) fn await_gone(&self, path: &str) {
        assert!(
            eventually(|| self.stored(path).is_none()),
            "{path} is still there"
        );
    }

    /// A policy that lets nobody but these in.
    pub(crate) fn policy(&self, namespace: &str, name: &str, role: &str) {
        self.apply(&policy(namespace, name, role).to_string());
    }
}

/// The resource that the controllers would create, without its last fields.
pub(crate) fn usual_settings() -> Value {
    let period = json!({"reconcilerPeriod": "5m0s"});
    json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": "KubeControllersConfiguration",
        "metadata": {"name": "default"},
        "spec": {"controllers": {
            "policy": period, "namespace": period, "serviceAccount": period, "workloadEndpoint": period,
            "node": {"leakGracePeriod": "15m0s"},
        }},
    })
}

pub(crate) fn policy(namespace: &str, name: &str, role: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "podSelector": {"matchLabels": {"app": "web"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"role": role}}}], "ports": [{"port": 80}]}],
        },
    })
}

/// Whether something becomes true in time.
pub(crate) fn eventually(is_so: impl FnMut() -> bool) -> bool {
    eventually_within(PATIENCE, is_so)
}

pub(crate) fn eventually_within(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
