//! Calico's own address management, in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use ipnet::IpNet;
use jiff::Timestamp;
use tortie_api::ipam_configuration::IpamConfigurationSpec;
use tortie_api::net::{parse_cidr, parse_cidr_or_ip};
use tortie_error::Causes;
use tortie_ipam::{AssignIp, AutoAssign, Ipam, ReleaseIp, Use, attribute};
use tortie_store::{Kind, Query, Resource};

use super::batch::{self, Job};
use super::lock::{self, Lock};
use super::machine::{leave, reuse};
use super::{Held, Wanted};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::machine::{self, Machine};
use crate::result::{Address, CniResult, Route};

/// How long anything may take once the lock is had: with many containers at once, that alone may take a while.
const PATIENCE: Duration = Duration::from_secs(90);

/// There, beside the lock, once the affinities of this node have been brought in order.
const UPGRADED: &str = "cni/ipam_upgraded";

pub(super) async fn assign(context: &Context<'_>, wanted: &Wanted) -> Result<CniResult> {
    let existing = match &wanted.machine {
        Some(machine) => reuse(context, machine).await?,
        None => None,
    };
    let (networks, is_active) = match existing {
        Some(existing) => existing,
        None if wanted.addresses.is_empty() => (assign_any(context, wanted).await?, true),
        None => (assign_these(context, wanted).await?, true),
    };
    if networks.is_empty() {
        let message = "no addresses are asked for: `ipam.assign_ipv4` is off, and `ipam.assign_ipv6` is not on";
        return Err(Error::config(message));
    }
    let address = |network: &IpNet| Address {
        interface: None,
        address: *network,
        gateway: None,
    };
    let route = |network: &IpNet| Route {
        destination: *network,
        gateway: None,
        more: serde_json::Map::new(),
    };
    let routed: &[IpNet] = if is_active { &networks } else { &[] };
    Ok(CniResult {
        ips: networks.iter().map(address).collect(),
        routes: routed.iter().map(route).collect(),
        ..CniResult::default()
    })
}

async fn assign_any(context: &Context<'_>, wanted: &Wanted) -> Result<Vec<IpNet>> {
    let (pools4, pools6) = resolve_pools(context, wanted).await?;
    let request = AutoAssign {
        num4: wanted.ipv4.into(),
        num6: wanted.ipv6.into(),
        handle: Some(handle_of(context, wanted)),
        attributes: attributes(context, wanted.machine.as_ref()),
        pools4,
        pools6,
        used_for: Use::Workload,
        namespace_labels: wanted.namespace_labels.clone(),
        // A runtime that asks again for the same container gets the same again.
        max_per_handle: Some(1),
        ..AutoAssign::on(&context.identity.node)
    };
    batch::run(context, Job::Assign(Box::new(request))).await
}

async fn assign_these(context: &Context<'_>, wanted: &Wanted) -> Result<Vec<IpNet>> {
    let addresses = &wanted.addresses;
    let _lock = Lock::acquire(context.config).await;
    let ipam = ipam(context);
    let handle = handle_of(context, wanted);
    for address in addresses {
        let request = AssignIp {
            handle: Some(handle.clone()),
            attributes: attributes(context, wanted.machine.as_ref()),
            used_for: Some(Use::Workload),
            max_per_handle: wanted.machine.is_some().then_some(1),
            ..AssignIp::on(&context.identity.node, *address)
        };
        match within(Box::pin(ipam.assign_ip(&request))).await {
            Ok(()) => {}
            Err(error) => {
                let is_ours = ipam.ips_by_handle(&handle).await;
                if !is_ours.is_ok_and(|held| held.contains(address)) {
                    return Err(error);
                }
            }
        }
    }
    Ok(addresses.iter().copied().map(IpNet::from).collect())
}

/// Brings what old versions left of this node's blocks in order, once after each start of the machine.
pub(super) async fn upgrade_host(ipam: &Ipam, context: &Context<'_>) -> Result<()> {
    let folder = lock::path(context.config).parent();
    let marker = folder.unwrap_or(Path::new("/")).join(UPGRADED);
    if marker.exists() {
        return Ok(());
    }
    let upgraded = within(Box::pin(ipam.upgrade_host(&context.identity.node))).await?;
    tracing::info!(upgraded, "Affinities of old versions were brought in order");
    let mark = || -> io::Result<()> {
        fs::create_dir_all(marker.parent().unwrap_or(Path::new("/")))?;
        fs::File::create(&marker).map(drop)
    };
    // Without it, the next plugin looks again.
    if let Err(error) = mark() {
        tracing::warn!(error = %Causes(&error), "It could not be noted that affinities are in order");
    }
    Ok(())
}

/// The pools that are asked for by CIDR or name, as CIDRs.
async fn resolve_pools(context: &Context<'_>, wanted: &Wanted) -> Result<(Vec<IpNet>, Vec<IpNet>)> {
    let mut all = wanted.ipv4_pools.iter().chain(&wanted.ipv6_pools);
    // Only names need to be looked up.
    let known: BTreeMap<String, String> = if all.any(|pool| parse_cidr(pool).is_none()) {
        let query = Query::all(Kind::IpPool);
        let list = context.datastore.client.list(&query).await?;
        let pools = list.items.into_iter().filter_map(|pool| match pool {
            Resource::IpPool(pool) => Some((pool.metadata.name.clone(), pool.spec.cidr.clone())),
            _ => None,
        });
        pools.collect()
    } else {
        BTreeMap::new()
    };
    let resolve = |pools: &[String], is_ipv4: bool| {
        let one = |pool: &String| {
            let cidr = known.get(pool).unwrap_or(pool);
            let cidr = parse_cidr(cidr).ok_or_else(|| {
                Error::config(format!("`{pool}` is neither a CIDR nor the name of a pool"))
            })?;
            if cidr.is_ipv4() != is_ipv4 {
                let family = if is_ipv4 { 4 } else { 6 };
                let message = format!("the pool `{pool}` ({cidr}) is not for IPv{family}");
                return Err(Error::config(message));
            }
            Ok(cidr.network())
        };
        pools.iter().map(one).collect::<Result<Vec<_>>>()
    };
    Ok((
        resolve(&wanted.ipv4_pools, true)?,
        resolve(&wanted.ipv6_pools, false)?,
    ))
}

