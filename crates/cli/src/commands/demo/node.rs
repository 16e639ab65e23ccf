//! The node: its network, its datastore, its pods, and the agent that enforces policy on them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tortie_agent::{Agent, Options, Stop};
use tortie_client::Client;
use tortie_kernel::namespace::mount_own_memory;
use tortie_kernel::route::{Route, Scope, Socket};
use tortie_kernel::sysctl::Sysctl;
use tortie_store::Store;
use tortie_store::embedded::EmbeddedStore;

use super::cast::{CAST, IpVersion, NODE, namespaces};
use super::pod::{GATEWAY_IPV4, Pod};
use crate::args::DemoDataplane;

/// Everything that is written is in memory here. Programs keep their locks here too.
const FOLDER: &str = "/run";

/// How long the agent may take until all pods are up.
const READY: Duration = Duration::from_secs(15);

const LOOPBACK: u32 = 1;

/// The node with all that runs on it.
pub(super) struct Node {
    pub(super) client: Client,
    pub(super) store: Arc<EmbeddedStore>,
    pub(super) pods: Vec<Pod>,
    stop: Stop,
    /// How the agent ended, should it.
    ended: oneshot::Receiver<Result<()>>,
}

impl Node {
    /// Makes the node of the network namespace that the process is in.
    pub(super) async fn start(
        dataplane: DemoDataplane,
        versions: &'static [IpVersion],
        file: &Path,
    ) -> Result<Self> {
        let mut socket = Socket::open()?;
        if socket.links()?.len() > 1 {
            bail!("this network namespace is somebody else's: it has interfaces");
        }
        mount_own_memory(Path::new(FOLDER))
            .with_context(|| format!("nothing can be mounted on {FOLDER}"))?;
        let opened = Arc::new(EmbeddedStore::open(file)?);
        let store: Arc<dyn Store> = Arc::clone(&opened) as _;
        let client = Client::new(Arc::clone(&store));
        client.ensure_initialized("", "").await?;
        for profile in namespaces()? {
            client.create(profile).await?;
        }
        set_up(&mut socket, versions).context("the node's network cannot be set up")?;
        let mut pods = Vec::new();
        for role in &CAST {
            let pod = Pod::start(role, versions, &mut socket)?;
            client.create(role.endpoint(versions, pod.mac)?).await?;
            pods.push(pod);
        }
        let (stop, ended) = start_agent(dataplane, versions, store)?;
        let mut node = Self {
            client,
            store: opened,
            pods,
            stop,
            ended,
        };
        node.await_agent().await?;
        Ok(node)
    }

    /// An error if the agent has ended.
    pub(super) fn check_agent(&mut self) -> Result<()> {
        match self.ended.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => Ok(()),
            Ok(Err(error)) => Err(error.context("the agent ended")),
            Ok(Ok(())) | Err(oneshot::error::TryRecvError::Closed) => bail!("the agent ended"),
        }
    }

    /// Waits until the agent tells that all pods are up.
    async fn await_agent(&mut self) -> Result<()> {
        let end = Instant::now() + READY;
        let folder = status_folder().join("endpoint-status");
        loop {
            self.check_agent()?;
            let up = std::fs::read_dir(&folder).map_or(0, Iterator::count);
            if up == self.pods.len() {
                return Ok(());
            }
            if Instant::now() > end {
                let pods = self.pods.len();
                bail!(
                    "after {} s {up} of {pods} pods are up; --log-level info tells more",
                    READY.as_secs()
                );
            }
            sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// The file of the datastore, unless others are to reach it.
pub(super) fn data_file() -> PathBuf {
    Path::new(FOLDER).join("tortie").join("demo.redb")
}

fn status_folder() -> PathBuf {
    Path::new(FOLDER).join("tortie")
}

fn set_up(socket: &mut Socket, versions: &[IpVersion]) -> Result<()> {
    if versions.contains(&IpVersion::V6) {
        Sysctl::new("net/ipv6/conf/default/disable_ipv6").write("0")?;
        Sysctl::new("net/ipv6/conf/default/accept_dad").write("0")?;
    }
    Sysctl::new("net/ipv4/ip_forward").write("1")?;
    socket.execute(|batch| {
        batch.set_link_up(LOOPBACK, true);
        // The kernel answers for the pods' gateway only if it knows a way there.
        batch.add_route(&Route {
            device: Some(LOOPBACK),
            scope: Scope::LINK,
            ..Route::to(IpAddr::V4(GATEWAY_IPV4).into())
        });
    })?;
    Ok(())
}

fn start_agent(
    dataplane: DemoDataplane,
    versions: &[IpVersion],
    store: Arc<dyn Store>,
) -> Result<(Stop, oneshot::Receiver<Result<()>>)> {
    let mode = match dataplane {
        DemoDataplane::Nftables => "Enabled",
        DemoDataplane::Iptables => "Disabled",
    };
    let ipv6 = versions.contains(&IpVersion::V6).to_string();
    let parameters = [("nftablesmode", mode), ("ipv6support", &ipv6)];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let agent = Agent::new(Options {
        node: NODE.to_owned(),
        environment: BTreeMap::from(parameters),
        file: BTreeMap::new(),
        store,
        cluster: None,
        about: "tortie demo".to_owned(),
        take_over: false,
        runtime: Handle::current(),
        status_folder: Some(status_folder()),
        mtu_file: None,
        ready_file: None,
        allow_cleartext: false,
    })?;
    let stop = agent.stop();
    let (tell, ended) = oneshot::channel();
    thread::Builder::new()
        .name("agent".to_owned())
        .spawn(move || {
            // Nobody listens if the demo is over.
            let _ = tell.send(agent.run().map_err(|error| anyhow!(error)));
        })?;
    Ok((stop, ended))
}
