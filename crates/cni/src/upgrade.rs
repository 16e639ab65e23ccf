//! Takes over the addresses that the plugin `host-local` gave to the pods of this node.
//!
//! While that goes on, nobody may give out addresses: the cluster is said not to be ready, and the programs that could are
//! removed; whoever installs the plugins puts them back.
//!
//! # Invariants
//! - A file of `host-local` goes only after its address is taken over, or if no pod has it. So all can be repeated.
//! - The cluster is said to be ready again only if everything was taken over.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;
use tortie_api::ClusterInformation;
use tortie_api::node::NodeBgpSpec;
use tortie_client::Client;
use tortie_error::Causes;
use tortie_ipam::{AssignIp, Ipam, attribute};
use tortie_store::{Error as StoreError, Key, Kind, Resource};

use crate::datastore::Datastore;
use crate::error::{Code, Error, Result};

/// The network whose addresses are taken over.
const NETWORK: &str = "k8s-pod-network";

/// Where things are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The files of `host-local`, one per address.
    pub allocations: PathBuf,
    /// The programs that could give out addresses.
    pub programs: Vec<PathBuf>,
    /// How long those may still run.
    pub settling: Duration,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            allocations: Path::new("/var/lib/cni/networks").join(NETWORK),
            programs: ["calico", "host-local"]
                .map(|name| Path::new("/host/opt/cni/bin").join(name))
                .into(),
            settling: Duration::from_secs(5),
        }
    }
}

/// Takes over the addresses of a node's pods, if there is anything to take over.
pub async fn upgrade(datastore: &Datastore, node: &str, places: &Places) -> Result<()> {
    let cluster = datastore.cluster.as_ref().ok_or_else(|| {
        let message =
            "addresses of host-local can be taken over only if Kubernetes is the datastore";
        Error::config(message)
    })?;
    let folder = &places.allocations;
    if !folder.exists() {
        tracing::info!("There is no data of host-local: there is nothing to take over");
        return Ok(());
    }
    let client = &datastore.client;
    let ipam = Ipam::new(Arc::clone(client.store()));
    take_over_tunnel(client, cluster, &ipam, node).await?;
    if files(folder)?.is_empty() {
        return fs::remove_dir(folder).map_err(failed(folder, "cannot be removed"));
    }
    set_ready(client, false).await?;
    for program in &places.programs {
        remove(program)?;
    }
    tokio::time::sleep(places.settling).await;
    let _lock = lock(folder)?;
    let pods = pods_by_address(cluster, node).await?;
    for file in files(folder)? {
        take_over(&ipam, node, &file, &pods).await?;
    }
    set_ready(client, true).await?;
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::warn!(
            error = %Causes(&error),
            "What is left of host-local's data could not be removed"
        );
    }
    Ok(())
}

/// Gives the node's tunnel the address that it had: the first of the node's network.
async fn take_over_tunnel(
    client: &Client,
    cluster: &kube::Client,
    ipam: &Ipam,
    node: &str,
) -> Result<()> {
    if !tunnel_address(&read_node(client, node).await?).is_empty() {
        return Ok(());
    }
    let nodes: Api<Node> = Api::all(cluster.clone());
    let found = nodes.get(node).await;
    let unreadable = format!("the node {node} cannot be read");
    let found = found.map_err(Error::of(Code::TryLater, unreadable))?;
    let cidr = found
        .spec
        .and_then(|spec| spec.pod_cidr)
        .unwrap_or_default();
    let parsed = tortie_api::net::parse_cidr(&cidr).ok_or_else(|| {
        let message = format!("the node {node} has `{cidr}` as podCIDR, which is no network");
        Error::new(Code::Address, message)
    })?;
    let IpAddr::V4(base) = parsed.network().network() else {
        return Ok(());
    };
    let address = Ipv4Addr::from(u32::from(base).wrapping_add(1));
    let facts = [
        (attribute::NODE, node),
        (attribute::TYPE, attribute::IPIP_TUNNEL),
    ];
    let handle = format!("ipip-tunnel-addr-{node}");
    assign(ipam, node, address.into(), handle, facts).await?;
    let key = Key::global(Kind::Node, node);
    let written = client.modify(&key, |node: &mut tortie_api::Node| {
        let bgp = node.spec.bgp.get_or_insert_with(NodeBgpSpec::default);
        bgp.ipv4_ipip_tunnel_addr = address.to_string();
        Ok::<_, Error>(())
    });
    written.await.map(drop)
}

