//! Nodes with what is around them.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tortie_kernel::link::{Link, Mac};
use tortie_kernel::route::{Batch, Neighbour, Route, Scope, Socket};
use tortie_kernel::sysctl::{self, Group, Sysctl, Workload, workload_interface};

use super::error::{Result, cannot};
use super::namespace::Namespace;

/// Pods send everything here, and the node answers for it.
const GATEWAY_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1));

/// The address that the kernel makes of Calico's hardware address.
const GATEWAY_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::new(
    0xfe80, 0, 0, 0, 0xecee, 0xeeff, 0xfeee, 0xeeee,
));

/// Where a node sends what it knows no other way for. Nobody has these addresses.
const NOWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8)),
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
];

/// Any other default route is preferred.
const LAST_RESORT: u32 = 4_000_000_000;

/// The table with the addresses of the machine itself.
const LOCAL_TABLE: u32 = 255;

/// The interface in pods and strangers.
const INSIDE: &str = "eth0";

/// How long interfaces may take until they can be used. Mostly it takes a few milliseconds.
const READY: Duration = Duration::from_secs(20);

/// The result of something that has several steps.
type Attempt<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A node: it forwards, and has a default route that leads to nobody.
#[derive(Debug)]
pub struct Node {
    namespace: Namespace,
    socket: Socket,
    /// What is behind the default route.
    _outside: Namespace,
}

/// A pod as Calico's CNI plugin leaves it: the node has no route to it yet.
#[derive(Debug, Clone)]
pub struct Pod {
    pub namespace: Namespace,
    /// The interface on the node's side.
    pub interface: String,
    /// That interface's index.
    pub index: u32,
    /// Its addresses, all of length 32 or 128.
    pub addresses: Vec<IpAddr>,
    /// The hardware address of its own interface `eth0`.
    pub mac: Mac,
}

/// A machine that is neither node nor pod, on a link with the node.
#[derive(Debug, Clone)]
pub struct External {
    pub namespace: Namespace,
    /// The interface on the node's side.
    pub interface: String,
    /// That interface's index.
    pub index: u32,
    /// Its addresses on its interface `eth0`.
    pub addresses: Vec<IpNet>,
}

impl Node {
    /// Makes a node.
    pub fn new() -> Result<Self> {
        let (namespace, outside) = (Namespace::new()?, Namespace::new()?);
        namespace
            .run(node_settings)?
            .map_err(cannot("let the node forward"))?;
        let socket = namespace
            .run(Socket::open)?
            .map_err(cannot("open a socket in the node"))?;
        let mut node = Self {
            namespace,
            socket,
            _outside: outside.clone(),
        };
        node.start(&outside)
            .map_err(cannot("make the node's default route"))?;
        Ok(node)
    }

    /// The node's namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The node's routing.
    pub fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Adds a pod whose interface has this name on the node's side.
    pub fn add_pod(&mut self, interface: &str, addresses: &[IpAddr]) -> Result<Pod> {
        let tried = || format!("add the pod of `{interface}`");
        let namespace = Namespace::new()?;
        let link = self.join(interface, &namespace).map_err(cannot(tried()))?;
        self.namespace
            .run(|| cni_settings(interface))?
            .map_err(cannot(tried()))?;
        self.socket
            .execute(|batch| {
                batch.set_link_mac(link.index, Mac::CALICO);
                batch.set_link_up(link.index, true);
            })
            .map_err(cannot(tried()))?;
        let networks: Vec<IpNet> = addresses.iter().copied().map(IpNet::from).collect();
        let inside = namespace
            .run(|| set_up_inside(&networks, &[GATEWAY_IPV4, GATEWAY_IPV6]))?
            .map_err(cannot(tried()))?;
        await_ready(&mut self.socket, interface).map_err(cannot(tried()))?;
        Ok(Pod {
            namespace,
            interface: interface.to_owned(),
            index: link.index,
            addresses: addresses.to_vec(),
            mac: inside.mac.unwrap_or(Mac([0; 6])),
        })
    }

    /// Adds a machine that is reached through the node's interface of this name. The node's addresses there are its
    /// gateways.
    pub fn add_external(
        &mut self,
        interface: &str,
        node_addresses: &[IpNet],
        addresses: &[IpNet],
    ) -> Result<External> {
        let tried = || format!("add the machine behind `{interface}`");
        let namespace = Namespace::new()?;
        let link = self.join(interface, &namespace).map_err(cannot(tried()))?;
        self.socket
            .execute(|batch| {
                for address in node_addresses {
                    batch.add_address(link.index, *address);
                }
                batch.set_link_up(link.index, true);
            })
            .map_err(cannot(tried()))?;
        let gateways: Vec<IpAddr> = node_addresses.iter().map(IpNet::addr).collect();
        namespace
            .run(|| set_up_inside(addresses, &gateways))?
            .map_err(cannot(tried()))?;
        await_ready(&mut self.socket, interface).map_err(cannot(tried()))?;
        Ok(External {
            namespace,
            interface: interface.to_owned(),
            index: link.index,
            addresses: addresses.to_vec(),
        })
    }

