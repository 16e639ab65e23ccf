//! Addresses of virtual machines, which several pods have one after the other, or for a while at once.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_ipam::AddressOwners;

use super::Held;
use super::batch::release;
use super::calico::{attributes, ipam, is_not_found, within};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::identity::Identity;
use crate::machine::{Left, Machine};

/// The addresses that a machine has already, and whether packets to them go to this pod. None if it is to get its first
/// ones.
pub(super) async fn reuse(
    context: &Context<'_>,
    machine: &Machine,
) -> Result<Option<(Vec<IpNet>, bool)>> {
    let facts = attributes(context, Some(machine));
    let admit = |owners: &mut AddressOwners| owners.admit(&facts, machine.is_target);
    let held = change(context, &machine.handle, admit).await?;
    if !held.is_empty() {
        let networks = held.iter().map(|(address, _)| IpNet::from(*address));
        return Ok(Some((networks.collect(), is_active(context, &held))));
    }
    if machine.is_target {
        let (namespace, pod) = pod(context);
        let message = format!(
            "the pod {namespace}/{pod} is the target of a live migration, but no address is assigned to `{}`: the pod that it takes over from has none",
            machine.handle
        );
        return Err(Error::new(Code::Address, message));
    }
    Ok(None)
}

/// Ends the pod's use of the machine's addresses, and gives them back with the last pod of a machine that does not keep
/// them.
pub(super) async fn leave(context: &Context<'_>, left: &Left) -> Result<()> {
    let handle = &left.handle;
    let (namespace, pod) = pod(context);
    let dismiss = |owners: &mut AddressOwners| owners.dismiss(namespace, pod);
    let held = change(context, handle, dismiss).await?;
    let is_used = held.iter().any(|(_, owners)| !owners.is_empty());
    if left.is_kept || is_used {
        let addresses: Vec<IpAddr> = held.into_iter().map(|(address, _)| address).collect();
        tracing::info!(handle, ?addresses, "A virtual machine keeps its addresses");
        return Ok(());
    }
    release(&ipam(context), std::slice::from_ref(handle)).await
}

/// What is known of a container that runs the machine of a handle.
pub(super) async fn held(context: &Context<'_>, handle: String) -> Result<Held> {
    let held = change(context, &handle, |_| {}).await?;
    Ok(Held {
        handle,
        is_routed: is_active(context, &held),
        addresses: held.into_iter().map(|(address, _)| address).collect(),
    })
}

async fn change(
    context: &Context<'_>,
    handle: &str,
    change: impl Fn(&mut AddressOwners) + Sync,
) -> Result<Vec<(IpAddr, AddressOwners)>> {
    let ipam = ipam(context);
    match within(Box::pin(ipam.change_owners(handle, change))).await {
        Err(error) if is_not_found(&error) => Ok(Vec::new()),
        held => held,
    }
}

/// Whether packets to all of the addresses go to this pod.
fn is_active(context: &Context<'_>, held: &[(IpAddr, AddressOwners)]) -> bool {
    let (namespace, pod) = pod(context);
    held.iter()
        .all(|(_, owners)| owners.is_active(namespace, pod))
}

fn pod<'a>(context: &'a Context<'_>) -> (&'a str, &'a str) {
    let Identity { namespace, pod, .. } = &context.identity;
    (namespace, pod.as_deref().unwrap_or_default())
}
