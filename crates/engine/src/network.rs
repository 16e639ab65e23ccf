//! Everything of the calculation that is not policy: routes, tunnels, nodes, pools, services, parameters.
//!
//! [`Network::on_update`] takes in what the datastore says; [`Network::flush_config`] and [`Network::flush`] send what
//! changed for the data plane. The first comes before the policy part of a flush, the second after it.
//!
//! # Invariants
//! - What has been sent in total is a function of the current state of the datastore, never of how it came about.
//! - Nothing is sent twice, and only what was sent is removed. What changed and changed back in between is not sent.
//! - Whether there are routes and ends of VXLAN tunnels follows from the pools at any time; no restart is needed.
//! - An update costs what it touches, see `routes`.

mod node;
mod node_names;
mod outbox;
mod parameters;
mod pool;
mod prefix_map;
mod resolve;
mod route_table;
mod routes;
mod service;
#[cfg(test)]
mod tests;
mod vteps;

use ipnet::IpNet;
use tortie_api::names::IpVersion;
use tortie_config::DatastoreConfig;

use crate::config::Config;
use crate::input::{IpPool, Node, ObjectName, Update};
use crate::message::{
    Encapsulation, GlobalBgpConfig, Host, IpamPool, Message, Service, WireguardEndpoint,
};

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
    wireguard: Outbox<String, WireguardEndpoint>,
    wireguard_v6: Outbox<String, WireguardEndpoint>,
    hosts: Outbox<String, Host>,
    pools: Outbox<IpNet, IpamPool>,
    services: Outbox<ObjectName, Service>,
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
            wireguard: Outbox::default(),
            wireguard_v6: Outbox::default(),
            hosts: Outbox::default(),
            pools: Outbox::default(),
            services: Outbox::default(),
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
            Update::Service(name, value) => {
                let message = value.as_ref().map(|value| service::service(name, value));
                self.services.want(name.clone(), message);
            }
            Update::BgpConfiguration(value) => self.bgp = service::bgp(value.as_ref()),
            Update::Configuration(name, value) => {
                self.parameters.set_configuration(name, value.as_ref());
            }
            Update::Cluster(value) => self.parameters.set_cluster(value.as_ref()),
            Update::Policy(..)
            | Update::Tier(..)
            | Update::Profile(..)
            | Update::HostEndpoint(..)
            | Update::NetworkSet(..)
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
        let wireguard = |version| node.and_then(|node| node::wireguard(name, node, version));
        self.wireguard
            .want(name.to_owned(), wireguard(IpVersion::V4));
        self.wireguard_v6
            .want(name.to_owned(), wireguard(IpVersion::V6));
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
        self.flush_services(sink);
    }

    fn flush_nodes(&mut self, sink: &mut dyn FnMut(Message)) {
        let (v4, v6) = (&mut self.wireguard, &mut self.wireguard_v6);
        v4.flush_removals(sink, Message::WireguardRemove);
        v6.flush_removals(sink, Message::WireguardV6Remove);
        v4.flush_updates(sink, |_, device| Message::WireguardUpdate(device));
        v6.flush_updates(sink, |_, device| Message::WireguardV6Update(device));

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

    fn flush_services(&mut self, sink: &mut dyn FnMut(Message)) {
        if self.bgp != self.sent_bgp {
            self.sent_bgp.clone_from(&self.bgp);
            sink(Message::GlobalBgpConfigUpdate(self.bgp.clone()));
        }
        self.services.flush_removals(sink, Message::ServiceRemove);
        self.services
            .flush_updates(sink, |_, service| Message::ServiceUpdate(service));
    }
}
