//! What is known of the cluster, and the routes that follow from it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::net::{Cidr, parse_cidr_or_ip};
use tortie_engine::Message;
use tortie_engine::message::{Encapsulation, Host, PoolType, Route as Told, RouteTypes, Vtep};
use tortie_error::Causes;
use tortie_kernel::link::Mac;
use tortie_kernel::route::{Forwarding, Kind, Neighbour, Protocol, Route, Scope};
use tortie_rules::IpVersion;

use super::ClusterOptions;
use crate::desired::is_of;
use crate::mtu::Mtus;

/// What is known of the cluster.
#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) encapsulation: Encapsulation,
    routes: BTreeMap<IpNet, Told>,
    vteps: BTreeMap<String, Vtep>,
    hosts: BTreeMap<String, Host>,
}

/// One node's end of the VXLAN tunnels of one IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TunnelEnd {
    pub(super) mac: Mac,
    /// The address of its device.
    pub(super) address: IpAddr,
    /// The node's own address.
    pub(super) node: IpAddr,
}

/// The numbers of the devices that packets to other nodes leave through, as far as there are any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Devices {
    /// The interface that has the node's own address.
    pub(super) parent: Option<u32>,
    pub(super) vxlan: Option<u32>,
    pub(super) ipip: Option<u32>,
}

/// Routes to other nodes' pods.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Routes {
    pub(super) ours: Vec<Route>,
    /// What they would be where BGP makes them.
    pub(super) others: Vec<Route>,
}

impl Topology {
    /// Takes up what the message says. Gives whether it was about the cluster.
    pub(super) fn on_message(&mut self, message: &Message) -> bool {
        match message {
            Message::RouteUpdate(route) if concerns_pods(route) => {
                self.routes.insert(route.dst, route.clone());
            }
            Message::RouteUpdate(Told { dst, .. }) | Message::RouteRemove(dst) => {
                return self.routes.remove(dst).is_some();
            }
            Message::VtepUpdate(vtep) => {
                self.vteps.insert(vtep.node.clone(), vtep.clone());
            }
            Message::VtepRemove(node) => {
                self.vteps.remove(node);
            }
            Message::HostMetadataUpdate(host) => {
                self.hosts.insert(host.hostname.clone(), host.clone());
            }
            Message::HostMetadataRemove(node) => {
                self.hosts.remove(node);
            }
            Message::Encapsulation(encapsulation) => self.encapsulation = *encapsulation,
            _ => return false,
        }
        true
    }

    /// A node's own address.
    pub(super) fn node_address(&self, node: &str, version: IpVersion) -> Option<IpAddr> {
        let vtep = self.vteps.get(node);
        let host = self.hosts.get(node);
        let (of_vtep, of_host) = match version {
            IpVersion::V4 => (
                vtep.and_then(|vtep| vtep.parent_device_ip),
                host.map(|host| &host.ipv4_addr),
            ),
            IpVersion::V6 => (
                vtep.and_then(|vtep| vtep.parent_device_ipv6),
                host.map(|host| &host.ipv6_addr),
            ),
        };
        of_vtep.or_else(|| parse_cidr_or_ip(of_host?).map(Cidr::ip))
    }

    /// A node's end of the VXLAN tunnels.
    pub(super) fn tunnel_end(&self, node: &str, version: IpVersion) -> Option<TunnelEnd> {
        tunnel_end(self.vteps.get(node)?, version)
    }

    /// What the VXLAN device must know of the other nodes: where their hardware addresses are, and who has which.
    pub(super) fn tunnel_entries(
        &self,
        hostname: &str,
        version: IpVersion,
        device: u32,
    ) -> (Vec<Forwarding>, Vec<Neighbour>) {
        let others = self.vteps.values().filter(|vtep| vtep.node != hostname);
        let ends = others.filter_map(|vtep| tunnel_end(vtep, version));
        let entries = ends.map(|end| {
            let forwarding = Forwarding {
                device,
                mac: end.mac,
                destination: end.node,
            };
            let neighbour = Neighbour {
                device,
                address: end.address,
                mac: end.mac,
            };
            (forwarding, neighbour)
        });
        entries.unzip()
    }

    /// The routes of one IP version to other nodes' pods, and what keeps packets to our own pods from leaving again once
    /// such a pod is gone.
    pub(super) fn routes(
        &self,
        version: IpVersion,
        devices: Devices,
        mtus: &Mtus,
        options: &ClusterOptions,
    ) -> Routes {
        let mut routes = Routes::default();
        for told in self.routes.values() {
            if !is_of(&told.dst, version) {
                continue;
            }
            if let Some(route) = self.route(told, version, devices, mtus, options) {
                if self.is_ours(told, options) {
                    routes.ours.push(route);
                } else {
                    routes.others.push(route);
                }
            }
        }
        routes
    }

