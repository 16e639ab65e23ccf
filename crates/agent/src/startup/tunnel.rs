//! Addresses of a node's tunnel devices, which come from the pools that use tunnels.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::ip_pool::{IpipMode, VxlanMode};
use tortie_api::{IpPool, Kind, Node, Resource};
use tortie_client::Client;
use tortie_ipam::pools::Pool;
use tortie_ipam::{AssignIp, AutoAssign, Ipam, Use, attribute};
use tortie_store::{self as store, Key, Query};

use crate::startup::autodetect::Version;

/// A kind of tunnel that a node has one address for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tunnel {
    Ipip,
    /// VXLAN between IPv4 nodes.
    Vxlan,
    /// VXLAN between IPv6 nodes.
    VxlanV6,
}

/// What became of a tunnel's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No pool asks for one, and there is none.
    NotNeeded,
    /// It is as before.
    Kept(IpAddr),
    /// It is new.
    Assigned(IpAddr),
    /// It was given back.
    Released(IpAddr),
}

/// Why a tunnel has no address.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The datastore refused.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// There is none to be had.
    #[error("an address for the {tunnel} device of node {node} could not be assigned")]
    Ipam {
        tunnel: &'static str,
        node: String,
        /// Why not.
        source: tortie_ipam::Error,
    },
    /// The pools have none left.
    #[error("no address is free for the {tunnel} device of node {node}: {reason}")]
    Exhausted {
        tunnel: &'static str,
        node: String,
        /// What stood in the way.
        reason: String,
    },
}

