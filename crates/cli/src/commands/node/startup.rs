//! `tortie node startup` and `tortie node tunnel-addresses`: a node gets its place in the cluster.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use tortie_agent::replace_file;
use tortie_ipam::Ipam;
use tortie_kernel::route::Socket;
use tortie_node::autodetect::Interface;
use tortie_node::tunnel::{self, Outcome};
use tortie_node::{KubernetesFacts, Settings, follow, register};
use tortie_store::Client;

use crate::args::{Global, Startup, TunnelAddresses};
use crate::commands::agent::machine_name;
use crate::commands::variables;
use crate::config::{Connection, open};

pub(super) async fn startup(args: &Startup, global: &Global) -> Result<ExitCode> {
    let settings = settings(args.node.as_deref())?;
    let Connection {
        client, cluster, ..
    } = open(global).await?;
    let kubernetes = facts(cluster.as_ref()).await;
    place(&client, &settings, kubernetes.as_ref()).await?;
    Ok(ExitCode::SUCCESS)
}

/// Gives the node its place: its resource, the first pools, addresses of tunnels, and the file that names it. Tells what
/// was made, and gives the node's own addresses.
pub(crate) async fn place(
    client: &Client,
    settings: &Settings,
    kubernetes: Option<&KubernetesFacts>,
) -> Result<Vec<String>> {
    let interfaces = interfaces().context("interfaces of this machine")?;
    let registered = register(client, settings, &interfaces, kubernetes).await?;
    let mut out = anstream::stdout();
    for pool in &registered.pools {
        writeln!(out, "Created pool {pool}")?;
    }
    let addresses = registered.node.spec.bgp.unwrap_or_default();
    let mut own = Vec::new();
    for address in [addresses.ipv4_address, addresses.ipv6_address] {
        if let Some(ip) = address.split('/').next().filter(|ip| !ip.is_empty()) {
            writeln!(out, "Node {} has the address {address}", settings.name)?;
            own.push(ip.to_owned());
        }
    }
    give_addresses(client, &settings.name).await?;
    let file = &settings.name_file;
    replace_file(file, &settings.name)
        .with_context(|| format!("writing the node's name to {}", file.display()))?;
    Ok(own)
}

pub(super) async fn tunnel_addresses(args: &TunnelAddresses, global: &Global) -> Result<ExitCode> {
    let settings = settings(args.node.as_deref())?;
    let Connection { client, .. } = open(global).await?;
    if args.run_once {
        give_addresses(&client, &settings.name).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let ipam = Ipam::new(Arc::clone(client.store()));
    tokio::select! {
        never = follow(&client, &ipam, &settings.name) => never,
        stopped = tokio::signal::ctrl_c() => stopped.context("waiting for a signal")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What a node's start needs to know of the cluster that the datastore is in, if it is in one.
pub(crate) async fn facts(cluster: Option<&kube::Client>) -> Option<KubernetesFacts> {
    let pod_networks = pod_networks(cluster?.clone()).await;
    Some(KubernetesFacts { pod_networks })
}

/// The networks that kubeadm was told to use for pods; none if it is not there or may not be asked.
async fn pod_networks(cluster: kube::Client) -> Vec<IpNet> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster, "kube-system");
    let Ok(Some(map)) = maps.get_opt("kubeadm-config").await else {
        return Vec::new();
    };
    let data = map.data.unwrap_or_default();
    let text = data.get("ClusterConfiguration").map_or("", String::as_str);
    let networking = tortie_api::yaml::parse_one(text).unwrap_or_default();
    let subnets = networking["networking"]["podSubnet"].as_str().unwrap_or("");
    let nets = subnets.split(',').map(str::trim);
    nets.filter_map(|net| net.parse().ok()).collect()
}

async fn give_addresses(client: &Client, node: &str) -> Result<()> {
    let ipam = Ipam::new(Arc::clone(client.store()));
    let mut out = anstream::stdout();
    for (tunnel, outcome) in tunnel::ensure(client, &ipam, node).await? {
        let name = tunnel.name();
        match outcome {
            Outcome::NotNeeded => {}
            Outcome::Kept(address) | Outcome::Assigned(address) => {
                writeln!(out, "The {name} device has the address {address}")?;
            }
            Outcome::Released(address) => {
                writeln!(
                    out,
                    "The {name} device needs no address: released {address}"
                )?;
            }
        }
    }
    Ok(())
}

/// The settings of a node's start, from the variables of the process.
pub(crate) fn settings(node: Option<&str>) -> Result<Settings> {
    let mut variables = variables();
    if let Some(node) = node {
        variables.insert("NODENAME".to_owned(), node.to_owned());
    }
    Ok(Settings::from_environment(&variables, &machine_name()?)?)
}

/// The interfaces of this machine, in the order of their numbers.
fn interfaces() -> Result<Vec<Interface>> {
    let links = Socket::open()?.links()?.into_iter();
    let interfaces = links.map(|link| Interface {
        name: link.name,
        addresses: link.addresses,
    });
    Ok(interfaces.collect())
}