    /// Does for a pod what Calico's agent does once it knows it: routes to its addresses, and its hardware address.
    pub fn route_to(&mut self, pod: &Pod) -> Result<()> {
        let add = |batch: &mut Batch| {
            for address in &pod.addresses {
                batch.replace_route(&Route {
                    device: Some(pod.index),
                    scope: Scope::LINK,
                    metric: 1024,
                    ..Route::to((*address).into())
                });
                if address.is_ipv4() {
                    batch.set_neighbour(&Neighbour {
                        device: pod.index,
                        address: *address,
                        mac: pod.mac,
                    });
                }
            }
        };
        let tried = format!("add routes to the pod of `{}`", pod.interface);
        self.socket.execute(add).map_err(cannot(tried))
    }

    /// Makes the default route: the kernel answers for a pod's gateway only if it knows a way there.
    fn start(&mut self, outside: &Namespace) -> Attempt<()> {
        self.socket.execute(|batch| batch.set_link_up(1, true))?;
        let link = self.join("uplink", outside)?;
        self.socket.execute(|batch| {
            batch.set_link_up(link.index, true);
            for gateway in NOWHERE {
                batch.set_neighbour(&Neighbour {
                    device: link.index,
                    address: gateway,
                    mac: Mac([2, 0, 0, 0, 0, 1]),
                });
                batch.add_route(&Route {
                    device: Some(link.index),
                    gateway: Some(gateway),
                    on_link: true,
                    metric: LAST_RESORT,
                    ..Route::to(everything(gateway))
                });
            }
        })?;
        Ok(())
    }

    /// Joins the node and another namespace with a veth pair.
    fn join(&mut self, interface: &str, namespace: &Namespace) -> Attempt<Link> {
        self.socket
            .execute(|batch| batch.create_veth(interface, INSIDE, namespace.as_fd()))?;
        find(&mut self.socket, interface)
    }
}

/// Sets up the calling thread's namespace: its interface with addresses, and a default route for each family that it has
/// an address of, through the first gateway of that family.
fn set_up_inside(addresses: &[IpNet], gateways: &[IpAddr]) -> Attempt<Link> {
    Sysctl::of_interface(Group::Ipv6, INSIDE, "accept_dad")?.write("0")?;
    let mut socket = Socket::open()?;
    let link = find(&mut socket, INSIDE)?;
    let gateway_of = |is_ipv4| gateways.iter().find(|gateway| gateway.is_ipv4() == is_ipv4);
    let has_family = |is_ipv4| {
        addresses
            .iter()
            .any(|address| address.addr().is_ipv4() == is_ipv4)
    };
    let used = [true, false]
        .into_iter()
        .filter(|family| has_family(*family))
        .filter_map(gateway_of);
    socket.execute(|batch| {
        batch.set_link_up(1, true);
        batch.set_link_up(link.index, true);
        for address in addresses {
            batch.add_address(link.index, *address);
        }
        for gateway in used.copied() {
            let device = Some(link.index);
            if gateway.is_ipv4() {
                let scope = Scope::LINK;
                batch.replace_route(&Route {
                    device,
                    scope,
                    ..Route::to(gateway.into())
                });
            }
            let default = Route::to(everything(gateway));
            batch.add_route(&Route {
                device,
                gateway: Some(gateway),
                ..default
            });
        }
    })?;
    await_ready(&mut socket, INSIDE)?;
    Ok(link)
}

/// The node forwards, and does not search for its own IPv6 addresses elsewhere before it uses them.
fn node_settings() -> sysctl::Result<()> {
    Sysctl::new("net/ipv4/ip_forward").write("1")?;
    Sysctl::new("net/ipv6/conf/all/forwarding").write("1")?;
    Sysctl::new("net/ipv6/conf/default/accept_dad").write("0")
}

/// The settings that Calico's CNI plugin makes on the node's side. The check of sources stays as it is.
fn cni_settings(interface: &str) -> Attempt<()> {
    for setting in ["accept_dad", "disable_ipv6"] {
        Sysctl::of_interface(Group::Ipv6, interface, setting)?.write("0")?;
    }
    let rp_filter = Sysctl::of_interface(Group::Ipv4, interface, "rp_filter")?.read()?;
    let workload = Workload {
        ipv4: true,
        ipv6: true,
        rp_filter: &rp_filter,
    };
    match workload_interface(interface, workload)?.pop() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Waits until an interface carries packets and its IPv6 addresses are in use: the kernel sees to that on its own time.
fn await_ready(socket: &mut Socket, interface: &str) -> Attempt<()> {
    let end = Instant::now() + READY;
    loop {
        let link = find(socket, interface)?;
        let local = socket.routes(LOCAL_TABLE)?;
        let in_use = |address: &IpNet| {
            local
                .iter()
                .any(|route| route.destination == address.addr().into())
        };
        let has_link_local = link.addresses.iter().any(is_link_local);
        if link.is_running && has_link_local && link.addresses.iter().all(in_use) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("not ready after {} s: {link:?}", READY.as_secs()).into());
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn is_link_local(address: &IpNet) -> bool {
    matches!(address, IpNet::V6(address) if address.addr().is_unicast_link_local())
}

fn find(socket: &mut Socket, interface: &str) -> Attempt<Link> {
    let link = socket.link(interface)?;
    link.ok_or_else(|| format!("there is no interface `{interface}`").into())
}

/// All addresses of the family that this one is of.
fn everything(address: IpAddr) -> IpNet {
    match address {
        IpAddr::V4(_) => IpNet::V4(Ipv4Net::default()),
        IpAddr::V6(_) => IpNet::V6(Ipv6Net::default()),
    }
}
