//! CHECK: sees whether a container is still connected as it was.

use std::net::IpAddr;

use tortie_api::net::{Cidr, parse_cidr_or_ip};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::ipam::Held;
use crate::network::{self, Expected};
use crate::request::Command;
use crate::{cluster, ipam};

/// Compares the interface, the endpoint and the addresses with each other and with the result of ADD. The error names
/// all that is not as it should be.
pub async fn check(context: &Context<'_>) -> Result<()> {
    context.datastore.check_ready().await?;
    let previous = context.config.previous_result()?;
    let (request, identity) = (context.request, &context.identity);
    let pod = match (&context.datastore.cluster, &identity.pod) {
        (Some(client), Some(pod)) => cluster::find_pod(client, &identity.namespace, pod).await?,
        _ => None,
    };
    let endpoint = context
        .endpoints()
        .find(identity, pod.as_ref(), &context.prefix)
        .await?;
    let Some(endpoint) = endpoint else {
        let name = identity.endpoint_key()?;
        return Err(unlike(&[format!("there is no {name}")]));
    };

    let mut problems = Vec::new();
    let container = &endpoint.spec.container_id;
    if *container != identity.container_id {
        problems.push(format!(
            "the endpoint is that of the container `{container}`, not of `{}`",
            identity.container_id
        ));
    }
    let networks = endpoint.spec.ip_networks.iter();
    let mut addresses: Vec<IpAddr> = networks
        .filter_map(|network| parse_cidr_or_ip(network))
        .map(Cidr::ip)
        .collect();
    let mut mac = endpoint.spec.mac.clone();
    if let Some(previous) = previous {
        let inside = previous
            .interfaces
            .iter()
            .find(|interface| !interface.sandbox.is_empty());
        if let Some(interface) = inside {
            mac.clone_from(&interface.mac);
        }
        for address in previous.ips.iter().map(|ip| ip.address.addr()) {
            if !addresses.contains(&address) {
                problems.push(format!("the endpoint has no address {address}"));
                addresses.push(address);
            }
        }
    }
    let host_name = context.host_interface();
    let held = held(context).await?;
    problems.extend(network::check(&Expected {
        namespace: &request.namespace,
        inside_name: &request.interface,
        mac: &mac,
        host_name: &host_name,
        addresses: &addresses,
        is_routed: held.as_ref().is_none_or(|held| held.is_routed),
    })?);
    if let Some(Held {
        handle,
        addresses: held,
        ..
    }) = held
    {
        let missing = addresses.iter().filter(|address| !held.contains(address));
        problems.extend(missing.map(|address| format!("{address} is not assigned to `{handle}`")));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(unlike(&problems))
    }
}

/// What the management of addresses knows of the container; none if that is not ours, and says that all is well.
async fn held(context: &Context<'_>) -> Result<Option<Held>> {
    if !context.config.is_calico_ipam() {
        ipam::ask_delegate(context, Command::Check).await?;
        return Ok(None);
    }
    // Of addresses that annotations ask for, nobody may keep account.
    if context.config.feature_control.ip_addrs_no_ipam {
        return Ok(None);
    }
    ipam::held(context).await.map(Some)
}

/// Sees whether the container still has addresses of Calico's own management.
pub(crate) async fn check_held(context: &Context<'_>) -> Result<()> {
    let held = ipam::held(context).await?;
    if held.addresses.is_empty() {
        let message = format!("no address is assigned to `{}`", held.handle);
        return Err(unlike(&[message]));
    }
    Ok(())
}

fn unlike(problems: &[String]) -> Error {
    Error::new(Code::Unlike, problems.join("; "))
}
