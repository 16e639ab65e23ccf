//! Addresses of services: which of them this node tells its peers.
//!
//! Whole ranges are told by all nodes, single addresses by those that have endpoints behind them, where the service wants that.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::kinds::bgp_configuration::{ServiceIpBlock, ServiceLoadBalancerAggregation};

use super::settings::configuration;
use super::{Blackhole, FamilyPlan, Origin, Problems, routes, shown};
use crate::inputs::{self, ServiceFacts, ServiceName, TrafficPolicy};
use crate::{Family, Inputs, PerFamily};

/// The ranges that a configuration has.
struct Ranges {
    cluster: Vec<Blackhole>,
    external: Vec<Blackhole>,
    load_balancer: Vec<Blackhole>,
}

pub(super) fn plan(inputs: &Inputs, families: &mut PerFamily<FamilyPlan>, problems: &mut Problems) {
    let is_excluded = inputs.local().is_some_and(inputs::NodeFacts::is_excluded);
    let is_reflector = inputs
        .local()
        .is_some_and(|node| node.session.cluster_id.is_some());
    let ranges = Ranges::read(inputs, problems);
    let of_load_balancers = ranges
        .load_balancer
        .iter()
        .filter(|_| is_aggregated(inputs));
    let aggregates = ranges
        .cluster
        .iter()
        .chain(&ranges.external)
        .chain(of_load_balancers);
    for range in aggregates.filter(|range| !is_single(range.network)) {
        let family = families.get_mut(Family::of_network(range.network));
        family.rejected.push(range.clone());
        if !is_excluded {
            family.services.push(range.clone());
        }
    }
    if is_reflector {
        for range in ranges.load_balancer.iter().chain(&ranges.external) {
            let family = families.get_mut(Family::of_network(range.network));
            family.reflected.push(range.clone());
        }
    }
    for (name, _) in inputs.services.iter() {
        for (address, field) in routes(inputs, name) {
            let network = IpNet::from(address);
            let origin = Origin::new("Service", format!("{}/{}", name.0, name.1), field);
            let route = Blackhole { network, origin };
            let family = families.get_mut(Family::of(address));
            // The node's own packets to it must not vanish.
            if !family
                .rejected
                .iter()
                .any(|range| range.network.contains(&network))
            {
                family.rejected.push(route.clone());
            }
            family.services.push(route);
        }
    }
    for family in Family::BOTH {
        let plan = families.get_mut(family);
        unique(&mut plan.services);
        unique(&mut plan.rejected);
    }
}

/// In the order of their text, each network once, with the first of its origins.
fn unique(entries: &mut Vec<Blackhole>) {
    let mut first: BTreeMap<IpNet, Blackhole> = BTreeMap::new();
    for entry in entries.drain(..) {
        first.entry(entry.network).or_insert(entry);
    }
    entries.extend(first.into_values());
    routes::sort(entries, |entry| entry.network);
}

/// The addresses of a service that this node tells its peers, each with the field that has it.
pub(crate) fn routes(inputs: &Inputs, name: &ServiceName) -> Vec<(IpAddr, &'static str)> {
    let Some(service) = inputs.services.get(name) else {
        return Vec::new();
    };
    let spec = &inputs.configuration;
    let is_configured = [
        &spec.service_cluster_ips,
        &spec.service_external_ips,
        &spec.service_load_balancer_ips,
    ];
    if is_configured.iter().all(|ranges| ranges.is_empty()) || !is_told(inputs, name, service) {
        return Vec::new();
    }
    let mut routes = Vec::new();
    if !spec.service_cluster_ips.is_empty() {
        routes.extend(
            service
                .cluster_ips
                .iter()
                .map(|ip| (*ip, "spec.clusterIPs")),
        );
    }
    let external = networks(&spec.service_external_ips);
    let allowed = service
        .external_ips
        .iter()
        .filter(|ip| covers(&external, **ip));
    routes.extend(allowed.map(|ip| (*ip, "spec.externalIPs")));
    let load_balancer = networks(&spec.service_load_balancer_ips);
    let given = service.load_balancer_ips.iter();
    let allowed = given.filter(|ip| covers(&load_balancer, **ip));
    routes.extend(allowed.map(|ip| (*ip, "status.loadBalancer.ingress")));
    routes
}

/// Whether this node tells its peers of the single addresses of a service.
fn is_told(inputs: &Inputs, name: &ServiceName, service: &ServiceFacts) -> bool {
    if inputs.local().is_some_and(inputs::NodeFacts::is_excluded) {
        return false;
    }
    let spec = &inputs.configuration;
    if service.policy == TrafficPolicy::Cluster {
        let is_single_of = |blocks: &[ServiceIpBlock], address: &IpAddr| {
            let mut networks = networks(blocks).into_iter();
            networks.any(|network| is_single(network) && network.contains(address))
        };
        let external = &service.external_ips;
        let mut given = service
            .load_balancer_ips
            .iter()
            .chain(&service.requested_ip);
        // The range is told by nobody, since it is a single address.
        if service.is_load_balancer
            && given.any(|address| is_single_of(&spec.service_load_balancer_ips, address))
            || external
                .iter()
                .any(|address| is_single_of(&spec.service_external_ips, address))
        {
            return true;
        }
    }
    let is_local = service.policy == TrafficPolicy::Local;
    if !is_local && is_aggregated(inputs) {
        return false;
    }
    let ready = inputs.services.ready(name, &service.families);
    if is_local { ready.here } else { ready.anywhere }
}

fn is_aggregated(inputs: &Inputs) -> bool {
    inputs.configuration.service_load_balancer_aggregation
        != Some(ServiceLoadBalancerAggregation::Disabled)
}

fn is_single(network: IpNet) -> bool {
    network.prefix_len() == Family::of_network(network).bits()
}

fn networks(blocks: &[ServiceIpBlock]) -> Vec<IpNet> {
    let blocks = blocks.iter();
    blocks
        .filter_map(|block| inputs::network(&block.cidr))
        .collect()
}

fn covers(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

impl Ranges {
    fn read(inputs: &Inputs, problems: &mut Problems) -> Self {
        let spec = &inputs.configuration;
        let mut read = |field: &'static str, blocks: &[ServiceIpBlock]| {
            let mut ranges = Vec::new();
            for (index, block) in blocks.iter().enumerate() {
                let name: Arc<str> = configuration(field).name;
                let field = format!("spec.{field}[{index}].cidr");
                let origin = Origin::new("BGPConfiguration", name, field);
                match inputs::network(&block.cidr) {
                    Some(network) => ranges.push(Blackhole { network, origin }),
                    None => problems.push(origin.problem(format!(
                        "{} is not a network such as 10.96.0.0/12; it is left out",
                        shown(&block.cidr)
                    ))),
                }
            }
            ranges
        };
        Self {
            cluster: read("serviceClusterIPs", &spec.service_cluster_ips),
            external: read("serviceExternalIPs", &spec.service_external_ips),
            load_balancer: read("serviceLoadBalancerIPs", &spec.service_load_balancer_ips),
        }
    }
}
