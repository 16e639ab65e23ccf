//! The way to pods of other nodes: tunnel devices, what they know of the other nodes, and routes.

mod device;
mod handover;
#[cfg(test)]
mod tests;
mod topology;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_engine::Message;
use tortie_kernel::link::{Link, Vxlan};
use tortie_kernel::route::{self, Batch, Forwarding, Neighbour, Protocol, Route, Socket};
use tortie_rules::IpVersion;

use self::device::VxlanDevice;
use self::handover::Handover;
use self::topology::{Devices, Topology};
use crate::mtu::{MtuOptions, Mtus};

const VXLAN: &str = "vxlan.calico";
const VXLAN_V6: &str = "vxlan-v6.calico";
const IPIP: &str = "tunl0";

/// How other nodes are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// This node's name.
    pub hostname: String,
    /// The IP versions that pods have.
    pub versions: Vec<IpVersion>,
    /// `rtm_protocol` of routes to workloads and of VXLAN routes.
    pub device_protocol: u8,
    /// What the names of workloads' interfaces begin with; routes through those are not touched.
    pub workload_prefixes: Vec<String>,
    /// The number of the VXLAN network.
    pub vxlan_id: u32,
    /// The UDP port of VXLAN.
    pub vxlan_port: u16,
    /// The address of this node's IPIP device.
    pub ipip_address: Option<IpAddr>,
    /// Whether routes of pools with IPIP are made here, rather than by BGP.
    pub routes_of_ipip: bool,
    /// The largest packets that were asked for.
    pub mtu: MtuOptions,
}

impl ClusterOptions {
    /// `rtm_protocol` of routes to other nodes, by which our own are recognised after a restart: Calico's own number,
    /// unless another was chosen.
    fn cluster_protocol(&self) -> Protocol {
        match Protocol(self.device_protocol) {
            Protocol::BOOT => Protocol::CALICO,
            chosen => chosen,
        }
    }
}

/// The way to pods of other nodes.
#[derive(Debug)]
pub struct ClusterNetwork {
    socket: Socket,
    options: ClusterOptions,
    topology: Topology,
    /// What the kernel has of ours, once it was compared.
    programmed: Option<Programmed>,
    handover: Handover,
}

/// What belongs to other nodes, as the kernel lists it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Programmed {
    routes: BTreeSet<Route>,
    forwardings: BTreeSet<Forwarding>,
    neighbours: BTreeSet<Neighbour>,
}

impl ClusterNetwork {
    /// For the network namespace of the calling thread.
    pub fn open(options: ClusterOptions) -> route::Result<Self> {
        Ok(Self {
            socket: Socket::open()?,
            options,
            topology: Topology::default(),
            programmed: None,
            handover: Handover::default(),
        })
    }

    /// Other nodes are reached in this way from now on. Gives whether that is new.
    pub fn set_options(&mut self, options: ClusterOptions) -> bool {
        let is_new = options != self.options;
        if is_new {
            self.options = options;
            self.programmed = None;
        }
        is_new
    }

    /// The engine says something. Gives whether it was about other nodes.
    pub fn on_message(&mut self, message: &Message) -> bool {
        self.topology.on_message(message)
    }

    /// The next [`ClusterNetwork::apply`] compares everything with the kernel.
    pub fn distrust_kernel(&mut self) {
        self.programmed = None;
    }

    /// Whether routes stay only until BIRD has them: [`ClusterNetwork::apply`] then has to look again.
    pub fn is_handing_over(&self) -> bool {
        self.handover.is_under_way()
    }

    /// The largest packets, where the host's interfaces that `counts` names decide.
    pub fn mtus(&mut self, counts: impl Fn(&str) -> bool) -> route::Result<Mtus> {
        let links = self.socket.links()?;
        let of_host = links
            .iter()
            .filter(|link| link.is_up && link.kind != "vxlan" && !self.is_of_workload(&link.name));
        let host = of_host
            .filter(|link| counts(&link.name))
            .map(|link| link.mtu);
        Ok(Mtus::new(
            host.min(),
            &self.options.mtu,
            self.topology.encapsulation,
        ))
    }

    /// Brings devices and routes to what was said. Gives what was refused; it is tried again the next time.
    pub fn apply(&mut self, mtus: &Mtus) -> route::Result<Vec<String>> {
        let mut problems = Vec::new();
        let links = self.socket.links()?;
        let mut wanted = Programmed::default();
        let (mut tunnels, mut others) = (Vec::new(), Vec::new());
        for version in self.options.versions.clone() {
            let node = self.topology.node_address(&self.options.hostname, version);
            let parent = node.and_then(|address| link_with(&links, address));
            let devices = Devices {
                parent: parent.map(|link| link.index),
                vxlan: self.vxlan_device(version, parent, mtus, &mut problems),
                ipip: self.ipip_device(version, mtus, &mut problems),
            };
            tunnels.extend(devices.vxlan);
            let routes = self.topology.routes(version, devices, mtus, &self.options);
            wanted.routes.extend(routes.ours);
            others.extend(routes.others);
            if let Some(device) = devices.vxlan {
                let hostname = &self.options.hostname;
                let (forwardings, neighbours) =
                    self.topology.tunnel_entries(hostname, version, device);
                wanted.forwardings.extend(forwardings);
                wanted.neighbours.extend(neighbours);
            }
        }
        let present = match self.programmed.take() {
            Some(programmed) => programmed,
            None => self.read(&links, &tunnels)?,
        };
        let kept = self.handover.kept(others, &present, &mut self.socket)?;
        wanted.routes.extend(kept);
        let batch = changes(&present, &wanted);
        if !batch.is_empty() {
            let refused = self.socket.apply(&batch)?.into_iter();
            problems.extend(refused.map(|(_, error)| error.to_string()));
        }
        if problems.is_empty() {
            wanted.routes = wanted.routes.iter().map(Route::as_listed).collect();
            self.programmed = Some(wanted);
        }
        Ok(problems)
    }

