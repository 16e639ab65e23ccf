//! The settings of a workload's interface.

use super::{Error, Group, Result, Sysctl};

/// What the settings of a workload's interface depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload<'a> {
    /// Whether it is to have IPv4.
    pub ipv4: bool,
    /// Whether it is to have IPv6.
    pub ipv6: bool,
    /// The kernel's check of source addresses, which is for IPv4 alone: `0`, `1` or `2`.
    pub rp_filter: &'a str,
}

/// Makes the settings of a workload's interface: packets from it are forwarded, and all its questions for hardware
/// addresses answered.
///
/// Gives what failed though the workload can do without it. An interface that is gone is [`Error::MissingInterface`].
pub fn workload_interface(interface: &str, workload: Workload<'_>) -> Result<Vec<Error>> {
    // These are no interfaces: their settings are for others too.
    if ["all", "default"].contains(&interface) {
        let name = interface.to_owned();
        return Err(Error::NotAnInterface { name });
    }
    settings(interface, workload).map_err(|error| match error {
        error if error.is_missing() && !is_there(interface) => Error::MissingInterface {
            name: interface.to_owned(),
        },
        error => error,
    })
}

fn settings(interface: &str, workload: Workload<'_>) -> Result<Vec<Error>> {
    let set = |group, setting, value| Sysctl::of_interface(group, interface, setting)?.write(value);
    let mut tolerated = Vec::new();
    // Even where IPv6 is not wanted: nobody shall teach the node routes through this interface.
    if let Err(error) = set(Group::Ipv6, "accept_ra", "0")
        && (workload.ipv6 || !error.is_missing())
    {
        tolerated.push(error);
    }
    if workload.ipv4 {
        // For connections that are redirected to the node itself.
        set(Group::Ipv4, "route_localnet", "1")?;
        // Nobody else answers, so there is no reason to wait.
        tolerated.extend(set(Group::Ipv4Neighbours, "proxy_delay", "0").err());
        set(Group::Ipv4, "proxy_arp", "1")?;
        set(Group::Ipv4, "forwarding", "1")?;
        set(Group::Ipv4, "rp_filter", workload.rp_filter)?;
    }
    if workload.ipv6 {
        set(Group::Ipv6, "proxy_ndp", "1")?;
        set(Group::Ipv6, "forwarding", "1")?;
    }
    Ok(tolerated)
}

fn is_there(interface: &str) -> bool {
    [Group::Ipv4, Group::Ipv6].into_iter().any(|group| {
        Sysctl::of_interface(group, interface, "forwarding").is_ok_and(|sysctl| sysctl.exists())
    })
}
