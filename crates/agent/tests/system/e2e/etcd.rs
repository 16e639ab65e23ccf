//! A node whose datastore is etcd, which runs on the node.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tortie_store::Store;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_testkit::Etcd;
use tortie_testkit::net::{Namespace, Node};

use crate::e2e::flow::eventually;
use crate::e2e::setting::{Setting, runtime};

/// An address on the node that only one part of a test knows.
const ELSEWHERE: &str = "http://127.0.0.1:23790";

/// A node with an etcd.
pub(crate) struct WithEtcd {
    pub(crate) setting: Setting,
    pub(crate) etcd: Etcd,
}

/// An etcd that was started again. It ends when this is dropped.
pub(crate) struct Again(Child);

impl WithEtcd {
    pub(crate) fn new() -> Self {
        let node = Node::new().unwrap();
        let etcd = node.namespace().run(Etcd::start).unwrap().unwrap();
        let runtime = runtime(node.namespace());
        let store = connect(&runtime, etcd.endpoint());
        let folder = TempDir::new().unwrap();
        let setting = Setting::with_store(node, store, runtime, folder);
        Self { setting, etcd }
    }

    /// Writes a value that no client would.
    pub(crate) fn put_raw(&self, path: &str, value: &str) {
        let key = format!("/calico/resources/v3/projectcalico.org/{path}");
        let put = || self.etcd.etcdctl(&["put", &key, value]);
        self.namespace().run(put).unwrap().unwrap();
    }

    /// Ends etcd at once; its data stay.
    pub(crate) fn kill(&self) {
        self.setting
            .run("kill", &format!("-KILL {}", self.etcd.pid()));
    }

    /// Starts etcd with the data that it had, at the same address.
    pub(crate) fn start_again(&self) -> Again {
        self.start_at(self.etcd.endpoint())
    }

    /// Lets etcd do something where nobody else knows it, and then forget its history.
    pub(crate) fn meanwhile(&self, work: impl FnOnce(&Arc<dyn Store>, &Runtime)) {
        let _etcd = self.start_at(ELSEWHERE);
        let runtime = runtime(self.namespace());
        work(&eventually_connect(&runtime, ELSEWHERE), &runtime);
        let etcdctl = |what: &str| {
            let line = format!("--endpoints={ELSEWHERE} {what}");
            self.setting.run("etcdctl", &line)
        };
        let status = etcdctl("endpoint status --write-out=json");
        let status: Value = serde_json::from_str(&status).unwrap();
        let revision = &status[0]["Status"]["header"]["revision"];
        etcdctl(&format!("compaction {revision}"));
    }

    fn start_at(&self, endpoint: &str) -> Again {
        let peer = "http://127.0.0.1:0";
        let mut command = Command::new("etcd");
        command
            .arg(format!(
                "--data-dir={}",
                self.etcd.folder().join("data").display()
            ))
            .arg(format!("--listen-client-urls={endpoint}"))
            .arg(format!("--advertise-client-urls={endpoint}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=default={peer}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Again(self.namespace().run(|| command.spawn()).unwrap().unwrap())
    }

    fn namespace(&self) -> &Namespace {
        self.setting.node.namespace()
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects to an etcd that has just been started.
fn eventually_connect(runtime: &Runtime, endpoint: &str) -> Arc<dyn Store> {
    let mut store = None;
    eventually("etcd answers", &true, || {
        store = try_connect(runtime, endpoint);
        store.is_some()
    });
    store.unwrap()
}

/// Connects to an etcd from the threads of a runtime.
fn connect(runtime: &Runtime, endpoint: &str) -> Arc<dyn Store> {
    try_connect(runtime, endpoint).unwrap()
}

fn try_connect(runtime: &Runtime, endpoint: &str) -> Option<Arc<dyn Store>> {
    let config = EtcdConfig {
        endpoints: vec![endpoint.to_owned()],
        ..EtcdConfig::default()
    };
    let connect = runtime.spawn(async move { EtcdStore::connect(&config).await });
    let store = runtime.block_on(connect).unwrap().ok()?;
    Some(Arc::new(store))
}
