//! What the datastore must hold for a node.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use tortie_api::net::{Cidr, parse_cidr_or_ip};
use tortie_api::node::{NodeBgpSpec, NodeInterface, NodeSpec, OrchRef};
use tortie_api::{Kind, Node, Resource};
use tortie_client::Client;
use tortie_error::Causes;
use tortie_store::{self as store, Key, Query};
use tortie_variables as variables;

use crate::startup::autodetect::{self, Interface, Method, Version};
use crate::startup::configurations::make_configurations;
use crate::startup::settings::{Addressing, Settings};

/// The pause between attempts to reach the datastore.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was found out, and done.
#[derive(Debug)]
pub struct Registered {
    pub node: Node,
    /// The pools that were made.
    pub pools: Vec<String>,
}

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The datastore refused.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Looking for the address failed.
    #[error("the node's {version} address could not be looked for with {method}")]
    Detection {
        /// The IP version.
        version: Version,
        method: Method,
        /// What failed.
        source: io::Error,
    },
    #[error(
        "no {version} address was found with {method}: no interface of this machine fits; set {variable} to an address, \
         or choose another way with {variable}_AUTODETECTION_METHOD"
    )]
    NoAddress {
        /// The IP version.
        version: Version,
        method: Method,
        /// The variable that may hold the address.
        variable: &'static str,
    },
    /// The node has no address at all.
    #[error(
        "node {0} has no address: set IP or IP6 to an address or to `autodetect`, or CALICO_NETWORKING_BACKEND to `none`"
    )]
    Addressless(String),
    /// Another node has the address.
    #[error(
        "node {other} has the address {address} already; change one of them, or set DISABLE_NODE_IP_CHECK=true if that \
         is meant"
    )]
    Taken {
        address: IpAddr,
        /// Who has it.
        other: String,
    },
}

/// What is known of the Kubernetes cluster that is the datastore.
#[derive(Debug, Clone, Default)]
pub struct KubernetesFacts {
    /// The networks that the cluster was made with for its pods.
    pub pod_networks: Vec<IpNet>,
}

/// Makes the node's resource, and what a cluster begins with.
///
/// Where the datastore is Kubernetes, some of it is elsewhere.
pub async fn register(
    client: &Client,
    settings: &Settings,
    interfaces: &[Interface],
    kubernetes: Option<&KubernetesFacts>,
) -> Result<Registered, Error> {
    if settings.wait_for_datastore {
        wait_for_datastore(client, &settings.name).await;
    }
    let node = register_node(client, settings, interfaces).await?;
    let pod_networks = kubernetes.map_or(&[][..], |facts| &facts.pod_networks);
    let pools = make_pools(client, settings, interfaces, pod_networks).await?;
    client
        .ensure_initialized("", &settings.cluster_type)
        .await?;
    make_configurations(client, &settings.name, kubernetes.is_some()).await?;
    Ok(Registered { node, pools })
}

async fn wait_for_datastore(client: &Client, node: &str) {
    let key = Key::global(Kind::Node, node);
    while let Err(error) = client.get(&key).await {
        if !error.is_retryable() {
            return;
        }
        tracing::warn!(error = %Causes(&error), "Waiting for the datastore");
        tokio::time::sleep(PATIENCE).await;
    }
}

pub(crate) async fn register_node(
    client: &Client,
    settings: &Settings,
    interfaces: &[Interface],
) -> Result<Node, Error> {
    let others = if settings.check_addresses {
        client.list(&Query::all(Kind::Node)).await?.items
    } else {
        Vec::new()
    };
    let mut addressed = Ok(());
    let new = Node::new("", &settings.name, NodeSpec::default());
    let node = client.modify_or_create(new, |node: &mut Node| {
        let is_new = node.metadata.resource_version.is_empty();
        addressed = Ok(());
        match set_addresses(&mut node.spec, settings, interfaces) {
            // Others must not send to an address that is not there any more.
            Err(error @ Error::NoAddress { .. }) if !is_new => {
                addressed = Err(error);
                return Ok(());
            }
            set => set?,
        }
        if settings.needs_address && addresses(&node.spec).is_empty() {
            return Err(Error::Addressless(settings.name.clone()));
        }
        check_addresses(&others, node)
    });
    let node = node.await?;
    addressed.map(|()| node)
}

