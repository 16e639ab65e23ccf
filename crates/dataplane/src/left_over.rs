//! What another data plane, or the other kind of iptables, left behind. Its rules would go on to decide about packets by policies of long ago.

use tortie_kernel::route::{MAIN_TABLE, Protocol, Route, Socket};
use tortie_rules::{IpVersion, Table};

use crate::change::{Batch, Driver as _, Error, Part};
use crate::iptables::{Backend, IptablesDriver, Options, Variant};
use crate::nftables::NftablesDriver;

/// Removes what the parts of the kernel that are not in use have of ours, once the one in use has everything. Says
/// whether there may have been something.
///
/// Parts of the kernel that are not loaded are left alone: looking would load them, and they hold nothing.
pub fn remove_left_overs(in_use: Part, version: IpVersion) -> Result<bool, Error> {
    match in_use {
        Part::Nftables => {
            let all = Variant::BOTH.map(|variant| remove_iptables(version, variant));
            all.into_iter().try_fold(false, |any, one| Ok(any | one?))
        }
        Part::Iptables(variant) => {
            let nftables = remove_nftables(version);
            let iptables = remove_iptables_rules(version, variant.other());
            Ok(nftables? | iptables?)
        }
    }
}

/// What was removed, and what could not be.
#[derive(Debug, Default)]
pub struct Removed {
    /// What is gone, in words.
    pub what: Vec<String>,
    /// What failed.
    pub errors: Vec<Error>,
}

/// The tunnel devices that are ours.
const DEVICES: &[&str] = &["vxlan.calico", "vxlan-v6.calico"];

/// What tells our routes from others.
#[derive(Debug, Clone)]
pub struct OurRoutes {
    /// The protocol number that routes of workloads have.
    pub protocol: Protocol,
    /// What the names of workloads' interfaces start with.
    pub prefixes: Vec<String>,
}

/// Removes everything of ours from the network namespace of the calling thread: rules and sets of all data planes, routes
/// and tunnel devices. Interfaces of workloads stay: they are not ours to take.
pub fn remove_everything(ours: &OurRoutes) -> Removed {
    let mut removed = Removed::default();
    for version in [IpVersion::V4, IpVersion::V6] {
        removed.note(remove_nftables(version), || {
            format!("nftables rules for {version:?}")
        });
        for variant in [Variant::Legacy, Variant::Nft] {
            let what = || format!("iptables rules for {version:?} ({variant:?}), if any were ours");
            removed.note(remove_iptables(version, variant), what);
        }
    }
    match Socket::open() {
        Err(error) => removed.errors.push(error.into()),
        Ok(mut socket) => {
            // Before the devices, with which their routes would go unseen.
            let routes = remove_routes(&mut socket, ours);
            match routes {
                Ok(0) => {}
                Ok(count) => removed.what.push(format!("{count} routes")),
                Err(error) => removed.errors.push(error),
            }
            for device in DEVICES {
                let gone = remove_device(&mut socket, device);
                removed.note(gone, || format!("the device {device}"));
            }
        }
    }
    removed
}

impl Removed {
    fn note(&mut self, outcome: Result<bool, Error>, what: impl FnOnce() -> String) {
        match outcome {
            Ok(true) => self.what.push(what()),
            Ok(false) => {}
            Err(error) => self.errors.push(error),
        }
    }
}

/// Routes of workloads may have the number that routes made by hand have: those are ours only on interfaces of workloads.
fn remove_routes(socket: &mut Socket, ours: &OurRoutes) -> Result<usize, Error> {
    let links = socket.links()?;
    let workloads: Vec<u32> = links
        .iter()
        .filter(|link| {
            ours.prefixes
                .iter()
                .any(|prefix| link.name.starts_with(prefix.as_str()))
        })
        .map(|link| link.index)
        .collect();
    let is_ours = |route: &Route| {
        let is_of_workload = route
            .device
            .is_some_and(|device| workloads.contains(&device));
        let is_by_hand = ours.protocol == Protocol::BOOT && !is_of_workload;
        route.protocol == Protocol::CALICO || (route.protocol == ours.protocol && !is_by_hand)
    };
    let routes = socket.routes(MAIN_TABLE)?;
    let routes: Vec<_> = routes.iter().filter(|route| is_ours(route)).collect();
    for route in &routes {
        match socket.execute(|batch| batch.delete_route(route)) {
            Err(error) if !error.is_missing() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(routes.len())
}

fn remove_device(socket: &mut Socket, name: &str) -> Result<bool, Error> {
    let links = socket.links()?;
    let Some(link) = links.iter().find(|link| link.name == name) else {
        return Ok(false);
    };
    socket.execute(|batch| batch.delete_link(link.index))?;
    Ok(true)
}

/// Says whether there was something.
fn remove_nftables(version: IpVersion) -> Result<bool, Error> {
    if !NftablesDriver::is_usable() {
        return Ok(false);
    }
    let mut driver = NftablesDriver::open(version)?;
    let is_there = driver.is_there()?;
    if is_there {
        driver.remove_all()?;
    }
    Ok(is_there)
}

/// Says whether there may have been something.
fn remove_iptables(version: IpVersion, variant: Variant) -> Result<bool, Error> {
    let Some(mut driver) = iptables_with_rules(version, variant)? else {
        return Ok(false);
    };
    let nothing = Batch {
        is_full: true,
        ..Batch::default()
    };
    driver.apply(&nothing)?;
    Ok(true)
}

/// The same, without the sets, which are in use by the other kind of iptables.
fn remove_iptables_rules(version: IpVersion, variant: Variant) -> Result<bool, Error> {
    let Some(mut driver) = iptables_with_rules(version, variant)? else {
        return Ok(false);
    };
    driver.remove_rules()?;
    Ok(true)
}

/// A kind of iptables that may have rules.
fn iptables_with_rules(
    version: IpVersion,
    variant: Variant,
) -> Result<Option<IptablesDriver>, Error> {
    let may_have_rules = match variant {
        Variant::Legacy => has_legacy_tables(version),
        Variant::Nft => {
            NftablesDriver::is_usable()
                && NftablesDriver::open(version)?.has_tables(&Table::ALL.map(Table::name))?
        }
    };
    if !may_have_rules {
        return Ok(None);
    }
    let options = Options {
        backend: Backend::Only(variant),
        ..Options::new(version)
    };
    // Without the programs there is nobody who could have made rules with them; and those of the other kind, which are
    // taken instead, would remove what is in use.
    let driver = IptablesDriver::new(&options).ok();
    Ok(driver.filter(|driver| driver.variant() == variant))
}

/// Whether legacy iptables has any tables in this network namespace.
fn has_legacy_tables(version: IpVersion) -> bool {
    let file = match version {
        IpVersion::V4 => "/proc/thread-self/net/ip_tables_names",
        IpVersion::V6 => "/proc/thread-self/net/ip6_tables_names",
    };
    std::fs::read(file).is_ok_and(|names| !names.is_empty())
}