    fn route(
        &self,
        told: &Told,
        version: IpVersion,
        devices: Devices,
        mtus: &Mtus,
        options: &ClusterOptions,
    ) -> Option<Route> {
        if is_local_block(told) {
            return Some(Route {
                kind: Kind::Blackhole,
                protocol: options.cluster_protocol(),
                ..Route::to(told.dst)
            });
        }
        if !is_elsewhere(told) {
            return None;
        }
        direct_route(told, devices, options).or_else(|| match told.ip_pool_type {
            PoolType::Vxlan => self.vxlan_route(told, version, devices, mtus, options),
            PoolType::Ipip => self.ipip_route(told, devices, mtus, options),
            PoolType::NoEncap | PoolType::None => None,
        })
    }

    /// Whether routes of the pool that a destination is in are made here, rather than by BGP.
    fn is_ours(&self, route: &Told, options: &ClusterOptions) -> bool {
        match route.ip_pool_type {
            PoolType::Vxlan => true,
            PoolType::Ipip => self.encapsulation.ipip_enabled && options.routes_of_ipip,
            PoolType::NoEncap => self.encapsulation.no_encap_enabled,
            PoolType::None => false,
        }
    }

    fn vxlan_route(
        &self,
        told: &Told,
        version: IpVersion,
        devices: Devices,
        mtus: &Mtus,
        options: &ClusterOptions,
    ) -> Option<Route> {
        let mtu = match version {
            IpVersion::V4 => mtus.vxlan,
            IpVersion::V6 => mtus.vxlan_v6,
        };
        let route = Route {
            device: Some(devices.vxlan?),
            protocol: Protocol(options.device_protocol),
            mtu: Some(mtu),
            ..Route::to(told.dst)
        };
        if is_other_end(told) {
            // It is the other end of the tunnel itself.
            return Some(Route {
                scope: Scope::LINK,
                ..route
            });
        }
        let end = self.tunnel_end(&told.dst_node_name, version)?;
        Some(Route {
            gateway: Some(end.address),
            on_link: true,
            ..route
        })
    }

    fn ipip_route(
        &self,
        told: &Told,
        devices: Devices,
        mtus: &Mtus,
        options: &ClusterOptions,
    ) -> Option<Route> {
        Some(Route {
            device: Some(devices.ipip?),
            gateway: Some(self.node_address(&told.dst_node_name, IpVersion::V4)?),
            on_link: true,
            protocol: options.cluster_protocol(),
            mtu: Some(mtus.ipip),
            ..Route::to(told.dst)
        })
    }
}

/// Without a tunnel, through the network that both nodes are in.
fn direct_route(told: &Told, devices: Devices, options: &ClusterOptions) -> Option<Route> {
    if told.ip_pool_type != PoolType::NoEncap && !told.same_subnet {
        return None;
    }
    Some(Route {
        device: Some(devices.parent?),
        gateway: Some(told.dst_node_ip?),
        on_link: true,
        protocol: options.cluster_protocol(),
        ..Route::to(told.dst)
    })
}

fn tunnel_end(vtep: &Vtep, version: IpVersion) -> Option<TunnelEnd> {
    let (mac, address, node) = match version {
        IpVersion::V4 => (&vtep.mac, vtep.ipv4_addr, vtep.parent_device_ip),
        IpVersion::V6 => (&vtep.mac_v6, vtep.ipv6_addr, vtep.parent_device_ipv6),
    };
    let (address, node) = address.zip(node)?;
    match mac.parse() {
        Ok(mac) => Some(TunnelEnd { mac, address, node }),
        Err(error) => {
            tracing::warn!(node = %vtep.node, error = %Causes(&error), "Its pods cannot be reached by VXLAN");
            None
        }
    }
}

/// Whether a route could be one of those that are made here.
fn concerns_pods(route: &Told) -> bool {
    route.ip_pool_type != PoolType::None && (is_elsewhere(route) || is_local_block(route))
}

/// A block of another node, a single address of a pod there, or the end of a tunnel.
fn is_elsewhere(route: &Told) -> bool {
    route.types.contains(RouteTypes::REMOTE_WORKLOAD) || is_other_end(route)
}

/// The end of another node's tunnel, where no route of a block leads to it.
fn is_other_end(route: &Told) -> bool {
    let is_workload = route.types.contains(RouteTypes::REMOTE_WORKLOAD);
    route.types.contains(RouteTypes::REMOTE_TUNNEL) && (is_workload || route.borrowed)
}

/// A block of this node. A single address is not closed: the pod that has it may be just coming.
fn is_local_block(route: &Told) -> bool {
    route.types.contains(RouteTypes::LOCAL_WORKLOAD)
        && !route.local_workload
        && route.dst.prefix_len() != route.dst.max_prefix_len()
}
