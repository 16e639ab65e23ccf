//! The controllers as a process.

use std::process::{Child, Command, Stdio};

use crate::usage;
use crate::world::World;

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
    pub(crate) fn memory(&self, name: &str) -> f64 {
        usage::megabytes(self.0.id(), name)
    }

    /// How much it has computed, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        usage::cpu_seconds(self.0.id())
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