pub(super) async fn release(context: &Context<'_>) -> Result<()> {
    if let Some(left) = machine::leaving(context).await? {
        let _lock = Lock::acquire(context.config).await;
        leave(context, &left).await?;
    }
    // Also of the pod of a machine: whether machines keep their addresses may have been decided anew since it started.
    let handles = vec![context.handle(), context.identity.old_handle()];
    batch::run(context, Job::Release(handles)).await.map(drop)
}

pub(super) async fn release_addresses(context: &Context<'_>, networks: &[String]) -> Result<()> {
    let addresses: Vec<ReleaseIp> = networks
        .iter()
        .filter_map(|network| parse_cidr_or_ip(network))
        .map(|cidr| ReleaseIp::from(cidr.ip()))
        .collect();
    let _lock = Lock::acquire(context.config).await;
    within(Box::pin(ipam(context).release(&addresses)))
        .await
        .map(drop)
}

/// What is known of the container.
pub(crate) async fn held(context: &Context<'_>) -> Result<Held> {
    let own = context.handle();
    let mut held = match machine::handle(context).await? {
        Some(handle) => super::machine::held(context, handle).await?,
        None => Held {
            handle: own.clone(),
            addresses: Vec::new(),
            is_routed: true,
        },
    };
    match within(Box::pin(ipam(context).ips_by_handle(&own))).await {
        Ok(found) => held.addresses.extend(found),
        Err(error) if is_not_found(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(held)
}

/// The settings of address management.
pub(crate) async fn configuration(context: &Context<'_>) -> Result<IpamConfigurationSpec> {
    within(Box::pin(ipam(context).configuration())).await
}

/// Gives back the addresses that containers of this network had on this node and that are not among `valid`. Gives
/// those containers. Those of virtual machines stay: a machine may have no container for a while.
pub(crate) async fn collect_garbage(
    context: &Context<'_>,
    valid: &BTreeSet<&str>,
) -> Result<BTreeSet<String>> {
    let network = format!("{}.", context.config.name);
    let query = Query::all(Kind::IpamBlock);
    let mut gone = BTreeSet::new();
    for block in context.datastore.client.list(&query).await?.items {
        let Resource::IpamBlock(block) = block else {
            continue;
        };
        for attribute in &block.spec.attributes {
            let owner = &attribute.active_owner_attrs;
            let node = owner.get(attribute::NODE);
            let handle = attribute.handle_id.as_deref().unwrap_or_default();
            let container = handle.strip_prefix(&network).unwrap_or_default();
            let is_ours = node == Some(&context.identity.node)
                && attribute.released_at.is_none()
                && !owner.contains_key(attribute::VMI_NAME);
            if is_ours && !container.is_empty() && !valid.contains(container) {
                gone.insert(container.to_owned());
            }
        }
    }
    let _lock = Lock::acquire(context.config).await;
    let ipam = ipam(context);
    for container in &gone {
        let handle = format!("{network}{container}");
        tracing::info!(
            handle,
            "Addresses of a container that is gone are given back"
        );
        match within(Box::pin(ipam.release_by_handle(&handle))).await {
            Err(error) if !is_not_found(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(gone)
}

pub(super) fn ipam(context: &Context<'_>) -> Ipam {
    Ipam::new(Arc::clone(context.datastore.client.store()))
}

/// The handle of the addresses that are wanted.
fn handle_of(context: &Context<'_>, wanted: &Wanted) -> String {
    let machine = wanted.machine.as_ref();
    machine.map_or_else(|| context.handle(), |machine| machine.handle.clone())
}

/// Facts about the holder.
pub(super) fn attributes(
    context: &Context<'_>,
    machine: Option<&Machine>,
) -> BTreeMap<String, String> {
    let identity = &context.identity;
    let now = Timestamp::now().strftime("%Y-%m-%d %H:%M:%S%.f +0000 UTC");
    let mut attributes = BTreeMap::from([
        (attribute::NODE.to_owned(), identity.node.clone()),
        (attribute::TIMESTAMP.to_owned(), now.to_string()),
    ]);
    if let Some(pod) = &identity.pod {
        attributes.insert(attribute::POD.to_owned(), pod.clone());
        attributes.insert(attribute::NAMESPACE.to_owned(), identity.namespace.clone());
    }
    if let Some(machine) = machine {
        attributes.extend(machine.facts.clone());
    }
    attributes
}

pub(super) async fn within<T>(work: impl Future<Output = tortie_ipam::Result<T>>) -> Result<T> {
    let failed = "addresses could not be managed";
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let is_retryable =
                matches!(error.cause(), tortie_ipam::Error::Store(store) if store.is_retryable());
            let code = if is_retryable {
                Code::TryLater
            } else {
                Code::Address
            };
            Err(Error::of(code, failed)(error))
        }
        Err(_) => {
            let message = format!("{failed} within {} s", PATIENCE.as_secs());
            Err(Error::new(Code::TryLater, message))
        }
    }
}

pub(super) fn is_not_found(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    source
        .and_then(|source| source.downcast_ref::<tortie_ipam::Error>())
        .is_some_and(tortie_ipam::Error::is_not_found)
}
