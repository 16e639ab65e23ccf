//! `tortie ipam split`: makes several pools of one.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use tortie_store::{Kind, Query, Resource};

use super::{Addresses, is_locked};
use crate::args::IpamSplit;

pub(super) async fn run(args: &IpamSplit, addresses: &Addresses) -> Result<ExitCode> {
    let information = addresses.cluster_information().await?;
    ensure!(
        is_locked(&information),
        "the datastore is not locked: lock it with `tortie datastore migrate lock`, so that no address is given out \
         meanwhile"
    );
    let name = pool_name(args, addresses).await?;
    let split = addresses.ipam.split(&name, args.parts).await?;
    let mut out = anstream::stdout();
    writeln!(
        out,
        "Split pool {name} ({}) into {} pools:",
        split.old.spec.cidr,
        split.new.len()
    )?;
    for pool in &split.new {
        writeln!(out, "  {} ({})", pool.metadata.name, pool.spec.cidr)?;
    }
    writeln!(out, "You may now unlock the data store.")?;
    Ok(ExitCode::SUCCESS)
}

async fn pool_name(args: &IpamSplit, addresses: &Addresses) -> Result<String> {
    let pools = addresses.client.list(&Query::all(Kind::IpPool)).await?;
    for item in &pools.items {
        let Resource::IpPool(pool) = item else {
            continue;
        };
        let name = &pool.metadata.name;
        let is_named = args.name.as_ref() == Some(name);
        let is_meant = args
            .cidr
            .is_some_and(|cidr| pool.spec.cidr == cidr.trunc().to_string());
        if is_named || is_meant {
            return Ok(name.clone());
        }
    }
    match (&args.name, args.cidr) {
        (Some(name), _) => bail!("there is no pool with the name {name}"),
        (None, Some(cidr)) => bail!("there is no pool with the network {cidr}"),
        (None, None) => bail!("say which pool to split with --name or --cidr"),
    }
}
