//! Comparing what there is with what was made.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::Path;

use ipnet::IpNet;
use tortie_kernel::link::Link;
use tortie_kernel::namespace;
use tortie_kernel::route::{MAIN_TABLE, Route, Socket};

use super::{GATEWAY_IPV4, GATEWAY_IPV6, kernel, open_namespace};
use crate::error::Result;

/// What should be there.
#[derive(Debug, Clone)]
pub(crate) struct Expected<'a> {
    /// The container's network namespace.
    pub(crate) namespace: &'a Path,
    /// The name of the container's end.
    pub(crate) inside_name: &'a str,
    /// Its hardware address; empty if it is not known.
    pub(crate) mac: &'a str,
    /// The name of the node's end.
    pub(crate) host_name: &'a str,
    /// The container's addresses.
    pub(crate) addresses: &'a [IpAddr],
    /// Whether the node sends to the container.
    pub(crate) is_routed: bool,
}

/// What is not as it should be, in words.
pub(crate) fn check(expected: &Expected<'_>) -> Result<Vec<String>> {
    let container = open_namespace(expected.namespace)?;
    let mut problems = check_host(expected)?;
    let inside = namespace::run_in(container.as_fd(), || check_inside(expected));
    problems.extend(inside.map_err(kernel(
        "the container's network namespace cannot be entered",
    ))??);
    Ok(problems)
}

struct Seen {
    link: Option<Link>,
    routes: Vec<Route>,
}

fn look(name: &str) -> Result<Seen> {
    let look = || {
        let mut socket = Socket::open()?;
        let link = socket.link(name)?;
        let routes = socket.routes(MAIN_TABLE)?;
        Ok(Seen { link, routes })
    };
    look().map_err(kernel::<tortie_kernel::route::Error>(format!(
        "`{name}` cannot be read"
    )))
}

fn check_host(expected: &Expected<'_>) -> Result<Vec<String>> {
    let name = expected.host_name;
    let Seen { link, routes } = look(name)?;
    let Some(link) = link else {
        return Ok(vec![format!("the node has no interface `{name}`")]);
    };
    let mut problems = Vec::new();
    if !link.is_up {
        problems.push(format!("`{name}` on the node is down"));
    }
    let sent_to = expected.addresses.iter().filter(|_| expected.is_routed);
    for address in sent_to {
        let leads_there = |route: &Route| {
            route.destination == IpNet::from(*address) && route.device == Some(link.index)
        };
        if !routes.iter().any(leads_there) {
            problems.push(format!(
                "the node has no route to {address} through `{name}`"
            ));
        }
    }
    Ok(problems)
}

fn check_inside(expected: &Expected<'_>) -> Result<Vec<String>> {
    let name = expected.inside_name;
    let Seen { link, routes } = look(name)?;
    let Some(link) = link else {
        return Ok(vec![format!("the container has no interface `{name}`")]);
    };
    let mut problems = Vec::new();
    if !link.is_up {
        problems.push(format!("`{name}` in the container is down"));
    }
    let mac = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
    if !expected.mac.is_empty() && !expected.mac.eq_ignore_ascii_case(&mac) {
        problems.push(format!(
            "`{name}` in the container has the hardware address {mac}, not {}",
            expected.mac
        ));
    }
    for address in expected.addresses {
        if !link.addresses.iter().any(|a| a.addr() == *address) {
            problems.push(format!(
                "`{name}` in the container has no address {address}"
            ));
        }
    }
    for gateway in [GATEWAY_IPV4, GATEWAY_IPV6] {
        let is_used = |a: &IpAddr| a.is_ipv4() == gateway.is_ipv4();
        let leads_there =
            |route: &Route| route.gateway == Some(gateway) && route.device == Some(link.index);
        if expected.addresses.iter().any(is_used) && !routes.iter().any(leads_there) {
            problems.push(format!("the container has no route through {gateway}"));
        }
    }
    Ok(problems)
}
