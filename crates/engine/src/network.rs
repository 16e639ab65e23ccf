//! Everything of the calculation that is not policy: routes, tunnels, nodes, pools, BGP, parameters.
//!
//! [`Network::on_update`] takes in what the datastore says; [`Network::flush_config`] and [`Network::flush`] send what
//! changed for the data plane. The first comes before the policy part of a flush, the second after it.
//!
//! # Invariants
//! - What has been sent in total is a function of the current state of the datastore, never of how it came about.
//! - Nothing is sent twice, and only what was sent is removed. What changed and changed back in between is not sent.
//! - Whether there are routes and ends of VXLAN tunnels follows from the pools at any time; no restart is needed.
//! - An update costs what it touches, see `routes`.

mod bgp;
mod node;
mod node_names;
mod outbox;
mod parameters;
mod pool;
mod prefix_map;
mod resolve;
mod route_table;
mod routes;
#[cfg(test)]
mod tests;
mod vteps;

use ipnet::IpNet;
use tortie_config::DatastoreConfig;

use crate::config::Config;
use crate::input::{IpPool, Node, Update};
use crate::message::{Encapsulation, GlobalBgpConfig, Host, IpamPool, Message};

use outbox::Outbox;
use parameters::Parameters;
use pool::TunnelUse;
use routes::Routes;
use vteps::Vteps;

/// See the module.
#[derive(Debug)]
pub(crate) struct Network {
    parameters: Parameters,
    tunnels: TunnelUse,
    routes: Routes,
    vteps: Vteps,
    hosts: Outbox<String, Host>,
    pools: Outbox<IpNet, IpamPool>,
    bgp: GlobalBgpConfig,
    /// None of it has the same meaning as nothing sent.
    sent_bgp: GlobalBgpConfig,
    sent_encapsulation: Option<Encapsulation>,
}

// === impl Network ===

impl Network {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            parameters: Parameters::new(config),
            tunnels: TunnelUse::new(config),
            routes: Routes::new(config),
            vteps: Vteps::default(),
            hosts: Outbox::default(),
            pools: Outbox::default(),
            bgp: GlobalBgpConfig::default(),
            sent_bgp: GlobalBgpConfig::default(),
            sent_encapsulation: None,
        }
    }

    /// What the datastore says about the parameters of a node; this one, if no questions about others are answered.
    pub(crate) fn parameters_of(&self, node: &str) -> DatastoreConfig {
        self.parameters.of(node)
    }

    /// Takes in the state of an object. Those that do not matter here are ignored.
    pub(crate) fn on_update(&mut self, update: &Update) {
        match update {
            Update::WorkloadEndpoint(key, value) => {
                self.routes.set_workload(key, value.as_deref());
            }
            Update::Block(range, value) => self.routes.set_block(range.trunc(), value.as_ref()),
            Update::Node(name, value) => self.set_node(name, value.as_deref()),
            Update::IpPool(range, value) => self.set_pool(range.trunc(), value.as_ref()),
            Update::BgpConfiguration(value) => self.bgp = bgp::message(value.as_ref()),
            Update::Configuration(name, value) => {
                self.parameters.set_configuration(name, value.as_ref());
            }
            Update::Cluster(value) => self.parameters.set_cluster(value.as_ref()),
            Update::Policy(..)
            | Update::Tier(..)
            | Update::Profile(..)
            | Update::HostEndpoint(..)
            | Update::NetworkSet(..)
            | Update::Service(..)
            | Update::EndpointSlice(..)
            | Update::BgpPeer(..)
            | Update::LiveMigration(..) => {}
        }
    }

    fn set_node(&mut self, name: &str, node: Option<&Node>) {
        self.parameters
            .set_node(name, node.map(|node| &node.labels));
        self.routes.set_node(name, node);
        self.vteps
            .set(name, node.and_then(|node| node::vtep(name, node)));
        let host = node.map(|node| node::host(name, node));
        self.hosts.want(name.to_owned(), host);
    }

    fn set_pool(&mut self, range: IpNet, pool: Option<&IpPool>) {
        self.tunnels.set_pool(range, pool);
        self.routes.set_pool(range, pool);
        let message = pool.map(|pool| pool::ipam_pool(range, pool));
        self.pools.want(range, message);
    }

    /// Sends changes of this node's parameters, which come before everything else.
    pub(crate) fn flush_config(&mut self, in_sync: bool, sink: &mut dyn FnMut(Message)) {
        self.parameters.flush(in_sync, sink);
    }

    /// Sends all other changes, which come after those of policies and endpoints.
    pub(crate) fn flush(&mut self, in_sync: bool, sink: &mut dyn FnMut(Message)) {
        // A route through a tunnel is of use only while its end is known.
        self.routes.resolve(self.tunnels.needs_routes());
        self.vteps.resolve(self.tunnels.needs_vteps());
        self.routes.flush_removals(sink);
        self.vteps.flush(sink);
        self.routes.flush_updates(sink);

        self.flush_nodes(sink);
        self.flush_pools(in_sync, sink);
        self.flush_bgp(sink);
    }

    fn flush_nodes(&mut self, sink: &mut dyn FnMut(Message)) {
        self.hosts.flush_removals(sink, Message::HostMetadataRemove);
        self.hosts
            .flush_updates(sink, |_, host| Message::HostMetadataUpdate(host));
    }

    fn flush_pools(&mut self, in_sync: bool, sink: &mut dyn FnMut(Message)) {
        self.pools
            .flush_removals(sink, |range| Message::IpamPoolRemove(pool::pool_id(range)));
        self.pools.flush_updates(sink, |range, pool| {
            Message::IpamPoolUpdate(pool::pool_id(*range), pool)
        });
        let encapsulation = self.tunnels.encapsulation();
        if in_sync && self.sent_encapsulation != Some(encapsulation) {
            self.sent_encapsulation = Some(encapsulation);
            sink(Message::Encapsulation(encapsulation));
        }
    }

    fn flush_bgp(&mut self, sink: &mut dyn FnMut(Message)) {
        if self.bgp != self.sent_bgp {
            self.sent_bgp.clone_from(&self.bgp);
            sink(Message::GlobalBgpConfigUpdate(self.bgp.clone()));
        }
    }
}
