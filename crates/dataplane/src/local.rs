//! The host's side of workloads: routes to them, their neighbours, and the settings of their interfaces.

mod peering;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tortie_kernel::link::Mac;
use tortie_kernel::route::{self, Batch, Neighbour, Protocol, Route, Scope, Socket};
use tortie_kernel::sysctl::{self, Sysctl, Workload, workload_interface};

use self::peering::Peering;
use crate::desired::{DesiredState, InterfaceState};

/// Routes that we did not make are left for so long on a new interface: whoever sets the workload up may have made them
/// before we heard of it.
const GRACE: Duration = Duration::from_secs(10);

/// How routes to workloads are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteOptions {
    /// Who they say made them.
    pub protocol: u8,
    /// Their metrics, for IPv4 and IPv6.
    pub metrics: [u32; 2],
    /// The source addresses of the host's own packets to workloads, for IPv4 and IPv6.
    pub sources: [Option<IpAddr>; 2],
    /// Whether workloads have IPv6.
    pub ipv6: bool,
    /// Whether routes to workloads' interfaces that others made are removed.
    pub remove_foreign: bool,
}

/// The host's side of workloads.
#[derive(Debug)]
pub struct LocalNetwork {
    socket: Socket,
    options: RouteOptions,
    rp_filter: String,
    /// What is known of each workload's interface, by its number.
    devices: BTreeMap<u32, Device>,
    peering: Peering,
}

#[derive(Debug)]
struct Device {
    seen: Instant,
    is_set_up: bool,
}

/// What became of one interface's workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadState {
    /// Packets reach it.
    Up,
    /// The interface is missing, down or could not be set up.
    Down,
}

impl LocalNetwork {
    /// For the network namespace of the calling thread.
    pub fn open(options: RouteOptions) -> route::Result<Self> {
        let rp_filter = Sysctl::new("net/ipv4/conf/default/rp_filter").read();
        Ok(Self {
            socket: Socket::open()?,
            options,
            rp_filter: rp_filter.unwrap_or_else(|_| "1".to_owned()),
            devices: BTreeMap::new(),
            peering: Peering::default(),
        })
    }

    /// The interfaces of the host.
    pub fn interfaces(&mut self) -> route::Result<BTreeMap<Arc<str>, InterfaceState>> {
        let links = self.socket.links()?.into_iter();
        let interfaces = links.map(|link| {
            let state = InterfaceState {
                index: link.index,
                is_up: link.is_up && link.is_running,
                addresses: link.addresses.iter().map(IpNet::addr).collect(),
            };
            (Arc::from(link.name), state)
        });
        Ok(interfaces.collect())
    }

    /// Lets packets be forwarded through this host.
    pub fn enable_forwarding(&self) -> Vec<sysctl::Error> {
        let mut settings = vec!["net/ipv4/ip_forward"];
        if self.options.ipv6 {
            settings.push("net/ipv6/conf/all/forwarding");
        }
        let results = settings
            .into_iter()
            .map(|path| Sysctl::new(path).write("1"));
        results.filter_map(Result::err).collect()
    }

