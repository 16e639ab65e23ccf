//! `tortie node startup` and `tortie node tunnel-addresses`: a node gets its place in the cluster.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tortie_agent::startup::autodetect::Interface;
use tortie_agent::startup::tunnel::{self, Outcome};
use tortie_agent::startup::{KubernetesFacts, Registrar, Settings, follow, register};
use tortie_api::Node;
use tortie_bgp::speaker::departure;
use tortie_client::Client;
use tortie_client::connect::Connection;
use tortie_ipam::Ipam;
use tortie_variables as variables;

use crate::args::{Global, Startup, TunnelAddresses};
use crate::commands::agent::machine_name;
use crate::commands::variables;
use crate::config::open;

pub(super) async fn startup(args: &Startup, global: &Global) -> Result<ExitCode> {
    let settings = settings(args.node.as_deref())?;
    let Connection {
        client, cluster, ..
    } = open(global).await?;
    let kubernetes = facts(cluster.as_ref()).await;
    place(&client, &settings, kubernetes.as_ref()).await?;
    let folder = &args.run.folder;
    departure::come_back(folder)
        .with_context(|| format!("saying in {} that the node is back", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Gives the node its place: its resource, the first pools, addresses of tunnels, and the file that names it. Tells what
/// was made, and gives the node's own addresses.
pub(crate) async fn place(
    client: &Client,
    settings: &Settings,
    kubernetes: Option<&KubernetesFacts>,
) -> Result<Vec<String>> {
    let interfaces = Interface::all().context("interfaces of this machine")?;
    let registered = register(client, settings, &interfaces, kubernetes).await?;
    let mut out = anstream::stdout();
    for pool in &registered.pools {
        writeln!(out, "Created pool {pool}")?;
    }
    let own = own_addresses(&registered.node);
    for address in &own {
        writeln!(out, "Node {} has the address {address}", settings.name)?;
    }
    give_addresses(client, &settings.name).await?;
    let file = &settings.name_file;
    tortie_files::replace(file, &settings.name, tortie_files::PUBLIC)
        .with_context(|| format!("writing the node's name to {}", file.display()))?;
    Ok(own)
}

/// The addresses by which others reach a node.
pub(crate) fn own_addresses(node: &Node) -> Vec<String> {
    let bgp = node.spec.bgp.clone().unwrap_or_default();
    let nets = [bgp.ipv4_address, bgp.ipv6_address];
    let addresses = nets.iter().filter_map(|net| net.split('/').next());
    let addresses = addresses.filter(|address| !address.is_empty());
    addresses.map(ToOwned::to_owned).collect()
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
        never = follow(&client, &ipam, &settings.name, None) => never,
        stopped = tokio::signal::ctrl_c() => stopped.context("waiting for a signal")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Keeps the place of this machine in the cluster, until the caller drops it.
pub(crate) async fn keep(client: Client, node: String, registrar: impl Registrar) {
    let ipam = Ipam::new(Arc::clone(client.store()));
    follow(&client, &ipam, &node, Some(&registrar)).await;
}

/// What a node's start needs to know of the cluster that the datastore is in, if it is in one.
pub(crate) async fn facts(cluster: Option<&kube::Client>) -> Option<KubernetesFacts> {
    let pod_networks = tortie_install::cluster::pod_networks(cluster?).await;
    Some(KubernetesFacts { pod_networks })
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
        variables.insert(variables::NODENAME.to_owned(), node.to_owned());
    }
    Ok(Settings::from_environment(&variables, &machine_name()?)?)
}
