//! `portmap`: connections to ports of the node go to ports of a container.
//!
//! Done with nftables, in tables of its own. Each rule carries the text of its owner, by which it is found again.
//!
//! # Invariants
//! - What belongs to a container changes in one transaction for each family.
//! - The newest container that asks for a port has it, so that one that was never disconnected is in nobody's way.

mod conditions;
mod config;
mod connections;
mod rules;
mod tables;

use std::net::IpAddr;

use serde_json::Value;
use tortie_kernel::route::Socket as Routing;
use tortie_kernel::sysctl::{Group, Sysctl};

use self::config::Settings;
use self::rules::Wanted;
use self::tables::Tables;
use super::{Call, owner, sandbox, unlike};
use crate::error::{Code, Error, Result};
use crate::network::kernel;

pub(super) fn add(call: &Call<'_>) -> Result<Value> {
    let settings = Settings::read(call)?;
    let previous = call.previous()?;
    if settings.mappings.is_empty() {
        return Ok(previous.value());
    }
    let owner = owner_of(call);
    let mut tables = Tables::open()?;
    for address in config::addresses(call) {
        let wanted = Wanted::of(&settings, address, &owner);
        tables.put(&wanted, &owner)?;
        if address.is_ipv4() && settings.is_source_changed {
            let_localhost_out(address)?;
        }
    }
    connections::forget(&settings.mappings);
    Ok(previous.value())
}

pub(super) fn del(call: &Call<'_>) -> Result<()> {
    let owner = owner_of(call);
    let removed = Tables::open()?.remove(|found| found == owner)?;
    // Connections to ports that nobody has any more would otherwise go on to where the container was.
    if removed > 0
        && let Ok(settings) = Settings::read(call)
    {
        connections::forget(&settings.mappings);
    }
    Ok(())
}

pub(super) fn check(call: &Call<'_>) -> Result<()> {
    let settings = Settings::read(call)?;
    call.previous()?;
    if settings.mappings.is_empty() {
        return Ok(());
    }
    let owner = owner_of(call);
    let mut tables = Tables::open()?;
    for address in config::addresses(call) {
        let wanted = Wanted::of(&settings, address, &owner);
        if !tables.has(&wanted, &owner)? {
            let message =
                format!("not all rules are there that lead ports of the node to {address}");
            return Err(unlike(message));
        }
    }
    Ok(())
}

/// An ADD could be served if nftables answers.
pub(super) fn status(call: &Call<'_>) -> Result<()> {
    let unavailable = |error: Error| error.with_code(Code::NotAvailable);
    check_config(call).map_err(unavailable)?;
    let asked = Tables::open().and_then(|mut tables| tables.has(&Wanted::nothing(), ""));
    asked.map(drop).map_err(unavailable)
}

pub(super) fn gc(call: &Call<'_>) -> Result<()> {
    let network = owner::of_network(&call.network);
    let valid = call.valid.as_ref().map(|valid| {
        let texts = valid
            .iter()
            .map(|a| owner::text(&call.network, &a.container_id, &a.ifname));
        texts.collect::<Vec<_>>()
    });
    // Without a list, the configuration is refused.
    call.is_valid("", None)?;
    let valid = valid.unwrap_or_default();
    let is_gone = |found: &str| found.starts_with(&network) && !valid.iter().any(|v| v == found);
    let removed = Tables::open()?.remove(is_gone)?;
    if removed > 0 {
        tracing::info!(removed, "Rules for containers that are gone were removed");
    }
    Ok(())
}

pub(super) fn check_config(call: &Call<'_>) -> Result<()> {
    Settings::read(call).map(drop)
}

fn owner_of(call: &Call<'_>) -> String {
    let request = call.request;
    owner::text(&call.network, &request.container_id, &request.interface)
}

/// Lets packets from the loopback network leave through the interface to the container, where they get another source.
/// What a container sends there itself is stopped by the tables.
fn let_localhost_out(address: IpAddr) -> Result<()> {
    let failed = || kernel("the interface to the container cannot be found");
    let mut socket: Routing = sandbox::open()?;
    let device = socket.device_towards(address).map_err(failed())?;
    let link = match device {
        Some(device) => socket.link_at(device).map_err(failed())?,
        None => None,
    };
    let Some(link) = link else {
        return Ok(());
    };
    let setting = Sysctl::of_interface(Group::Ipv4, &link.name, "route_localnet");
    let set = setting.and_then(|setting| setting.write("1"));
    set.map_err(kernel(format!(
        "`{}` does not take packets of the loopback network",
        link.name
    )))
}
