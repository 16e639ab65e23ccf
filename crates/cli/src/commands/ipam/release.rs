//! `tortie ipam release`: takes back addresses that nobody uses.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use tortie_ipam::ReleaseIp;
use tortie_ipam::report::{State, check};
use tortie_store::{Error, Key, Kind, Precondition, Revision};

use super::report_file::{LeakedHandle, ReportFile};
use super::{Addresses, is_locked};
use crate::args::IpamRelease;

/// What all reports call leaked.
struct Leaks {
    addresses: BTreeMap<IpAddr, ReleaseIp>,
    handles: BTreeMap<String, LeakedHandle>,
}

pub(super) async fn run(args: &IpamRelease, addresses: &Addresses) -> Result<ExitCode> {
    match args.ip {
        Some(address) => release_one(address, args.force, addresses).await,
        None => release_reported(&args.from_report, args.force, addresses).await,
    }
}

async fn release_one(address: IpAddr, force: bool, addresses: &Addresses) -> Result<ExitCode> {
    let loaded = addresses.ipam.load().await?;
    let report = check(&loaded, &addresses.in_use().await?);
    let held = report
        .allocations
        .iter()
        .find(|held| held.address == address);
    let mut request = ReleaseIp::from(address);
    if let Some(held) = held {
        if let (State::InUse(user), false) = (&held.state, force) {
            bail!(
                "{address} is in use by {user}: releasing it would let another get the same address; remove its user, or \
                 give --force"
            );
        }
        // This allocation and no later one.
        request.sequence_number = Some(held.sequence_number);
    }
    let released = addresses.ipam.release(&[request]).await?;
    ensure!(
        released.unallocated.is_empty(),
        "IP address {address} is not assigned"
    );
    let mut out = anstream::stdout();
    writeln!(out, "Successfully released IP address {address}")?;
    Ok(ExitCode::SUCCESS)
}

async fn release_reported(
    files: &[PathBuf],
    force: bool,
    addresses: &Addresses,
) -> Result<ExitCode> {
    let information = addresses.cluster_information().await?;
    let mut out = anstream::stdout();
    let mut reports = Vec::new();
    for file in files {
        let report = ReportFile::read(file)?;
        let name = file.display();
        ensure!(
            report.cluster_guid == information.spec.cluster_guid,
            "the report {name} is of another cluster: {}",
            report.cluster_guid
        );
        ensure!(
            force || report.version == env!("CARGO_PKG_VERSION"),
            "the report {name} was written by version {} of tortie; write a new one, or give --force",
            report.version
        );
        reports.push(report);
    }
    let revision = &information.metadata.resource_version;
    ensure!(
        reports
            .iter()
            .any(|report| report.cluster_information_revision == *revision),
        "the reports are all older than the last change to the datastore's lock; write a new one while it is locked"
    );
    ensure!(
        force || is_locked(&information),
        "the datastore is not locked: lock it with `tortie datastore migrate lock`, write a new report, or give --force"
    );
    let leaks = common(&reports);
    if leaks.addresses.is_empty() {
        writeln!(out, "The reports have no leaked addresses.")?;
    } else {
        release_addresses(&mut out, &leaks, addresses).await?;
    }
    if leaks.handles.is_empty() {
        writeln!(out, "The reports have no leaked handles.")?;
    } else {
        delete_handles(&mut out, &leaks, addresses).await?;
    }
    if is_locked(&information) {
        writeln!(out, "You may now unlock the data store.")?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn release_addresses(
    out: &mut impl std::io::Write,
    leaks: &Leaks,
    addresses: &Addresses,
) -> Result<()> {
    // What came into use since the report was written stays, lock or no lock.
    let report = check(&addresses.ipam.load().await?, &addresses.in_use().await?);
    let is_used = |address: &IpAddr| {
        report
            .allocations
            .iter()
            .any(|held| held.address == *address && matches!(held.state, State::InUse(_)))
    };
    let (mut released, mut gone, mut used) = (0, 0, 0);
    let mut failures = Vec::new();
    for (address, request) in &leaks.addresses {
        if is_used(address) {
            used += 1;
            continue;
        }
        match addresses.ipam.release(std::slice::from_ref(request)).await {
            Ok(done) if done.unallocated.is_empty() => released += 1,
            Ok(_) => gone += 1,
            Err(error) => failures.push(format!("{address}: {error}")),
        }
    }
    writeln!(out, "Released {released} IPs successfully")?;
    for (count, what) in [
        (gone, "had been released already"),
        (used, "are in use by now and stay"),
    ] {
        if count > 0 {
            writeln!(out, "{count} addresses of the report {what}.")?;
        }
    }
    ensure!(
        failures.is_empty(),
        "{} addresses were not released, often because the report is out of date:\n  {}",
        failures.len(),
        failures.join("\n  ")
    );
    Ok(())
}

async fn delete_handles(
    out: &mut impl std::io::Write,
    leaks: &Leaks,
    addresses: &Addresses,
) -> Result<()> {
    let (mut deleted, mut skipped) = (0, 0);
    for handle in leaks.handles.values() {
        let key = Key::global(Kind::IpamHandle, handle.id.to_lowercase());
        let precondition = Precondition {
            revision: Some(Revision(handle.revision.clone())),
            uid: handle.uid.clone(),
        };
        match addresses.client.store().delete(&key, &precondition).await {
            Ok(_) => deleted += 1,
            Err(Error::NotFound(_) | Error::Conflict(_)) => skipped += 1,
            Err(error) => return Err(error.into()),
        }
    }
    writeln!(
        out,
        "Released {deleted} handles; {skipped} skipped that changed meanwhile."
    )?;
    Ok(())
}

/// What all reports call leaked, and nothing that changed between them.
fn common(reports: &[ReportFile]) -> Leaks {
    let mut common: Option<Leaks> = None;
    for report in reports {
        let held = report.allocations.values().flatten();
        let leaked = held.filter(|held| !held.in_use && !held.cooling_down);
        let addresses = leaked.map(|held| {
            let request = ReleaseIp {
                address: held.ip,
                handle: Some(held.handle.clone()).filter(|handle| !handle.is_empty()),
                sequence_number: held.sequence_number,
            };
            (held.ip, request)
        });
        let handles = report.leaked_handles.iter();
        let mut leaks = Leaks {
            addresses: addresses.collect(),
            handles: handles
                .map(|handle| (handle.id.clone(), handle.clone()))
                .collect(),
        };
        if let Some(before) = common {
            leaks
                .addresses
                .retain(|address, request| before.addresses.get(address) == Some(request));
            leaks
                .handles
                .retain(|id, handle| before.handles.get(id) == Some(handle));
        }
        common = Some(leaks);
    }
    common.unwrap_or(Leaks {
        addresses: BTreeMap::new(),
        handles: BTreeMap::new(),
    })
}