    /// The VXLAN device of an IP version, if it is in use and could be made.
    fn vxlan_device(
        &mut self,
        version: IpVersion,
        parent: Option<&Link>,
        mtus: &Mtus,
        problems: &mut Vec<String>,
    ) -> Option<u32> {
        let encapsulation = self.topology.encapsulation;
        let (name, is_in_use, mtu) = match version {
            IpVersion::V4 => (VXLAN, encapsulation.vxlan_enabled, mtus.vxlan),
            IpVersion::V6 => (VXLAN_V6, encapsulation.vxlan_enabled_v6, mtus.vxlan_v6),
        };
        let result = if is_in_use {
            // Without knowing our own end the device stays as it is.
            let end = self.topology.tunnel_end(&self.options.hostname, version)?;
            let Some(parent) = parent else {
                problems.push(format!(
                    "no interface has the address {} of this node, so that {name} cannot be made",
                    end.node
                ));
                return None;
            };
            let device = VxlanDevice {
                name,
                mac: end.mac,
                mtu,
                address: IpNet::from(end.address),
                vxlan: Vxlan {
                    id: self.options.vxlan_id,
                    port: self.options.vxlan_port,
                    local: end.node,
                    lower: parent.index,
                    is_learning: false,
                },
            };
            device.ensure(&mut self.socket).map(Some)
        } else {
            device::remove(&mut self.socket, name).map(|()| None)
        };
        result.unwrap_or_else(|error| {
            problems.push(error.to_string());
            None
        })
    }

    /// The IPIP device, if it is in use and could be made.
    fn ipip_device(
        &mut self,
        version: IpVersion,
        mtus: &Mtus,
        problems: &mut Vec<String>,
    ) -> Option<u32> {
        if version == IpVersion::V6 {
            return None;
        }
        let result = if self.topology.encapsulation.ipip_enabled {
            let address = self.options.ipip_address.map(IpNet::from);
            device::ensure_ipip(&mut self.socket, IPIP, mtus.ipip, address).map(Some)
        } else {
            device::remove_addresses(&mut self.socket, IPIP).map(|()| None)
        };
        result.unwrap_or_else(|error| {
            problems.push(error.to_string());
            None
        })
    }

    /// What the kernel has of ours: routes by who made them, and everything that goes through our tunnel devices.
    fn read(&mut self, links: &[Link], tunnels: &[u32]) -> route::Result<Programmed> {
        let is_workload: BTreeMap<u32, bool> = links
            .iter()
            .map(|link| (link.index, self.is_of_workload(&link.name)))
            .collect();
        let ours = self.options.cluster_protocol();
        let mut programmed = Programmed::default();
        for route in self.socket.routes(route::MAIN_TABLE)? {
            let device = route.device.unwrap_or(0);
            let is_tunnel = tunnels.contains(&device) && route.protocol != Protocol::KERNEL;
            let is_workload = is_workload.get(&device).copied().unwrap_or(false);
            if is_tunnel || route.protocol == ours && !is_workload {
                programmed.routes.insert(route);
            }
        }
        for device in tunnels {
            programmed
                .forwardings
                .extend(self.socket.forwardings(*device)?);
            programmed
                .neighbours
                .extend(self.socket.neighbours(Some(*device))?);
        }
        Ok(programmed)
    }

    fn is_of_workload(&self, name: &str) -> bool {
        let mut prefixes = self.options.workload_prefixes.iter();
        prefixes.any(|prefix| name.starts_with(prefix.as_str()))
    }
}

fn link_with(links: &[Link], address: IpAddr) -> Option<&Link> {
    let has = |link: &&Link| link.addresses.iter().any(|net| net.addr() == address);
    links.iter().find(has)
}

/// What makes the one of the other. Tunnels learn of nodes before routes lead there, and forget them after.
fn changes(present: &Programmed, wanted: &Programmed) -> Batch {
    let mut batch = Batch::new();
    for neighbour in wanted.neighbours.difference(&present.neighbours) {
        batch.set_neighbour(neighbour);
    }
    for entry in wanted.forwardings.difference(&present.forwardings) {
        batch.set_forwarding(entry);
    }
    let mut replaced = BTreeSet::new();
    for route in &wanted.routes {
        let listed = route.as_listed();
        replaced.insert(key(&listed));
        if !present.routes.contains(&listed) {
            batch.replace_route(route);
        }
    }
    for route in &present.routes {
        if !replaced.contains(&key(route)) {
            batch.delete_route(route);
        }
    }
    let kept: BTreeSet<_> = wanted.forwardings.iter().map(|entry| entry.mac).collect();
    for entry in present.forwardings.difference(&wanted.forwardings) {
        if !kept.contains(&entry.mac) {
            batch.delete_forwarding(entry);
        }
    }
    let kept: BTreeSet<_> = wanted
        .neighbours
        .iter()
        .map(|entry| entry.address)
        .collect();
    for neighbour in present.neighbours.difference(&wanted.neighbours) {
        if !kept.contains(&neighbour.address) {
            batch.delete_neighbour(neighbour);
        }
    }
    batch
}

/// What two routes cannot have both.
fn key(route: &Route) -> (IpNet, u8, u32) {
    (route.destination, route.service_type, route.metric)
}
