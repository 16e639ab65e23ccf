//! Addresses: from Calico's own blocks, or from another plugin.

mod batch;
mod calico;
mod delegate;
mod host_local;
mod lock;
mod machine;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use crate::cluster;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::machine::Machine;
use crate::network::default_routes;
use crate::request::Command;
use crate::result::CniResult;

pub(crate) use calico::{collect_garbage, configuration, held};
pub(crate) use lock::path as lock_file;

/// What is wanted of Calico's address management.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// An IPv4 address.
    pub(crate) ipv4: bool,
    /// An IPv6 address.
    pub(crate) ipv6: bool,
    /// Pools for IPv4, by CIDR or name; any if empty.
    pub(crate) ipv4_pools: Vec<String>,
    /// Pools for IPv6, by CIDR or name; any if empty.
    pub(crate) ipv6_pools: Vec<String>,
    /// These addresses instead.
    pub(crate) addresses: Vec<IpAddr>,
    /// The labels of the pod's namespace.
    pub(crate) namespace_labels: Option<BTreeMap<String, String>>,
    /// The virtual machine that the addresses are for; none if they are for the container alone.
    pub(crate) machine: Option<Machine>,
}

/// What address management knows of a container.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// The handle that the container's addresses should be under.
    pub(crate) handle: String,
    /// The container's addresses, and those of the virtual machine that it runs.
    pub(crate) addresses: Vec<IpAddr>,
    /// Whether packets to them go to the container, and not to another one that the machine still runs in.
    pub(crate) is_routed: bool,
}

impl Wanted {
    /// What the configuration and the arguments of the request ask for.
    pub(crate) fn of(context: &Context<'_>) -> Result<Self> {
        let ipam = &context.config.ipam;
        let addresses = match context.request.arguments.get("IP") {
            None => Vec::new(),
            Some(text) => {
                let address = tortie_api::net::parse_ip(text).ok_or_else(|| {
                    let message = format!("CNI_ARGS has IP={text}, which is not an address");
                    Error::new(Code::InvalidEnvironment, message)
                })?;
                vec![address]
            }
        };
        Ok(Self {
            ipv4: ipam.assign_ipv4.as_deref() != Some("false"),
            ipv6: ipam.assign_ipv6.as_deref() == Some("true"),
            ipv4_pools: ipam.ipv4_pools.clone(),
            ipv6_pools: ipam.ipv6_pools.clone(),
            addresses,
            namespace_labels: None,
            machine: None,
        })
    }
}

/// Finds addresses for the container. The same container gets the same again, and so does the same virtual machine. Without
/// routes in the result, packets to the addresses still go to another pod.
pub(crate) async fn assign(context: &Context<'_>, wanted: &Wanted) -> Result<CniResult> {
    calico::assign(context, wanted).await
}

/// Finds addresses for the container through another plugin, and the routes that the container is to have.
pub(crate) async fn delegate(context: &Context<'_>) -> Result<(CniResult, Vec<IpNet>)> {
    let mut config = json(context)?;
    let mut routes = Vec::new();
    match context.config.ipam.r#type.as_str() {
        "" => {
            return Err(Error::config(
                "network configuration: `ipam.type` is missing",
            ));
        }
        "azure-vnet-ipam" => {
            let message = "network configuration: `ipam.type` is `azure-vnet-ipam`, which is not supported; use calico-ipam or host-local";
            return Err(Error::new(Code::UnsupportedField, message));
        }
        "host-local" => {
            if host_local::needs_pod_cidrs(&config) {
                let node = match context.config.kubernetes.node_name.as_str() {
                    "" => &context.identity.node,
                    name => name,
                };
                let (datastore, environment) = (&context.datastore, context.environment);
                let client = datastore.cluster(context.config, environment).await?;
                let cidrs = cluster::pod_cidrs(&client, node).await?;
                host_local::fill_in(&mut config, &host_local::PodCidrs::of(&cidrs)?)?;
            }
            routes = host_local::routes(&config)?;
        }
        _ => {}
    }
    let result = delegate::run(context, Command::Add, &config).await?;
    let result = result.unwrap_or_default();
    if result.ips.is_empty() {
        let message = format!(
            "the IPAM plugin `{}` gave no addresses",
            context.config.ipam.r#type
        );
        // What it may have done nevertheless is to be undone.
        let _ = release(context).await;
        return Err(Error::new(Code::Address, message));
    }
    if routes.is_empty() {
        routes = default_routes();
    } else if context.config.include_default_routes {
        routes.splice(0..0, default_routes());
    }
    Ok((result, routes))
}

/// Gives back all addresses of the container. That there are none is no error.
pub(crate) async fn release(context: &Context<'_>) -> Result<()> {
    if context.config.is_calico_ipam() {
        return calico::release(context).await;
    }
    let mut config = json(context)?;
    if context.config.ipam.r#type == "host-local" {
        // It goes by the container alone, but wants to see networks nevertheless.
        host_local::fill_in(&mut config, &host_local::PodCidrs::any())?;
    }
    delegate::run(context, Command::Del, &config)
        .await
        .map(drop)
}

/// Gives back what Calico's own management has given to the container, whatever the configuration names.
pub(crate) async fn release_own(context: &Context<'_>) -> Result<()> {
    calico::release(context).await
}

/// Asks another plugin to see whether the container's addresses are still its, or whether it could serve.
pub(crate) async fn ask_delegate(context: &Context<'_>, command: Command) -> Result<()> {
    let config = json(context)?;
    delegate::run(context, command, &config).await.map(drop)
}

/// Gives back addresses, whoever has them.
pub(crate) async fn release_addresses(context: &Context<'_>, networks: &[String]) -> Result<()> {
    calico::release_addresses(context, networks).await
}

fn json(context: &Context<'_>) -> Result<Value> {
    serde_json::from_slice(context.raw).map_err(Error::of(
        Code::Decode,
        "the network configuration is not JSON",
    ))
}
