//! Calls CNI plugins as a container runtime does.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{command, run};
use crate::error::{Result, cannot};
use crate::net::Namespace;

/// Where Debian's package has the plugins that the specification's authors wrote.
const OTHERS: &str = "/usr/lib/cni";

/// A runtime on a node, with a folder of plugins.
#[derive(Debug)]
pub struct Runtime {
    folder: TempDir,
    node: Namespace,
}

/// What a plugin is asked.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// `ADD`, `DEL` and so on.
    pub command: &'a str,
    pub container: &'a str,
    /// Its network namespace, by path; see [`path`].
    pub namespace: String,
    /// The name of the interface in it.
    pub interface: &'a str,
    /// `CNI_ARGS`
    pub arguments: &'a str,
    /// The network's configuration.
    pub config: String,
}

/// What a plugin answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Whether it succeeded.
    pub success: bool,
    /// What it printed: a result, an error or nothing.
    pub json: Value,
    /// What it logged.
    pub log: String,
}

/// The path of a file of a namespace that lives at least as long as the namespace's value.
pub fn path(namespace: &Namespace) -> String {
    let file = namespace.as_fd().as_raw_fd();
    format!("/proc/{}/fd/{file}", std::process::id())
}

impl Runtime {
    /// A runtime on a node, for which a binary answers to the names of Calico's plugins.
    pub fn new(node: &Namespace, binary: &Path) -> Result<Self> {
        Self::with_plugins(node, binary, &["calico", "calico-ipam"])
    }

    /// A runtime on a node, for which a binary answers to these names.
    pub fn with_plugins(node: &Namespace, binary: &Path, names: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(cannot("create a temporary folder"))?;
        for name in names {
            let link = folder.path().join(name);
            symlink(binary, &link).map_err(cannot(format!("make {}", link.display())))?;
        }
        Ok(Self {
            folder,
            node: node.clone(),
        })
    }

    /// The folder with the plugins.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Asks a plugin, in the node's namespace.
    pub fn call(&self, plugin: &str, call: &Call<'_>) -> Result<Answer> {
        self.call_program(&self.folder.path().join(plugin), call)
    }

    /// Asks the plugin of this name that the specification's authors wrote.
    pub fn call_other(&self, plugin: &str, call: &Call<'_>) -> Result<Answer> {
        self.call_program(&Path::new(OTHERS).join(plugin), call)
    }

    fn call_program(&self, program: &Path, call: &Call<'_>) -> Result<Answer> {
        let mut program = command(program, Path::new("/"))?;
        let path: [PathBuf; 2] = [self.folder.path().to_owned(), OTHERS.into()];
        program
            .env("CNI_COMMAND", call.command)
            .env("CNI_CONTAINERID", call.container)
            .env("CNI_NETNS", &call.namespace)
            .env("CNI_IFNAME", call.interface)
            .env("CNI_ARGS", call.arguments)
            .env("CNI_PATH", std::env::join_paths(path).unwrap_or_default());
        let ran = self.node.run(|| run(program, call.config.as_bytes()));
        let ran =
            ran.map_err(|error| cannot("enter the node's namespace")(io::Error::other(error)));
        let output = ran??;
        Ok(Answer {
            success: output.success(),
            json: serde_json::from_str(&output.stdout).unwrap_or_default(),
            log: output.stderr,
        })
    }
}

impl Answer {
    /// The result of something that must not fail.
    #[track_caller]
    pub fn unwrap(self) -> Value {
        assert!(self.success, "{:#}\n{}", self.json, self.log);
        self.json
    }

    /// The code and message of something that must fail.
    #[track_caller]
    pub fn unwrap_err(self) -> (u64, String) {
        assert!(!self.success, "{:#}\n{}", self.json, self.log);
        let code = self.json["code"].as_u64();
        let message = self.json["msg"].as_str().map(str::to_owned);
        match (code, message) {
            (Some(code), Some(message)) => (code, message),
            _ => panic!(
                "no error of the specification's form: {}\n{}",
                self.json, self.log
            ),
        }
    }
}
