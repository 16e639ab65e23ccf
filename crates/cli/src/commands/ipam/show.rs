//! `tortie ipam show`: how full pools are, and who has an address.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::Result;
use tortie_api::ipam_configuration::VmAddressPersistence;
use tortie_ipam::attribute;
use tortie_ipam::report::{InUse, check};

use super::Addresses;
use crate::args::IpamShow;
use crate::output::bordered::{bordered, number, share};

pub(super) async fn run(args: &IpamShow, addresses: &Addresses) -> Result<ExitCode> {
    let text = if let Some(address) = args.ip {
        holder(address, addresses).await?
    } else if args.show_borrowed {
        borrowed(addresses).await?
    } else if args.show_configuration {
        configuration(addresses).await?
    } else {
        utilization(args.show_blocks, addresses).await?
    };
    write!(anstream::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

async fn holder(address: IpAddr, addresses: &Addresses) -> Result<String> {
    let holder = match addresses.ipam.assignment(address).await {
        Ok(holder) => holder,
        Err(error) if error.is_not_found() => return Ok(format!("{address} is not assigned\n")),
        Err(error) => return Err(error.into()),
    };
    let handle = holder.handle.unwrap_or_else(|| "<none>".to_owned());
    let mut text = format!("IP {address} is in use\nHandle ID: {handle}\n");
    if holder.attributes.is_empty() {
        text.push_str("No Active Owner attributes defined\n");
    } else {
        text.push_str(&facts("Active Owner Attributes", &holder.attributes));
    }
    if !holder.alternate_attributes.is_empty() {
        let alternate = facts("Alternate Owner Attributes", &holder.alternate_attributes);
        text.push_str(&alternate);
    }
    Ok(text)
}

fn facts(title: &str, attributes: &BTreeMap<String, String>) -> String {
    let lines = attributes
        .iter()
        .map(|(name, value)| format!("  {name}: {value}\n"));
    format!("{title}:\n{}", lines.collect::<String>())
}

async fn utilization(with_blocks: bool, addresses: &Addresses) -> Result<String> {
    let pools = addresses.ipam.utilization(&[]).await?;
    let has_reserved = pools.iter().any(|pool| pool.reserved > 0);
    let row = |kind: &str, cidr: String, [total, used, reserved, free]: [u128; 4]| {
        let [total, used, reserved, free] = [total, used, reserved, free].map(approximate);
        let mut cells = vec![kind.to_owned(), cidr, number(total), share(used, total)];
        if has_reserved {
            cells.push(share(reserved, total));
        }
        cells.push(share(free, total));
        cells
    };
    let mut rows = Vec::new();
    for pool in &pools {
        if pool.name != tortie_ipam::PoolUtilization::ORPHANED {
            let counts = [pool.capacity, pool.in_use, pool.reserved, pool.available];
            rows.push(row("IP Pool", pool.net.to_string(), counts));
        }
        if with_blocks {
            rows.extend(pool.blocks.iter().map(|block| {
                let counts = [
                    block.capacity,
                    block.in_use,
                    block.reserved,
                    block.available,
                ];
                row("Block", block.net.to_string(), counts)
            }));
        }
    }
    let mut headings = vec!["GROUPING", "CIDR", "IPS TOTAL", "IPS IN USE"];
    if has_reserved {
        headings.push("IPS RESERVED");
    }
    headings.push("IPS FREE");
    Ok(bordered(&headings, &rows))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "five digits of the number are shown"
)]
fn approximate(count: u128) -> f64 {
    count as f64
}

async fn borrowed(addresses: &Addresses) -> Result<String> {
    let loaded = addresses.ipam.load().await?;
    let report = check(&loaded, &InUse::default());
    let mut rows = Vec::new();
    let mut unclassified = 0;
    for held in &report.allocations {
        let get = |name: &str| held.attributes.get(name).cloned();
        let Some(node) = get(attribute::NODE) else {
            unclassified += 1;
            continue;
        };
        if !held.is_borrowed {
            continue;
        }
        let namespaced = |name: String| {
            let namespace = get(attribute::NAMESPACE).unwrap_or_default();
            format!("{namespace}/{name}")
        };
        let (sort, holder) = match (get(attribute::VMI_NAME), get(attribute::POD)) {
            (Some(name), _) => ("vmi".to_owned(), namespaced(name)),
            (None, Some(name)) => ("pod".to_owned(), namespaced(name)),
            (None, None) => (get(attribute::TYPE).unwrap_or_default(), String::new()),
        };
        let owner = held.block_owner.as_ref();
        rows.push(vec![
            held.address.to_string(),
            node,
            held.block.to_string(),
            owner.map_or(String::new(), |owner| owner.name.clone()),
            sort,
            holder,
        ]);
    }
    let headings = [
        "IP",
        "BORROWING-NODE",
        "BLOCK",
        "BLOCK OWNER",
        "TYPE",
        "ALLOCATED-TO",
    ];
    let table = bordered(&headings, &rows);
    if unclassified == 0 {
        return Ok(table);
    }
    Ok(format!(
        "{table}\nNote: found {unclassified} IP allocations without an explicit node association. Unable to determine if \
         they are borrowed.\n"
    ))
}

async fn configuration(addresses: &Addresses) -> Result<String> {
    let spec = addresses.ipam.configuration().await?;
    let persistence = match spec.kube_virt_vm_address_persistence {
        Some(VmAddressPersistence::Disabled) => "\"Disabled\"",
        _ => "\"Enabled\"",
    };
    let rows = [
        ("StrictAffinity", spec.strict_affinity.to_string()),
        ("AutoAllocateBlocks", spec.auto_allocate_blocks.to_string()),
        ("MaxBlocksPerHost", spec.max_blocks_per_host.to_string()),
        ("KubeVirtVMAddressPersistence", persistence.to_owned()),
        ("IPCooldownSeconds", spec.ip_cooldown_seconds.to_string()),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    Ok(bordered(&["PROPERTY", "VALUE"], &rows))
}
