//! Commands that need root say so first.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::args::{CniCommand, Command};

/// The capability to change the network, as a bit of those in effect.
const NET_ADMIN: u64 = 1 << 12;

/// Refuses a command that would fail later, before it has done anything.
pub(super) fn check(command: &Command) -> Result<()> {
    match command {
        Command::Agent(args) if !args.explain_config => need("agent", "changes the kernel's rules"),
        Command::Cni(cni) => match &cni.command {
            CniCommand::Install(args)
                if !args.dry_run && args.places.root.as_deref().is_none_or(is_system) =>
            {
                need("cni install", "writes to folders of the system")
            }
            CniCommand::Uninstall(args)
                if !args.dry_run && args.places.root.as_deref().is_none_or(is_system) =>
            {
                need("cni uninstall", "removes files from folders of the system")
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The same for `up` on a cluster; without one it needs no root.
pub(super) fn check_up() -> Result<()> {
    need("up", "changes the kernel's rules")
}

/// The same for `node verify`, whose errors have an exit code of their own.
pub(super) fn check_verify() -> Result<()> {
    need("node verify", "reads the kernel's rules")
}

/// The same for `node checksystem`, whose output would be all wrong.
pub(super) fn check_system() -> Result<()> {
    need(
        "node checksystem",
        "tries out what the kernel does in namespaces of its own",
    )
}

/// The same for `node diags`, which would miss most.
pub(super) fn check_diags() -> Result<()> {
    need("node diags", "reads the kernel's rules and logs")
}

/// The same for `bgp`, where it follows.
pub(super) fn check_bgp() -> Result<()> {
    need("bgp", "runs BIRD, which programs routes")
}

/// The same for `node shutdown`.
pub(super) fn check_shutdown() -> Result<()> {
    need("node shutdown", "has BIRD withdraw its routes")
}

/// The same for `node status`.
pub(super) fn check_node_status() -> Result<()> {
    need("node status", "asks BIRD through its socket")
}

fn need(command: &str, why: &str) -> Result<()> {
    if rustix::process::geteuid().is_root() || may_change_network() {
        return Ok(());
    }
    bail!("`tortie {command}` {why}, for which it needs root: use `sudo tortie {command}`");
}

fn is_system(root: &Path) -> bool {
    root == Path::new("/")
}

/// Whether a process of another user was given the right to change the network.
fn may_change_network() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    effective.is_some_and(|bits| bits & NET_ADMIN != 0)
}
