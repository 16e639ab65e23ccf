//! The server as a process.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::usage;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    /// Starts the API server alone.
    pub(crate) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let said = folder.path().join("said");
        let child = Command::new(env!("CARGO_BIN_EXE_tortie"))
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .args(["up", "--listen", "127.0.0.1:0", "--node", "n1"])
            .args(["--without", "agent", "--without", "controllers"])
            .env_clear()
            .env("CALICO_NODENAME_FILE", folder.path().join("nodename"))
            .stdin(Stdio::null())
            .stdout(fs::File::create(&said).unwrap())
            .spawn();
        let server = Self {
            child: child.unwrap(),
            folder,
        };
        let end = Instant::now() + PATIENCE;
        while !fs::read_to_string(&said).unwrap().contains("Ready.") {
            assert!(Instant::now() < end, "the server is not ready");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("data/api.sock")
    }

    /// A figure of memory, in MB.
    pub(crate) fn memory(&self, name: &str) -> f64 {
        usage::megabytes(self.child.id(), name)
    }

    /// How much it has computed, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        usage::cpu_seconds(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