impl Tunnel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ipip, Self::Vxlan, Self::VxlanV6];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ipip => "IPIP",
            Self::Vxlan => "VXLAN",
            Self::VxlanV6 => "IPv6 VXLAN",
        }
    }

    /// The handle that holds its address.
    pub fn handle(self, node: &str) -> String {
        match self {
            Self::Ipip => format!("ipip-tunnel-addr-{node}"),
            Self::Vxlan => format!("vxlan-tunnel-addr-{node}"),
            Self::VxlanV6 => format!("vxlan-v6-tunnel-addr-{node}"),
        }
    }

    fn version(self) -> Version {
        match self {
            Self::Ipip | Self::Vxlan => Version::V4,
            Self::VxlanV6 => Version::V6,
        }
    }

    fn attributes(self, node: &str) -> BTreeMap<String, String> {
        let sort = match self {
            Self::Ipip => attribute::IPIP_TUNNEL,
            Self::Vxlan => attribute::VXLAN_TUNNEL,
            Self::VxlanV6 => attribute::VXLAN_V6_TUNNEL,
        };
        [(attribute::NODE, node), (attribute::TYPE, sort)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// Whether a pool's addresses are reached through it.
    fn is_of(self, pool: &IpPool) -> bool {
        let uses_vxlan = !matches!(pool.spec.vxlan_mode, None | Some(VxlanMode::Never));
        match self {
            Self::Ipip => !matches!(pool.spec.ipip_mode, None | Some(IpipMode::Never)),
            Self::Vxlan | Self::VxlanV6 => uses_vxlan,
        }
    }

    /// Where the node's resource has the address.
    fn field(self, node: &mut Node) -> &mut String {
        match self {
            Self::Ipip => {
                let bgp = node.spec.bgp.get_or_insert_default();
                &mut bgp.ipv4_ipip_tunnel_addr
            }
            Self::Vxlan => &mut node.spec.ipv4_vxlan_tunnel_addr,
            Self::VxlanV6 => &mut node.spec.ipv6_vxlan_tunnel_addr,
        }
    }
}

/// Gives each tunnel that a pool asks for an address, and takes back the others.
pub async fn ensure(
    client: &Client,
    ipam: &Ipam,
    node: &str,
) -> Result<Vec<(Tunnel, Outcome)>, Error> {
    let pools = client.list(&Query::all(Kind::IpPool)).await?;
    let pools: Vec<IpPool> = pools
        .items
        .into_iter()
        .filter_map(|pool| match pool {
            Resource::IpPool(pool) => Some(*pool),
            _ => None,
        })
        .collect();
    let mut outcomes = Vec::new();
    for tunnel in Tunnel::ALL {
        let outcome = ensure_one(client, ipam, node, tunnel, &pools).await?;
        outcomes.push((tunnel, outcome));
    }
    Ok(outcomes)
}

async fn ensure_one(
    client: &Client,
    ipam: &Ipam,
    name: &str,
    tunnel: Tunnel,
    pools: &[IpPool],
) -> Result<Outcome, Error> {
    let mut node = read(client, name).await?;
    let pools = usable(pools, tunnel, &node);
    let current: Option<IpAddr> = tunnel.field(&mut node).parse().ok();
    if pools.is_empty() {
        release(ipam, name, tunnel).await?;
        let Some(current) = current else {
            return Ok(Outcome::NotNeeded);
        };
        write(client, name, tunnel, None).await?;
        return Ok(Outcome::Released(current));
    }
    if let Some(current) = current {
        let in_pool = pools.iter().any(|pool| pool.contains(&current));
        if in_pool && hold(ipam, name, tunnel, current).await? {
            return Ok(Outcome::Kept(current));
        }
    }
    // What the handle has besides is not in use: the node's resource says so.
    release(ipam, name, tunnel).await?;
    let address = assign(ipam, name, tunnel, pools).await?;
    write(client, name, tunnel, Some(address)).await?;
    Ok(Outcome::Assigned(address))
}

/// The networks of the pools that a tunnel's address on the node may come from.
fn usable(pools: &[IpPool], tunnel: Tunnel, node: &Node) -> Vec<IpNet> {
    let labels = &node.metadata.labels;
    let is_alive =
        |pool: &&IpPool| !pool.spec.disabled && pool.metadata.deletion_timestamp.is_none();
    let pools = pools.iter().filter(is_alive);
    let pools = pools
        .filter(|pool| tunnel.is_of(pool))
        .filter_map(Pool::new);
    let allows = |pool: &Pool| {
        pool.allowed_uses.contains(&Use::Tunnel) && pool.selects_node(labels).unwrap_or(false)
    };
    let nets = pools.filter(allows).map(|pool| pool.net);
    nets.filter(|net| tunnel.version().has(&net.addr()))
        .collect()
}

/// Whether the address is the tunnel's. One that nobody has is taken.
async fn hold(ipam: &Ipam, node: &str, tunnel: Tunnel, address: IpAddr) -> Result<bool, Error> {
    let refused = |source| refused(tunnel, node, source);
    let holder = match ipam.assignment(address).await {
        Ok(holder) => Some(holder),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(refused(error)),
    };
    let handle = tunnel.handle(node);
    match holder {
        Some(holder) if holder.handle.is_none() && holder.attributes.is_empty() => {
            // An address of a node that was made before holders were recorded.
            ipam.release(&[address.into()]).await.map_err(refused)?;
        }
        Some(holder) => return Ok(holder.handle.as_deref() == Some(&*handle)),
        None => {}
    }
    let request = AssignIp {
        handle: Some(handle),
        attributes: tunnel.attributes(node),
        used_for: Some(Use::Tunnel),
        ..AssignIp::on(node, address)
    };
    // If somebody else was faster, another is found.
    Ok(ipam.assign_ip(&request).await.is_ok())
}

async fn assign(
    ipam: &Ipam,
    node: &str,
    tunnel: Tunnel,
    pools: Vec<IpNet>,
) -> Result<IpAddr, Error> {
    let request = AutoAssign {
        handle: Some(tunnel.handle(node)),
        attributes: tunnel.attributes(node),
        used_for: Use::Tunnel,
        ..AutoAssign::on(node)
    };
    let request = match tunnel.version() {
        Version::V4 => AutoAssign {
            num4: 1,
            pools4: pools,
            ..request
        },
        Version::V6 => AutoAssign {
            num6: 1,
            pools6: pools,
            ..request
        },
    };
    let assigned = ipam.auto_assign(&request).await;
    let assigned = assigned.map_err(|source| refused(tunnel, node, source))?;
    let assignment = match tunnel.version() {
        Version::V4 => assigned.v4,
        Version::V6 => assigned.v6,
    };
    let found = assignment.addresses.first().map(IpNet::addr);
    found.ok_or_else(|| Error::Exhausted {
        tunnel: tunnel.name(),
        node: node.to_owned(),
        reason: assignment
            .shortfall
            .map_or(String::new(), |shortfall| shortfall.reasons.join("; ")),
    })
}

async fn release(ipam: &Ipam, node: &str, tunnel: Tunnel) -> Result<(), Error> {
    match ipam.release_by_handle(&tunnel.handle(node)).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(refused(tunnel, node, error)),
    }
}

fn refused(tunnel: Tunnel, node: &str, source: tortie_ipam::Error) -> Error {
    Error::Ipam {
        tunnel: tunnel.name(),
        node: node.to_owned(),
        source,
    }
}

async fn read(client: &Client, name: &str) -> Result<Node, Error> {
    let key = Key::global(Kind::Node, name);
    match client.get(&key).await? {
        Resource::Node(node) => Ok(*node),
        _ => Err(store::Error::NotFound(key).into()),
    }
}

async fn write(
    client: &Client,
    name: &str,
    tunnel: Tunnel,
    address: Option<IpAddr>,
) -> Result<(), Error> {
    let text = address.map_or(String::new(), |address| address.to_string());
    let key = Key::global(Kind::Node, name);
    let written = client.modify(&key, |node: &mut Node| {
        tunnel.field(node).clone_from(&text);
        Ok::<_, store::Error>(())
    });
    written.await?;
    Ok(())
}
