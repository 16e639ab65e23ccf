//! The container's interface: a pair of which one end is the container's and the other the node's.
//!
//! The container sends everything to an address that nobody has, 169.254.1.1, at the hardware address that all node's ends
//! have; for IPv6, to the address that the kernel makes of that hardware address. The container is told the former: a node
//! answers questions about it only while it has a route to it, which on most is the default route.
//!
//! # Invariants
//! - The calling thread is in the node's network namespace, and stays there.
//! - Whatever fails, [`tear_down_host`] leaves nothing of the pair.

mod check;
mod removal;
mod settings;

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tortie_error::Causes;
use tortie_kernel::link::{Link, Mac, Veth};
use tortie_kernel::namespace;
use tortie_kernel::route::{self, MAIN_TABLE, Neighbour, Route, Scope, Socket};

use crate::error::{Code, Error, Result};

pub(crate) use check::{Expected, check};
pub(crate) use removal::Removal;
pub use removal::{Waiting, delete_by_program_name};

/// Where containers send everything for IPv4.
pub(crate) const GATEWAY_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1));

/// The address that the kernel makes of [`Mac::CALICO`].
pub(crate) const GATEWAY_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::new(
    0xfe80, 0, 0, 0, 0xecee, 0xeeff, 0xfeee, 0xeeee,
));

/// How long the kernel may take to give the node's end its IPv6 address.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(1);
const ADDRESS_INTERVAL: Duration = Duration::from_millis(1);

/// How often the node's end is given its hardware address, where something else on the machine changes it.
const MAC_ATTEMPTS: usize = 50;
const MAC_INTERVAL: Duration = Duration::from_millis(100);

/// What is to be made.
#[derive(Debug, Clone)]
pub(crate) struct Plan<'a> {
    /// The name of the node's end.
    pub(crate) host_name: &'a str,
    /// The name of the container's end.
    pub(crate) inside_name: &'a str,
    /// The largest packet.
    pub(crate) mtu: Option<u32>,
    /// Queues in each direction.
    pub(crate) queues: u32,
    /// The container's addresses.
    pub(crate) addresses: &'a [IpAddr],
    /// What the container sends to the node.
    pub(crate) routes: &'a [IpNet],
    /// Whether the node sends to the container.
    pub(crate) is_routed: bool,
    /// The hardware address of the container's end.
    pub(crate) mac: Option<Mac>,
    /// The container may forward packets.
    pub(crate) allow_forwarding: bool,
}

impl Plan<'_> {
    fn has(&self, is_ipv4: bool) -> bool {
        self.addresses.iter().any(|a| a.is_ipv4() == is_ipv4)
    }
}

/// Opens the network namespace of a container, which must not be the node's own.
pub(crate) fn open_namespace(path: &Path) -> Result<File> {
    let shown = path.display();
    let wrong = |message: String| Error::of(Code::InvalidNamespace, message);
    let file = namespace::open(path).map_err(wrong(format!(
        "the network namespace {shown} cannot be opened"
    )))?;
    let is_own = namespace::is_own(&file).map_err(wrong(format!(
        "the network namespace {shown} cannot be read"
    )))?;
    if is_own {
        let message = format!("CNI_NETNS is {shown}, which is the plugin's own network namespace");
        return Err(Error::new(Code::InvalidNamespace, message));
    }
    Ok(file)
}

/// The routes of a container that is told of no others: everything.
pub(crate) fn default_routes() -> Vec<IpNet> {
    vec![Ipv4Net::default().into(), Ipv6Net::default().into()]
}

/// Makes the pair, in place of one whose node's end has the same name. Gives the hardware address in the container.
pub(crate) fn set_up(plan: &Plan<'_>, container: &File) -> Result<Mac> {
    let mut socket = Socket::open().map_err(kernel("the kernel's routing cannot be reached"))?;
    let host = create(&mut socket, plan, container)?;
    settings::host(plan.host_name, plan.has(true), plan.has(false))?;
    socket
        .execute(|batch| batch.set_link_up(host.index, true))
        .map_err(kernel(format!("`{}` cannot be taken up", plan.host_name)))?;
    let inside = namespace::run_in(container.as_fd(), || set_up_inside(plan, host.mac));
    let mac = inside.map_err(kernel(
        "the container's network namespace cannot be entered",
    ))??;
    if plan.has(false) {
        await_gateway(&mut socket, plan.host_name)?;
    }
    if plan.is_routed {
        add_host_routes(&mut socket, plan, host.index)?;
    }
    Ok(mac)
}

fn create(socket: &mut Socket, plan: &Plan<'_>, container: &File) -> Result<Link> {
    let veth = Veth {
        mac: Some(Mac::CALICO),
        peer_mac: plan.mac,
        mtu: plan.mtu,
        queues: Some(plan.queues),
        ..Veth::new(plan.host_name, plan.inside_name, container.as_fd())
    };
    let mut created = socket.execute(|batch| batch.create_veth_pair(&veth));
    if created.as_ref().is_err_and(route::Error::is_existing) && delete(socket, plan.host_name)? {
        tracing::info!(
            interface = plan.host_name,
            "An old interface of the same name was deleted"
        );
        created = socket.execute(|batch| batch.create_veth_pair(&veth));
    }
    created.map_err(kernel(format!(
        "the interfaces `{}` on the node and `{}` in the container cannot be made",
        plan.host_name, plan.inside_name
    )))?;
    let mut link = find(socket, plan.host_name)?;
    // Programs that give interfaces lasting hardware addresses may be quicker than we are.
    for _ in 0..MAC_ATTEMPTS {
        if link.mac == Some(Mac::CALICO) {
            break;
        }
        let index = link.index;
        if let Err(error) = socket.execute(|batch| batch.set_link_mac(index, Mac::CALICO)) {
            tracing::warn!(
                error = %Causes(&error),
                interface = plan.host_name,
                "The hardware address stays the kernel's"
            );
            break;
        }
        thread::sleep(MAC_INTERVAL);
        link = find(socket, plan.host_name)?;
    }
    Ok(link)
}

