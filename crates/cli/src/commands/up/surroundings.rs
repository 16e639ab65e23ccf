//! What the process has around it: the machine, or a network of its own.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tortie_files::places;
use tortie_kernel::route::Socket;

use crate::args::{BGP_RUN_FOLDER, Global};
use crate::config::data_folder;

/// How long a pod of `tortie pod run` waits until its policy is in force.
const POLICY_PATIENCE: u32 = 10;

const LOOPBACK: u32 = 1;

/// The folder in the data folder for BIRD.
const BIRD: &str = "up-bird";

/// Where the parts of the process, plugins and clients meet.
pub(in crate::commands) struct Surroundings {
    pub(super) mtu_file: PathBuf,
    pub(super) ready_file: PathBuf,
    /// Where the agent tells which endpoints are up, unless its parameters say so.
    pub(super) status_folder: Option<PathBuf>,
    pub(super) bird: BirdFolders,
    /// Whether Kubernetes is told that pods of this node have a network.
    pub(super) tells_kubernetes: bool,
}

/// Where BIRD's files are.
#[derive(Debug, Clone)]
pub(in crate::commands) struct BirdFolders {
    /// Of its configuration. A BIRD that was started with it is that of an `up` with this data folder.
    pub(super) config: PathBuf,
    /// Of its socket, and of the report.
    pub(in crate::commands) run: PathBuf,
}

impl BirdFolders {
    /// Those of the machine, where other commands look first.
    pub(in crate::commands) fn machine(global: &Global) -> Self {
        Self {
            config: data_folder(global).join(BIRD),
            run: BGP_RUN_FOLDER.into(),
        }
    }

    /// Those of an `up` with a network of its own.
    pub(in crate::commands) fn own_network(global: &Global) -> Self {
        let folder = data_folder(global).join(BIRD);
        Self {
            config: folder.clone(),
            run: folder,
        }
    }
}

impl Surroundings {
    /// The machine, with the places that others know too.
    pub(super) fn machine(global: &Global) -> Self {
        Self {
            bird: BirdFolders::machine(global),
            tells_kubernetes: false,
            mtu_file: places::MTU.into(),
            ready_file: places::AGENT_READY.into(),
            status_folder: None,
        }
    }

    /// A network of its own. The machine may have another agent, so that everything is in the data folder.
    pub(super) fn own_network(global: &Global) -> Result<Self> {
        let mut socket = Socket::open()?;
        socket.execute(|batch| batch.set_link_up(LOOPBACK, true))?;
        let folder = data_folder(global);
        let own = Self {
            bird: BirdFolders::own_network(global),
            tells_kubernetes: false,
            mtu_file: folder.join("mtu"),
            ready_file: folder.join("agent-ready"),
            status_folder: Some(folder.clone()),
        };
        // What is told there is of a network that is gone.
        let _ = fs::remove_file(&own.ready_file);
        let _ = fs::remove_dir_all(folder.join(places::ENDPOINT_STATUS));
        Ok(own)
    }

    /// The folder in which the agent tells which endpoints are up.
    pub(super) fn workloads(&self) -> PathBuf {
        match &self.status_folder {
            Some(folder) => folder.join(places::ENDPOINT_STATUS),
            None => places::ENDPOINT_STATUS_FOLDER.into(),
        }
    }

    /// The configuration with which CNI plugins connect pods here.
    pub(super) fn network(&self, node: &str, folder: &Path, data_file: &Path) -> Value {
        let mut network = json!({
            "cniVersion": "1.0.0",
            "name": "tortie",
            "type": "calico",
            "nodename": node,
            "nodename_file_optional": true,
            "datastore_type": "embedded",
            "datastore_path": data_file,
            "ipam": {"type": "calico-ipam"},
            "ipam_lock_file": folder.join("ipam.lock"),
            "policy": {"type": "k8s"},
            "kubernetes": {"kubeconfig": folder.join("kubeconfig")},
            "mtu_file": self.mtu_file,
            "agent_ready_file": self.ready_file,
        });
        if let Some(folder) = &self.status_folder {
            network["endpoint_status_dir"] = json!(folder.join(places::ENDPOINT_STATUS));
            network["policy_setup_timeout_seconds"] = json!(POLICY_PATIENCE);
        }
        network
    }
}

/// The address that the outer process has taken, in the network that its clients are in: its standard input.
pub(in crate::commands) fn inherited_listener() -> Result<TcpListener> {
    let inherit = || -> io::Result<TcpListener> {
        let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    inherit().context("the API server's address was not handed over")
}

/// Takes an address of the network that this process is in.
pub(in crate::commands) fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listen = || -> io::Result<TcpListener> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().with_context(|| format!("cannot listen on {address}; --listen takes another address"))
}