async fn read_node(client: &Client, node: &str) -> Result<tortie_api::Node> {
    match client.store().get(&Key::global(Kind::Node, node)).await? {
        Resource::Node(node) => Ok(*node),
        other => Err(StoreError::NotFound(Key::of(&other)).into()),
    }
}

fn tunnel_address(node: &tortie_api::Node) -> &str {
    let bgp = node.spec.bgp.as_ref();
    bgp.map_or("", |bgp| bgp.ipv4_ipip_tunnel_addr.as_str())
}

/// Says whether addresses may be given out in the cluster.
async fn set_ready(client: &Client, is_ready: bool) -> Result<()> {
    let key = Key::global(Kind::ClusterInformation, "default");
    let written = client.modify(&key, |information: &mut ClusterInformation| {
        information.spec.datastore_ready = Some(is_ready);
        Ok::<_, Error>(())
    });
    written.await.map(drop)
}

async fn pods_by_address(cluster: &kube::Client, node: &str) -> Result<BTreeMap<IpAddr, Pod>> {
    let pods: Api<Pod> = Api::all(cluster.clone());
    let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let listed = pods.list(&here).await;
    let listed = listed.map_err(Error::of(Code::TryLater, "the pods cannot be listed"))?;
    let with_address = listed.items.into_iter().filter_map(|pod| {
        let address = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        Some((address, pod))
    });
    Ok(with_address.collect())
}

/// Takes over the address that a file of `host-local` is named after. The file's first line is the container.
async fn take_over(
    ipam: &Ipam,
    node: &str,
    file: &Path,
    pods: &BTreeMap<IpAddr, Pod>,
) -> Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if name == "lock" {
        return Ok(());
    }
    if name.contains("last") {
        return remove(file);
    }
    let address: IpAddr = name.parse().map_err(|_| {
        let message = format!("{} is not named after an address", file.display());
        Error::new(Code::Address, message)
    })?;
    let Some(pod) = pods.get(&address) else {
        tracing::info!(%address, "No pod has the address: it is not taken over");
        return remove(file);
    };
    let content = fs::read_to_string(file).map_err(failed(file, "cannot be read"))?;
    let container = content.lines().next().unwrap_or_default().trim();
    let facts = [
        (attribute::NODE, node),
        (
            attribute::POD,
            pod.metadata.name.as_deref().unwrap_or_default(),
        ),
        (
            attribute::NAMESPACE,
            pod.metadata.namespace.as_deref().unwrap_or_default(),
        ),
    ];
    assign(ipam, node, address, format!("{NETWORK}.{container}"), facts).await?;
    remove(file)
}

/// Assigns an address. It may have been assigned by an attempt before this one.
async fn assign<const N: usize>(
    ipam: &Ipam,
    node: &str,
    address: IpAddr,
    handle: String,
    facts: [(&str, &str); N],
) -> Result<()> {
    let request = AssignIp {
        handle: Some(handle),
        attributes: facts
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..AssignIp::on(node, address)
    };
    match ipam.assign_ip(&request).await {
        Ok(()) => Ok(()),
        Err(tortie_ipam::Error::AlreadyAssigned(_)) => {
            tracing::warn!(%address, "The address was taken over before");
            Ok(())
        }
        Err(error) => {
            let message = format!("{address} cannot be taken over");
            Err(Error::of(Code::Address, message)(error))
        }
    }
}

/// Keeps `host-local` out, which locks the same file.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    let open = || -> io::Result<File> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(failed(&path, "cannot be locked"))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    };
    list().map_err(failed(folder, "cannot be read"))
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed(file, "cannot be removed")(error))
        }
        _ => Ok(()),
    }
}

fn failed(path: &Path, what: &str) -> impl FnOnce(io::Error) -> Error {
    Error::of(Code::Io, format!("{} {what}", path.display()))
}
