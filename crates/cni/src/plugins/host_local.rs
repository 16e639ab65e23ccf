//! `host-local`: gives addresses from ranges that belong to this node, and keeps in files which are taken.

mod config;
mod range;
mod resolver;
mod store;

use std::net::IpAddr;

use serde_json::Value;

use self::config::Settings;
use self::range::Range;
use self::store::Store;
use super::{Call, unlike};
use crate::error::{Code, Error, Result};
use crate::result::{Address, CniResult};

pub(super) fn add(call: &Call<'_>) -> Result<Value> {
    let settings = Settings::read(call)?;
    let dns = settings.dns()?;
    let store = Store::open(&settings.folder)?;
    let mut taken = Vec::new();
    let ips =
        assign(call, &settings, &store, &mut taken).inspect_err(|_| store.give_back(&taken))?;
    let result = CniResult {
        ips,
        routes: settings.routes,
        dns,
        ..CniResult::default()
    };
    Ok(result.to_json(call.version))
}

pub(super) fn del(call: &Call<'_>) -> Result<()> {
    let folder = Settings::folder_of(call);
    if !folder.is_dir() {
        return Ok(());
    }
    let request = call.request;
    Store::open(&folder)?.release(&request.container_id, &request.interface)
}

pub(super) fn check(call: &Call<'_>) -> Result<()> {
    let settings = Settings::read(call)?;
    let request = call.request;
    let held = Store::open(&settings.folder)?.held(&request.container_id, &request.interface)?;
    if held.is_empty() {
        let message = format!(
            "no address is kept for the container `{}` in {}",
            request.container_id,
            settings.folder.display()
        );
        return Err(unlike(message));
    }
    Ok(())
}

/// An ADD could be served if an address of each set is free.
pub(super) fn status(call: &Call<'_>) -> Result<()> {
    let unavailable = |error: Error| error.with_code(Code::NotAvailable);
    let settings = Settings::read(call).map_err(unavailable)?;
    let store = Store::open(&settings.folder).map_err(unavailable)?;
    for set in &settings.sets {
        let mut candidates = range::candidates(set, None);
        if !candidates.any(|(address, _)| store.is_free(address)) {
            return Err(unavailable(used_up(set)));
        }
    }
    Ok(())
}

pub(super) fn gc(call: &Call<'_>) -> Result<()> {
    let folder = Settings::folder_of(call);
    if !folder.is_dir() {
        return Ok(());
    }
    for kept in Store::open(&folder)?.kept()? {
        if !call.is_valid(&kept.container, kept.interface.as_deref())? {
            let (address, container) = (kept.address, &kept.container);
            tracing::info!(%address, container, "An address of a container that is gone is given back");
            kept.give_back()?;
        }
    }
    Ok(())
}

pub(super) fn check_config(call: &Call<'_>) -> Result<()> {
    Settings::read(call).map(drop)
}

/// An address of each set. What is taken is told, also if this fails.
fn assign(
    call: &Call<'_>,
    settings: &Settings,
    store: &Store,
    taken: &mut Vec<IpAddr>,
) -> Result<Vec<Address>> {
    let request = call.request;
    let mut wanted = settings.wanted.clone();
    let held = store.held(&request.container_id, &request.interface)?;
    let mut found = Vec::new();
    for (place, set) in settings.sets.iter().enumerate() {
        let is_inside = |address: &IpAddr| set.iter().any(|range| range.contains(*address));
        let asked = wanted
            .iter()
            .position(is_inside)
            .map(|at| wanted.remove(at));
        if let (None, Some(address)) = (asked, held.iter().copied().find(is_inside)) {
            let message = format!(
                "{address} has been given to the container `{}` already",
                request.container_id
            );
            return Err(Error::new(Code::Address, message));
        }
        let mut take = |address: IpAddr, range: &Range| -> Result<bool> {
            let is_taken = store.take(address, place, &request.container_id, &request.interface)?;
            if is_taken {
                taken.push(address);
                found.push(range.address(address));
            }
            Ok(is_taken)
        };
        if let Some(address) = asked {
            take_this(set, address, &mut take)?;
            continue;
        }
        let last = store.last(place);
        let mut is_found = false;
        for (address, range) in range::candidates(set, last) {
            is_found = take(address, range)?;
            if is_found {
                break;
            }
        }
        if !is_found {
            return Err(used_up(set));
        }
    }
    if wanted.is_empty() {
        return Ok(found);
    }
    let wanted: Vec<String> = wanted.iter().map(IpAddr::to_string).collect();
    let message = format!(
        "addresses that are asked for are in no range: {}",
        wanted.join(", ")
    );
    Err(Error::new(Code::Address, message))
}

fn take_this(
    set: &[Range],
    address: IpAddr,
    take: &mut impl FnMut(IpAddr, &Range) -> Result<bool>,
) -> Result<()> {
    let refused = |why: &str| {
        let message = format!("the address {address}, which is asked for, {why}");
        Err(Error::new(Code::Address, message))
    };
    match set.iter().find(|range| range.contains(address)) {
        Some(range) if range.gateway == address => refused("is that of the gateway"),
        Some(range) if take(address, range)? => Ok(()),
        _ => refused("is taken"),
    }
}

fn used_up(set: &[Range]) -> Error {
    let set: Vec<String> = set.iter().map(Range::to_string).collect();
    let message = format!("no address is free in {}", set.join(", "));
    Error::new(Code::Address, message)
}