    /// Brings routes, neighbours and settings to what the desired state says. Gives what was refused; it is tried again the
    /// next time.
    pub fn apply(&mut self, desired: &DesiredState) -> route::Result<Vec<String>> {
        let mut problems = Vec::new();
        self.set_up_devices(desired, &mut problems);
        let (routes, neighbours) = self.wanted(desired);
        let mut batch = Batch::new();
        let mut wanted: BTreeSet<Route> = routes.iter().map(Route::as_listed).collect();
        for route in self.socket.routes(route::MAIN_TABLE)? {
            let Some(device) = route.device.and_then(|device| self.devices.get(&device)) else {
                continue;
            };
            // The kernel's own, such as those of link-local addresses, come and go with the interface.
            if wanted.remove(&route) || route.protocol == Protocol::KERNEL {
                continue;
            }
            let is_ours = route.protocol.0 == self.options.protocol;
            let is_replaced = routes
                .iter()
                .any(|new| new.destination == route.destination);
            let is_old = self.options.remove_foreign && device.seen.elapsed() >= GRACE;
            if is_replaced || is_old || is_ours && !is_bare(&route) {
                batch.delete_route(&route);
            }
        }
        for route in &routes {
            if wanted.contains(&route.as_listed()) {
                batch.replace_route(route);
            }
        }
        let known: BTreeSet<Neighbour> = self.socket.neighbours(None)?.into_iter().collect();
        for neighbour in neighbours.difference(&known) {
            batch.set_neighbour(neighbour);
        }
        if !batch.is_empty() {
            let refused = self.socket.apply(&batch)?.into_iter();
            problems.extend(refused.map(|(_, error)| error.to_string()));
        }
        let addresses = self.peering.changes(desired, self.options.ipv6);
        if !addresses.is_empty() {
            let refused = self.socket.apply(&addresses)?.into_iter();
            // What is known of interfaces may be a moment old.
            let refused = refused.filter(|(_, error)| !error.is_existing() && !error.is_missing());
            problems.extend(refused.map(|(_, error)| error.to_string()));
        }
        Ok(problems)
    }

    /// Whether packets reach the workload of an interface.
    pub fn state_of(&self, desired: &DesiredState, interface: &str) -> WorkloadState {
        let found = desired.interface(interface).filter(|state| state.is_up);
        let device = found.and_then(|state| self.devices.get(&state.index));
        match device {
            Some(device) if device.is_set_up => WorkloadState::Up,
            _ => WorkloadState::Down,
        }
    }

    fn set_up_devices(&mut self, desired: &DesiredState, problems: &mut Vec<String>) {
        let present: BTreeMap<u32, &Arc<str>> = desired
            .workload_interfaces()
            .map(|(name, state)| (state.index, name))
            .collect();
        self.devices.retain(|index, _| present.contains_key(index));
        for (index, name) in present {
            let device = self.devices.entry(index).or_insert_with(|| Device {
                seen: Instant::now(),
                is_set_up: false,
            });
            let endpoint = desired.workload_of(name);
            let Some(endpoint) = endpoint.filter(|_| !device.is_set_up) else {
                continue;
            };
            let may_spoof = !endpoint.allow_spoofed_source_prefixes.is_empty();
            let settings = Workload {
                ipv4: true,
                ipv6: self.options.ipv6,
                rp_filter: if may_spoof { "0" } else { &self.rp_filter },
            };
            match workload_interface(name, settings) {
                Ok(tolerated) => {
                    device.is_set_up = true;
                    for problem in tolerated {
                        tracing::debug!(interface = %name, %problem, "A setting was not made");
                    }
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
    }

    fn wanted(&self, desired: &DesiredState) -> (Vec<Route>, BTreeSet<Neighbour>) {
        let mut routes = Vec::new();
        let mut neighbours = BTreeSet::new();
        for (interface, endpoint) in desired.active_workloads() {
            let state = desired.interface(interface).filter(|state| state.is_up);
            let Some(state) = state.filter(|_| endpoint.state == "active") else {
                continue;
            };
            let mac: Option<Mac> = endpoint.mac.parse().ok();
            let nets = endpoint.ipv4_nets.iter().chain(&endpoint.ipv6_nets);
            for net in nets {
                let family = usize::from(matches!(net, IpNet::V6(_)));
                if family == 1 && !self.options.ipv6 {
                    continue;
                }
                let mut route = Route::to(*net);
                route.device = Some(state.index);
                route.protocol = Protocol(self.options.protocol);
                route.scope = Scope::LINK;
                route.metric = self.options.metrics[family];
                route.source = self.options.sources[family];
                routes.push(route);
                if let (Some(mac), IpNet::V4(_)) = (mac, net) {
                    neighbours.insert(Neighbour {
                        device: state.index,
                        address: net.addr(),
                        mac,
                    });
                }
            }
        }
        (routes, neighbours)
    }
}

/// Whether a route is one that a CNI plugin makes: our kind of route, before we heard of the workload.
fn is_bare(route: &Route) -> bool {
    route.metric == 0 && route.gateway.is_none()
}
