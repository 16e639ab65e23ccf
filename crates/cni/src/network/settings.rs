//! The kernel's settings for both ends.

use std::thread;
use std::time::{Duration, Instant};

use tortie_error::Causes;
use tortie_kernel::sysctl::{self, Group, Sysctl};

use super::kernel;
use crate::error::Result;

/// How long the settings of a new interface may be missing.
const PATIENCE: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_millis(1);

/// The node's end: packets from it are forwarded, and all its questions for hardware addresses answered.
///
/// How sources are checked is the agent's to say.
pub(super) fn host(interface: &str, ipv4: bool, ipv6: bool) -> Result<()> {
    let set = |group, setting, value| set(interface, group, setting, value);
    if ipv4 {
        // For connections that are redirected to the node itself.
        set(Group::Ipv4, "route_localnet", "1")?;
        // Nobody else answers, so there is no reason to wait.
        tolerate(set(Group::Ipv4Neighbours, "proxy_delay", "0"));
        set(Group::Ipv4, "proxy_arp", "1")?;
        set(Group::Ipv4, "forwarding", "1")?;
    }
    if ipv6 {
        set(Group::Ipv6, "accept_dad", "0")?;
        set(Group::Ipv6, "disable_ipv6", "0")?;
        set(Group::Ipv6, "proxy_ndp", "1")?;
        set(Group::Ipv6, "forwarding", "1")?;
    }
    // Even where IPv6 is not wanted: nobody shall teach the node routes through this interface.
    tolerate(set(Group::Ipv6, "accept_ra", "0"));
    Ok(())
}

/// The container's end, before it is up: IPv6 addresses are used at once, as nobody else can have them.
pub(super) fn before_up(interface: &str, ipv6: bool) -> Result<()> {
    if ipv6 {
        for scope in ["all", "default", "lo"] {
            set(scope, Group::Ipv6, "disable_ipv6", "0")?;
        }
        set(interface, Group::Ipv6, "accept_dad", "0")?;
    }
    Ok(())
}

/// Whether the container may forward packets.
pub(super) fn forwarding(ipv4: bool, ipv6: bool, allowed: bool) -> Result<()> {
    let value = if allowed { "1" } else { "0" };
    let write = |path| Sysctl::new(path).write(value).map_err(failed());
    if ipv4 {
        write("net/ipv4/ip_forward")?;
    }
    if ipv6 {
        write("net/ipv6/conf/all/forwarding")?;
    }
    Ok(())
}

/// Where an interface of the same name has just been deleted, the kernel may show the settings of neither for a moment.
fn set(interface: &str, group: Group, setting: &'static str, value: &str) -> Result<()> {
    let write = |interface| {
        let sysctl = Sysctl::of_interface(group, interface, setting);
        sysctl.and_then(|sysctl| sysctl.write(value))
    };
    // It has such settings at all.
    let is_known =
        || Sysctl::of_interface(group, "default", setting).is_ok_and(|sysctl| sysctl.exists());
    let end = Instant::now() + PATIENCE;
    loop {
        match write(interface) {
            Err(error) if error.is_missing() && Instant::now() < end && is_known() => {
                thread::sleep(INTERVAL);
            }
            written => return written.map_err(failed()),
        }
    }
}

fn failed() -> impl FnOnce(sysctl::Error) -> crate::error::Error {
    kernel("a setting of the kernel cannot be made")
}

fn tolerate(outcome: Result<()>) {
    if let Err(error) = outcome {
        tracing::debug!(
            error = %Causes(&error),
            "A setting that containers can do without was not made"
        );
    }
}
