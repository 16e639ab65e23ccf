//! What is to be done for a service. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::kube_controllers_configuration::AssignIps;
use tortie_api::net::{Cidr, parse_cidr, parse_ip};

use super::ledger::ServicePool;
use super::service::{ADDRESSES, CachedService, POOLS_V4, POOLS_V6};

/// What is to be done for a service that exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Addresses to take back first.
    pub(super) release: BTreeSet<IpAddr>,
    /// Then to give.
    pub(super) assign: Assign,
    /// Then to tell.
    pub(super) status: Status,
}

/// Addresses to give.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Assign {
    /// None.
    #[default]
    Nothing,
    These(Vec<IpAddr>),
    /// Whichever are free, from these pools or, if there are none, from any.
    Any {
        /// Whether one for IPv4.
        v4: bool,
        /// Whether one for IPv6.
        v6: bool,
        /// Pools for IPv4.
        pools4: Vec<IpNet>,
        /// Pools for IPv6.
        pools6: Vec<IpNet>,
    },
}

/// What the status of the service must say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Status {
    /// What it says.
    #[default]
    AsItIs,
    /// The addresses it has from us, and no others.
    Ours,
    /// What it says, but for what we took back.
    WithoutReleased,
}

/// What a service asks for in annotations.
#[derive(Debug, Default)]
struct Request {
    addresses: Option<Vec<IpAddr>>,
    pools4: Option<Vec<IpNet>>,
    pools6: Option<Vec<IpNet>>,
}

/// An annotation that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{value}` in {what} {reason}")]
pub(super) struct Nonsense {
    what: &'static str,
    value: String,
    reason: &'static str,
}

/// Decides for a service that exists and has these addresses.
pub(super) fn plan(
    service: &CachedService,
    held: &BTreeSet<IpAddr>,
    pools: &BTreeMap<String, ServicePool>,
    assign: AssignIps,
) -> Result<Plan, Nonsense> {
    let is_managed = service.is_managed(assign);
    if !is_managed || pools.is_empty() {
        return Ok(Plan {
            release: held.clone(),
            status: match (is_managed, held.is_empty()) {
                (_, true) => Status::AsItIs,
                (true, false) => Status::Ours,
                (false, false) => Status::WithoutReleased,
            },
            ..Plan::default()
        });
    }
    let request = Request::read(service, pools)?;
    let text = &service.spec.load_balancer_ip;
    let preferred = if text.is_empty() {
        None
    } else {
        Some(parse_ip(text).ok_or(Nonsense {
            what: "spec.loadBalancerIP",
            value: text.clone(),
            reason: "is no address",
        })?)
    };
    let release: BTreeSet<IpAddr> = held
        .iter()
        .copied()
        .filter(|address| request.excludes(*address, preferred, pools))
        .collect();
    let kept: BTreeSet<IpAddr> = held.difference(&release).copied().collect();
    Ok(Plan {
        assign: request.assign(service, &kept, preferred),
        release,
        status: Status::Ours,
    })
}

// === impl Request ===

impl Request {
    fn read(
        service: &CachedService,
        pools: &BTreeMap<String, ServicePool>,
    ) -> Result<Self, Nonsense> {
        let addresses = match list(service, ADDRESSES)? {
            None => None,
            Some(texts) => Some(addresses(&texts)?),
        };
        let read_pools = |what, is_v4| {
            let texts = list(service, what)?;
            texts
                .map(|texts| {
                    texts
                        .iter()
                        .map(|text| pool(what, text, is_v4, pools))
                        .collect()
                })
                .transpose()
        };
        Ok(Self {
            addresses,
            pools4: read_pools(POOLS_V4, true)?,
            pools6: read_pools(POOLS_V6, false)?,
        })
    }

    /// Whether a service that asks for this may not have the address.
    fn excludes(
        &self,
        address: IpAddr,
        preferred: Option<IpAddr>,
        pools: &BTreeMap<String, ServicePool>,
    ) -> bool {
        if let Some(addresses) = &self.addresses {
            return !addresses.contains(&address);
        }
        if self.pools4.is_some() || self.pools6.is_some() {
            let mut asked = self.pools4.iter().chain(&self.pools6).flatten();
            return !asked.any(|net| net.contains(&address));
        }
        // From a pool that has to be asked for.
        preferred != Some(address)
            && pools
                .values()
                .any(|pool| pool.is_manual && pool.net.contains(&address))
    }

    fn assign(
        self,
        service: &CachedService,
        kept: &BTreeSet<IpAddr>,
        preferred: Option<IpAddr>,
    ) -> Assign {
        let has = |is_v4: bool| kept.iter().any(|address| address.is_ipv4() == is_v4);
        let (v4, v6) = service.families();
        if let Some(addresses) = self.addresses {
            let missing = addresses.into_iter().filter(|at| !kept.contains(at));
            return match missing.collect::<Vec<_>>() {
                missing if missing.is_empty() => Assign::Nothing,
                missing => Assign::These(missing),
            };
        }
        // Each IP version on its own: in Calico an IPv4 address also stands for the IPv6 address, so that a service which
        // first got only one never gains the other.
        let (v4, v6) = (v4 && !has(true), v6 && !has(false));
        match preferred {
            _ if !v4 && !v6 => Assign::Nothing,
            Some(address) if kept.contains(&address) => Assign::Nothing,
            Some(address) => Assign::These(vec![address]),
            None => Assign::Any {
                v4,
                v6,
                pools4: self.pools4.unwrap_or_default(),
                pools6: self.pools6.unwrap_or_default(),
            },
        }
    }
}

fn list(service: &CachedService, what: &'static str) -> Result<Option<Vec<String>>, Nonsense> {
    let Some(text) = service.annotation(what) else {
        return Ok(None);
    };
    let nonsense = |_| Nonsense {
        what,
        value: text.to_owned(),
        reason: "is no JSON list of texts",
    };
    serde_json::from_str(text).map(Some).map_err(nonsense)
}

fn addresses(texts: &[String]) -> Result<Vec<IpAddr>, Nonsense> {
    let nonsense = |value: &str, reason| Nonsense {
        what: ADDRESSES,
        value: value.to_owned(),
        reason,
    };
    let mut addresses: Vec<IpAddr> = Vec::new();
    for text in texts {
        let address = parse_ip(text).ok_or_else(|| nonsense(text, "is no address"))?;
        if addresses
            .iter()
            .any(|other| other.is_ipv4() == address.is_ipv4())
        {
            let reason = "is a second address of its IP version; at most one IPv4 and one IPv6 address can be asked for";
            return Err(nonsense(text, reason));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

/// A pool by name or network.
fn pool(
    what: &'static str,
    text: &str,
    is_v4: bool,
    pools: &BTreeMap<String, ServicePool>,
) -> Result<IpNet, Nonsense> {
    let nonsense = |reason| Nonsense {
        what,
        value: text.to_owned(),
        reason,
    };
    let net = parse_cidr(text).map(Cidr::network);
    let net = net.or_else(|| pools.get(text).map(|pool| pool.net));
    let net = net.ok_or_else(|| nonsense("is neither a network nor a pool for load balancers"))?;
    if net.addr().is_ipv4() == is_v4 {
        Ok(net)
    } else {
        Err(nonsense("is of the other IP version"))
    }
}