/// Writes what is known of the node's addresses. If none is found where one is looked for, the old one is gone.
fn set_addresses(
    spec: &mut NodeSpec,
    settings: &Settings,
    interfaces: &[Interface],
) -> Result<(), Error> {
    let internal = internal_addresses(spec);
    let bgp = spec.bgp.get_or_insert_with(NodeBgpSpec::default);
    if let Some(number) = settings.as_number {
        bgp.as_number = Some(number);
    }
    let find = |addressing: &Addressing, version, known: &mut String, variable| {
        let method = match addressing {
            Addressing::Keep => return Ok(()),
            Addressing::DetectOnce(_) if !known.is_empty() => return Ok(()),
            Addressing::Is(address, net) => {
                let net = net.unwrap_or_else(|| autodetect::with_prefix(*address, interfaces));
                *known = net.to_string();
                return Ok(());
            }
            Addressing::Detect(method) | Addressing::DetectOnce(method) => method,
        };
        known.clear();
        let found = autodetect::detect(method, version, interfaces, &internal);
        let found = found.map_err(|source| Error::Detection {
            version,
            method: method.clone(),
            source,
        })?;
        let net = found.ok_or_else(|| Error::NoAddress {
            version,
            method: method.clone(),
            variable,
        })?;
        tracing::info!(address = %net, %method, "Found an address of the node");
        *known = net.to_string();
        Ok(())
    };
    let v4 = find(
        &settings.ipv4,
        Version::V4,
        &mut bgp.ipv4_address,
        variables::IP,
    );
    let v6 = find(
        &settings.ipv6,
        Version::V6,
        &mut bgp.ipv6_address,
        variables::IP6,
    );
    if *bgp == NodeBgpSpec::default() {
        spec.bgp = None;
    }
    spec.interfaces = listed(interfaces);
    if let Some(name) = &settings.kubernetes_node {
        let reference = OrchRef {
            node_name: name.clone(),
            orchestrator: "k8s".to_owned(),
        };
        spec.orch_refs.retain(|known| known.orchestrator != "k8s");
        spec.orch_refs.push(reference);
    }
    v4.and(v6)
}

/// Interfaces that other nodes may see, with their addresses.
fn listed(interfaces: &[Interface]) -> Vec<NodeInterface> {
    let of_host = interfaces.iter().filter(|interface| {
        !interface.addresses.is_empty()
            && interface.name != "lo"
            && !interface.name.starts_with("cali")
    });
    let listed = of_host.map(|interface| NodeInterface {
        name: interface.name.clone(),
        addresses: interface
            .addresses
            .iter()
            .map(ToString::to_string)
            .collect(),
    });
    listed.collect()
}

fn internal_addresses(spec: &NodeSpec) -> Vec<IpAddr> {
    let internal = spec
        .addresses
        .iter()
        .filter(|known| known.r#type == "InternalIP");
    internal
        .filter_map(|known| address(&known.address))
        .collect()
}

fn addresses(spec: &NodeSpec) -> Vec<IpAddr> {
    let bgp = spec.bgp.iter();
    let texts = bgp.flat_map(|bgp| [&bgp.ipv4_address, &bgp.ipv6_address]);
    texts.filter_map(|text| address(text)).collect()
}

fn address(text: &str) -> Option<IpAddr> {
    parse_cidr_or_ip(text).map(Cidr::ip)
}

fn check_addresses(all: &[Resource], node: &Node) -> Result<(), Error> {
    let ours = addresses(&node.spec);
    for other in all {
        let Resource::Node(other) = other else {
            continue;
        };
        if other.metadata.name == node.metadata.name {
            continue;
        }
        let theirs = addresses(&other.spec);
        if let Some(address) = ours.iter().find(|address| theirs.contains(address)) {
            return Err(Error::Taken {
                address: *address,
                other: other.metadata.name.clone(),
            });
        }
    }
    Ok(())
}

/// Makes a pool for each IP version that has none. Gives the names of those that were made.
async fn make_pools(
    client: &Client,
    settings: &Settings,
    interfaces: &[Interface],
    pod_networks: &[IpNet],
) -> Result<Vec<String>, Error> {
    let Some(pools) = &settings.pools else {
        return Ok(Vec::new());
    };
    let present = client.list(&Query::all(Kind::IpPool)).await?;
    let has = |version: Version| {
        present.items.iter().any(|pool| match pool {
            Resource::IpPool(pool) => {
                let cidr: Result<IpNet, _> = pool.spec.cidr.parse();
                cidr.is_ok_and(|cidr| version.has(&cidr.addr()))
            }
            _ => false,
        })
    };
    let nets = interfaces.iter().flat_map(|interface| &interface.addresses);
    let own: Vec<IpAddr> = nets.map(IpNet::addr).collect();
    let mut made = Vec::new();
    for version in [Version::V4, Version::V6] {
        if has(version) {
            continue;
        }
        let chosen = pod_networks.iter().find(|net| version.has(&net.addr()));
        let Some(pool) = pools.pool(version, &own, chosen.copied()) else {
            continue;
        };
        tracing::info!(pool = %pool.metadata.name, cidr = %pool.spec.cidr, "Making the first pool");
        let name = pool.metadata.name.clone();
        match client.create(pool.into()).await {
            Ok(_) => made.push(name),
            // Another node came first.
            Err(store::Error::AlreadyExists(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(made)
}
