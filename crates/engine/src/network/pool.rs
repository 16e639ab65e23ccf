//! What follows from the pools: the kind of pool that an address is in, and which kinds of tunnel are in use.

use hashbrown::HashMap;
use ipnet::IpNet;
use tortie_api::ip_pool::IpPoolAllowedUse;

use crate::config::{Config, RoutesSent};
use crate::input::{EncapMode, IpPool};
use crate::message::{Encapsulation, IpamPool, PoolType};

/// What routes need to know of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoutePool {
    pub(super) r#type: PoolType,
    pub(super) nat_outgoing: bool,
    pub(super) cross_subnet: bool,
}

/// Which kinds of tunnel the pools, or the configuration, ask for.
#[derive(Debug)]
pub(super) struct TunnelUse {
    config: Config,
    pools: HashMap<IpNet, Encapsulation>,
    /// How many pools ask for it: IPIP, VXLAN over IPv4, VXLAN over IPv6, no encapsulation.
    counts: [usize; 4],
}

// === impl RoutePool ===

impl From<&IpPool> for RoutePool {
    fn from(pool: &IpPool) -> Self {
        Self {
            r#type: pool_type(pool),
            nat_outgoing: pool.masquerade,
            cross_subnet: pool.ipip == EncapMode::CrossSubnet
                || pool.vxlan == EncapMode::CrossSubnet,
        }
    }
}

fn pool_type(pool: &IpPool) -> PoolType {
    if pool.allowed_uses == [IpPoolAllowedUse::LoadBalancer] {
        // No workload has such an address: traffic to it is traffic to outside all pools.
        PoolType::None
    } else if pool.vxlan != EncapMode::Never {
        PoolType::Vxlan
    } else if pool.ipip != EncapMode::Never {
        PoolType::Ipip
    } else {
        PoolType::NoEncap
    }
}

// === impl TunnelUse ===

impl TunnelUse {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            pools: HashMap::new(),
            counts: [0; 4],
        }
    }

    /// A pool changed. Disabled pools and those for load balancers count like others.
    pub(super) fn set_pool(&mut self, range: IpNet, pool: Option<&IpPool>) {
        let old = match pool.map(|pool| wish(range, pool)) {
            Some(wish) => {
                for (count, wished) in self.counts.iter_mut().zip(flags(wish)) {
                    *count += usize::from(wished);
                }
                self.pools.insert(range, wish)
            }
            None => self.pools.remove(&range),
        };
        if let Some(wish) = old {
            for (count, wished) in self.counts.iter_mut().zip(flags(wish)) {
                *count -= usize::from(wished);
            }
        }
    }

    /// The message about it.
    pub(super) fn encapsulation(&self) -> Encapsulation {
        let [ipip, vxlan, vxlan_v6, no_encap] = self.counts.map(|count| count > 0);
        Encapsulation {
            ipip_enabled: self.config.ipip_enabled.unwrap_or(ipip),
            vxlan_enabled: self.config.vxlan_enabled.unwrap_or(vxlan),
            vxlan_enabled_v6: vxlan_v6,
            no_encap_enabled: no_encap && self.config.cluster_routes.no_encap(),
        }
    }

    /// Whether the data plane needs routes at all: not where BGP alone programs them, unless it hands them over.
    pub(super) fn needs_routes(&self) -> bool {
        if self.config.routes_sent == RoutesSent::WithAnyPool && !self.pools.is_empty() {
            return true;
        }
        let Encapsulation {
            ipip_enabled,
            vxlan_enabled,
            vxlan_enabled_v6,
            no_encap_enabled,
        } = self.encapsulation();
        self.config.bpf_enabled
            || self.config.wireguard_enabled
            || vxlan_enabled
            || vxlan_enabled_v6
            || no_encap_enabled
            || (ipip_enabled && self.config.cluster_routes.ipip())
    }

    /// Whether the data plane needs the nodes' ends of the VXLAN tunnels.
    pub(super) fn needs_vteps(&self) -> bool {
        let encapsulation = self.encapsulation();
        encapsulation.vxlan_enabled || encapsulation.vxlan_enabled_v6
    }
}

/// What one pool asks for.
fn wish(range: IpNet, pool: &IpPool) -> Encapsulation {
    let ipip = pool.ipip != EncapMode::Never;
    let vxlan = pool.vxlan != EncapMode::Never;
    let is_v4 = matches!(range, IpNet::V4(_));
    Encapsulation {
        ipip_enabled: ipip,
        vxlan_enabled: vxlan && is_v4,
        vxlan_enabled_v6: vxlan && !is_v4,
        no_encap_enabled: !ipip && !vxlan,
    }
}

fn flags(wish: Encapsulation) -> [bool; 4] {
    [
        wish.ipip_enabled,
        wish.vxlan_enabled,
        wish.vxlan_enabled_v6,
        wish.no_encap_enabled,
    ]
}

/// The identifier of a pool in messages.
pub(super) fn pool_id(range: IpNet) -> String {
    range.to_string().replace('/', "-")
}

/// The message about a pool.
pub(super) fn ipam_pool(range: IpNet, pool: &IpPool) -> IpamPool {
    IpamPool {
        cidr: range,
        masquerade: pool.masquerade,
        ipip_mode: pool.ipip,
        vxlan_mode: pool.vxlan,
        allowed_uses: pool.allowed_uses.clone(),
    }
}