/// The container's part, in its namespace.
fn set_up_inside(plan: &Plan<'_>, gateway: Option<Mac>) -> Result<Mac> {
    let mut socket = Socket::open().map_err(kernel("the kernel's routing cannot be reached"))?;
    let name = plan.inside_name;
    settings::before_up(name, plan.has(false))?;
    let link = find(&mut socket, name)?;
    let device = Some(link.index);
    socket
        .execute(|batch| {
            batch.set_link_up(link.index, true);
            for address in plan.addresses {
                batch.add_address(link.index, (*address).into());
            }
            if plan.has(true) {
                batch.add_route(&Route {
                    device,
                    scope: Scope::LINK,
                    ..Route::to(GATEWAY_IPV4.into())
                });
            }
            if let Some(mac) = gateway.filter(|_| plan.has(true)) {
                batch.set_neighbour(&Neighbour {
                    device: link.index,
                    address: GATEWAY_IPV4,
                    mac,
                });
            }
            for destination in plan.routes {
                let is_ipv4 = destination.addr().is_ipv4();
                if plan.has(is_ipv4) {
                    batch.add_route(&Route {
                        device,
                        gateway: Some(if is_ipv4 { GATEWAY_IPV4 } else { GATEWAY_IPV6 }),
                        ..Route::to(*destination)
                    });
                }
            }
        })
        .map_err(kernel(format!(
            "`{name}` in the container cannot be set up"
        )))?;
    settings::forwarding(plan.has(true), plan.has(false), plan.allow_forwarding)?;
    link.mac
        .ok_or_else(|| Error::new(Code::Kernel, format!("`{name}` has no hardware address")))
}

/// Waits until the node answers for the address that containers send to.
fn await_gateway(socket: &mut Socket, host_name: &str) -> Result<()> {
    let end = Instant::now() + ADDRESS_PATIENCE;
    loop {
        let link = find(socket, host_name)?;
        if link.addresses.iter().any(|a| a.addr() == GATEWAY_IPV6) {
            return Ok(());
        }
        if Instant::now() > end {
            let has = &link.addresses;
            let message = format!(
                "`{host_name}` did not get the address {GATEWAY_IPV6} in time, it has {has:?}: is IPv6 off on this node?"
            );
            return Err(Error::new(Code::Kernel, message));
        }
        thread::sleep(ADDRESS_INTERVAL);
    }
}

/// Lets the node send to the container. The agent may have been quicker.
fn add_host_routes(socket: &mut Socket, plan: &Plan<'_>, device: u32) -> Result<()> {
    for address in plan.addresses {
        let route = Route {
            device: Some(device),
            scope: Scope::LINK,
            ..Route::to((*address).into())
        };
        match socket.execute(|batch| batch.add_route(&route)) {
            Ok(()) => {}
            Err(error) if error.is_existing() => accept_existing(socket, &route, plan.host_name)?,
            Err(error) => {
                return Err(kernel(format!("the node gets no route to {address}"))(
                    error,
                ));
            }
        }
    }
    Ok(())
}

fn accept_existing(socket: &mut Socket, route: &Route, host_name: &str) -> Result<()> {
    let unreadable = || kernel("the node's routes cannot be read");
    let routes = socket.routes(MAIN_TABLE).map_err(unreadable())?;
    let same = |other: &&Route| other.destination == route.destination;
    if routes.iter().filter(same).any(|r| r.device == route.device) {
        return Ok(());
    }
    let links = socket.links().map_err(unreadable())?;
    let owner = routes.iter().find(same).and_then(|route| {
        let link = links.iter().find(|link| Some(link.index) == route.device);
        link.map(|link| link.name.clone())
    });
    let message = format!(
        "the node has a route to {} already, which is not through `{host_name}` but through {}",
        route.destination.addr(),
        owner.map_or_else(|| "no interface".to_owned(), |name| format!("`{name}`"))
    );
    Err(Error::new(Code::Kernel, message))
}

/// Deletes the node's end, and the container's with it. One that is gone is no error.
pub(crate) fn tear_down_host(host_name: &str) -> Result<()> {
    let mut socket = Socket::open().map_err(kernel("the kernel's routing cannot be reached"))?;
    delete(&mut socket, host_name).map(drop)
}

/// Deletes a link by name, and tells whether there was one.
pub(crate) fn delete(socket: &mut Socket, name: &str) -> Result<bool> {
    let failed = || kernel(format!("`{name}` cannot be deleted"));
    let Some(link) = socket.link(name).map_err(failed())? else {
        return Ok(false);
    };
    match socket.execute(|batch| batch.delete_link(link.index)) {
        Ok(()) => Ok(true),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(failed()(error)),
    }
}

pub(crate) fn find(socket: &mut Socket, name: &str) -> Result<Link> {
    let link = socket.link(name);
    let link = link.map_err(kernel(format!("`{name}` cannot be read")))?;
    link.ok_or_else(|| Error::new(Code::Kernel, format!("there is no interface `{name}`")))
}

pub(crate) fn kernel<E>(message: impl Into<String>) -> impl FnOnce(E) -> Error
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Error::of(Code::Kernel, message)
}
