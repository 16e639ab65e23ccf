//! The controllers as a process.

use std::process::{Child, Command, Stdio};

use crate::world::World;

/// Clock ticks per second, as Linux has them for all processes.
const TICKS: f64 = 100.0;

pub(crate) struct Controllers(Child);

impl Controllers {
    pub(crate) fn start(world: &World) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_tortie"))
            .args(["controllers", "--status-file"])
            .arg(world.folder().join("status.json"))
            .env_clear()
            .env("DATASTORE_TYPE", "etcdv3")
            .env("ETCD_ENDPOINTS", world.etcd.endpoint())
            .env("KUBECONFIG", world.api.kubeconfig())
            .env("LOG_LEVEL", "warning")
            .env("FV_TEST", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// A figure of memory, in MB.
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kilobytes = line.split_whitespace().nth(1).unwrap();
        kilobytes.parse::<u64>().unwrap() / 1024
    }

    /// How much it has computed, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) / TICKS
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
