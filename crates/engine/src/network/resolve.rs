//! What the data plane is told about one range of addresses, from all that is known about it and the ranges around it.
//!
//! A pure function: the ranges that cover a range are visited from the largest to the smallest, and each adds what it
//! knows or overrides what a larger one said.

use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashMap;
use ipnet::IpNet;

use super::node::RouteNode;
use super::route_table::{Entry, RouteTable, UseKind};
use crate::message::{PoolType, Route, RouteTypes, TunnelType};

/// A route in compact form, without its destination. There can be hundred thousands of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of the message")]
pub(super) struct Resolved {
    pub(super) node: Option<Arc<str>>,
    node_ip: Option<IpAddr>,
    types: RouteTypes,
    pool_type: PoolType,
    tunnel: Option<TunnelType>,
    same_subnet: bool,
    nat_outgoing: bool,
    local_workload: bool,
    borrowed: bool,
}

/// The route to a range; none if nothing is known about it.
pub(super) fn resolve(
    range: IpNet,
    table: &RouteTable,
    nodes: &HashMap<Arc<str>, RouteNode>,
    local: &str,
) -> Option<Resolved> {
    table.get(&range)?;
    if is_unspecified(range) {
        return None;
    }
    let mut walk = Walk::new(range, local);
    for (covering, entry) in table.path(range) {
        walk.visit(covering, entry);
    }
    Some(walk.finish(nodes))
}

/// The addresses that stand for none, as some node without address claims to have them.
fn is_unspecified(range: IpNet) -> bool {
    range.addr().is_unspecified() && range.prefix_len() == range.max_prefix_len()
}

/// What the visited ranges said so far.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Walk<'a> {
    range: IpNet,
    local: &'a str,
    route: Resolved,
    cross_subnet: bool,
    /// The node of the outermost block.
    block_node: Option<&'a Arc<str>>,
    /// What the blocks say is at the range; it may turn out not to apply.
    block_types: RouteTypes,
    is_block: bool,
    has_host: bool,
    has_tunnel: bool,
}

// === impl Walk ===

impl<'a> Walk<'a> {
    fn new(range: IpNet, local: &'a str) -> Self {
        Self {
            range,
            local,
            route: Resolved::default(),
            cross_subnet: false,
            block_node: None,
            block_types: RouteTypes::default(),
            is_block: false,
            has_host: false,
            has_tunnel: false,
        }
    }

    fn visit(&mut self, covering: IpNet, entry: &'a Entry) {
        if let Some(pool) = entry.pool {
            if pool.r#type != PoolType::None {
                self.route.pool_type = pool.r#type;
            }
            self.route.nat_outgoing |= pool.nat_outgoing;
            self.cross_subnet |= pool.cross_subnet;
        }
        if let Some(node) = entry.block_node() {
            self.visit_block(covering, node);
        }
        if let Some(node) = entry.host() {
            self.route.node = Some(Arc::clone(node));
            self.has_host = true;
            self.route.types |=
                self.by_place(node, RouteTypes::LOCAL_HOST, RouteTypes::REMOTE_HOST);
        }
        self.visit_uses(entry);
    }

    fn visit_block(&mut self, covering: IpNet, node: &'a Arc<str>) {
        if self.block_node.is_some_and(|outer| outer != node) {
            self.route.borrowed = true;
        } else {
            self.block_node = Some(node);
        }
        self.route.node = Some(Arc::clone(node));
        self.is_block |= covering == self.range;
        self.block_types |= self.by_place(
            node,
            RouteTypes::LOCAL_WORKLOAD,
            RouteTypes::REMOTE_WORKLOAD,
        );
    }

    /// Only the first use counts, with other tunnels of the same node: more than one node, or a workload with the
    /// address of a tunnel, cannot last.
    fn visit_uses(&mut self, entry: &Entry) {
        let Some(first) = entry.uses().first() else {
            return;
        };
        let node = &first.node;
        self.route.node = Some(Arc::clone(node));
        self.route.borrowed |= self.block_node.is_some_and(|block| block != node);
        if first.kind == UseKind::Workload {
            // Set apart from the type, which borrowed addresses can have for both places.
            self.route.local_workload |= **node == *self.local;
            self.route.types |= self.by_place(
                node,
                RouteTypes::LOCAL_WORKLOAD,
                RouteTypes::REMOTE_WORKLOAD,
            );
            return;
        }
        self.has_tunnel = true;
        self.route.types |=
            self.by_place(node, RouteTypes::LOCAL_TUNNEL, RouteTypes::REMOTE_TUNNEL);
        let mut tunnel = TunnelType::default();
        for used in entry.uses().iter().filter(|used| used.node == *node) {
            match used.kind {
                UseKind::Workload => {}
                UseKind::WireguardTunnel => tunnel.wireguard = true,
                UseKind::IpipTunnel => tunnel.ipip = true,
                UseKind::VxlanTunnel => tunnel.vxlan = true,
            }
        }
        self.route.tunnel = Some(tunnel);
    }

    fn finish(mut self, nodes: &HashMap<Arc<str>, RouteNode>) -> Resolved {
        // A node is reached at its own address, not through a tunnel to itself. The address of a tunnel device in a
        // larger block is covered by the route to the block; one with a block of its own needs a route as workloads do.
        if !self.has_host && (self.is_block || !self.has_tunnel) {
            self.route.types |= self.block_types;
        }
        let node = self.route.node.as_ref().and_then(|node| nodes.get(node));
        self.route.node_ip = node.and_then(|node| node.address_for(self.range));
        self.route.same_subnet = self.cross_subnet
            && self.route.node_ip.is_some_and(|address| {
                nodes
                    .get(self.local)
                    .is_some_and(|local| local.has_in_subnet(address))
            });
        self.route
    }

    fn by_place(&self, node: &str, local: RouteTypes, remote: RouteTypes) -> RouteTypes {
        if node == self.local { local } else { remote }
    }
}

// === impl Resolved ===

impl Resolved {
    /// The message about it.
    pub(super) fn to_route(&self, dst: IpNet) -> Route {
        Route {
            dst,
            types: self.types,
            ip_pool_type: self.pool_type,
            dst_node_name: self.node.as_deref().unwrap_or_default().to_owned(),
            dst_node_ip: self.node_ip,
            same_subnet: self.same_subnet,
            nat_outgoing: self.nat_outgoing,
            local_workload: self.local_workload,
            tunnel_type: self.tunnel,
            borrowed: self.borrowed,
        }
    }
}
