//! `tortie ipam configure`: how addresses are given out.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use tortie_api::ipam_configuration::VmAddressPersistence;

use super::Addresses;
use crate::args::IpamConfigure;

pub(super) async fn run(args: &IpamConfigure, addresses: &Addresses) -> Result<ExitCode> {
    let mut spec = addresses.ipam.configuration().await?;
    let mut told = Vec::new();
    if let Some(strict) = args.strictaffinity {
        spec.strict_affinity = strict;
        told.push(format!("StrictAffinity to: {strict}"));
    }
    if let Some(blocks) = args.max_blocks_per_host {
        if blocks < 0 {
            bail!("--max-blocks-per-host={blocks}: expected 0 or more");
        }
        spec.max_blocks_per_host = blocks;
        told.push(format!("MaxBlocksPerHost to: {blocks}"));
    }
    if let Some(persistence) = &args.kubevirt_ip_persistence {
        let parsed = match persistence.to_ascii_lowercase().as_str() {
            "enabled" => VmAddressPersistence::Enabled,
            "disabled" => VmAddressPersistence::Disabled,
            _ => bail!("--kubevirt-ip-persistence={persistence}: expected Enabled or Disabled"),
        };
        spec.kube_virt_vm_address_persistence = Some(parsed);
        told.push(format!("KubeVirtVMAddressPersistence to: {persistence}"));
    }
    if let Some(seconds) = args.ip_cooldown_seconds {
        spec.ip_cooldown_seconds = seconds;
        told.push(format!("IPCooldownSeconds to: {seconds}"));
    }
    if told.is_empty() {
        bail!("at least one configuration option must be specified");
    }
    addresses.ipam.set_configuration(&spec).await?;
    let mut out = anstream::stdout();
    for setting in told {
        writeln!(out, "Successfully set {setting}")?;
    }
    Ok(ExitCode::SUCCESS)
}
