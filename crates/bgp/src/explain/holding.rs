//! Who has a prefix of its own, with which routes, and why somebody who might have it has none.

use std::collections::BTreeSet;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::BlockAffinity;
use tortie_api::kinds::block_affinity::BlockAffinityState;

use super::route::{Route, Source};
use crate::inputs;
use crate::plan::{FamilyPlan, Origin, Plan};
use crate::{Cluster, Family, Reason};

/// The routes that a node's BIRD has from itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Holding {
    pub(super) routes: Vec<Held>,
    /// Why there are not more.
    pub(super) lacks: Vec<Reason>,
}

#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) route: Route,
    reason: Reason,
}

impl Held {
    fn new(network: IpNet, source: Source, text: &str, origin: Origin) -> Self {
        Self {
            route: Route::new(network, source),
            reason: Reason::new(text).of(origin),
        }
    }
}

impl Holding {
    pub(super) fn new(cluster: &mut Cluster, node: &str, plan: &Plan, network: IpNet) -> Self {
        let of_family = plan.family(Family::of_network(network));
        let mut routes = fixed(of_family, node, network);
        if routes.is_empty() {
            routes.extend(workload(of_family, network));
        }
        let mut lacks = Vec::new();
        if routes.is_empty() {
            lacks = why_not(cluster, node, plan, network);
        }
        Self { routes, lacks }
    }

    pub(super) fn reasons(&self) -> Vec<Reason> {
        self.routes.iter().map(|held| held.reason.clone()).collect()
    }
}

/// Routes that BIRD's configuration has, and that of the node's own network.
fn fixed(plan: &FamilyPlan, node: &str, network: IpNet) -> Vec<Held> {
    let blocks = plan.blocks.iter().filter(|block| block.has_route());
    let blocks = blocks.map(|block| (block.network, "a block of the node", &block.origin));
    let services = plan.services.iter();
    let services = services.map(|one| (one.network, "addresses of services", &one.origin));
    let ways = plan.reachable.iter();
    let ways = ways.map(|via| (IpNet::from(via.address), "the way to a peer", &via.origin));
    let mut routes: Vec<Held> = blocks
        .chain(services)
        .chain(ways)
        .filter(|(of, _, _)| *of == network)
        .map(|(of, text, origin)| Held::new(of, Source::Static, text, origin.clone()))
        .collect();
    if plan.network == Some(network) {
        let field = address_field(plan.family);
        let origin = Origin::new("Node", node, field);
        let text = "the network that the node's address is in";
        routes.push(Held::new(network, Source::Device, text, origin));
    }
    routes
}

/// Where a workload has an address of a block of the node, the agent makes a route to it.
fn workload(plan: &FamilyPlan, network: IpNet) -> Option<Held> {
    let is_single = network.prefix_len() == plan.family.bits();
    let mut blocks = plan.blocks.iter();
    let block = blocks.find(|block| is_single && block.network.contains(&network))?;
    let text = "an address of a block of the node, which has a route if a workload has it";
    Some(Held::new(
        network,
        Source::Kernel,
        text,
        block.origin.clone(),
    ))
}

pub(super) fn address_field(family: Family) -> &'static str {
    match family {
        Family::V4 => "spec.bgp.ipv4Address",
        Family::V6 => "spec.bgp.ipv6Address",
    }
}

/// The nodes that have the prefix, or a claim on it.
pub(super) fn holders(cluster: &mut Cluster, network: IpNet) -> Vec<Arc<str>> {
    let claims = claims(cluster, network);
    let by_claim: BTreeSet<&str> = claims.iter().map(|claim| &*claim.spec.node).collect();
    let names: Vec<Arc<str>> = cluster.nodes().cloned().collect();
    let found: Vec<Arc<str>> = names
        .iter()
        .filter(|name| by_claim.contains(&***name))
        .cloned()
        .collect();
    if !found.is_empty() || !may_be_of_services(cluster, network) {
        return found;
    }
    // Nodes differ in what they tell of services.
    let mut found = Vec::new();
    for name in names {
        let plan = cluster.plan(&name);
        let mut services = plan.family(Family::of_network(network)).services.iter();
        if services.any(|service| service.network == network) {
            found.push(name);
        }
        if found.len() > super::MAX_HOLDERS {
            break;
        }
    }
    found
}

/// Claims on the block that the prefix is, or is in.
fn claims(cluster: &Cluster, network: IpNet) -> Vec<BlockAffinity> {
    let affinities = cluster.affinities();
    let held = affinities.filter(|affinity| {
        let block = inputs::network(&affinity.spec.cidr);
        block.is_some_and(|block| block.contains(&network))
    });
    held.cloned().collect()
}

fn may_be_of_services(cluster: &Cluster, network: IpNet) -> bool {
    let spec = &cluster.all().configuration;
    let ranges = spec
        .service_cluster_ips
        .iter()
        .chain(&spec.service_external_ips)
        .chain(&spec.service_load_balancer_ips);
    let has = |network: &IpNet, text: &str| {
        inputs::network(text).is_some_and(|range| range.contains(network))
    };
    let is_in_range = ranges.into_iter().any(|range| has(&network, &range.cidr));
    // Addresses of the cluster are told wherever they are.
    let is_single = network.prefix_len() == Family::of_network(network).bits();
    is_in_range || is_single && !spec.service_cluster_ips.is_empty()
}

/// Why a node that has a claim, or might have one, has no route.
fn why_not(cluster: &mut Cluster, node: &str, plan: &Plan, network: IpNet) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = claims(cluster, network)
        .iter()
        .filter(|claim| claim.spec.node == node)
        .map(|claim| of_claim(claim, network))
        .collect();
    if reasons.is_empty() {
        reasons = of_services(cluster, node, plan, network);
    }
    if reasons.is_empty() {
        reasons = nobody(cluster, network);
    }
    reasons
}

fn of_claim(claim: &BlockAffinity, network: IpNet) -> Reason {
    let (name, spec) = (claim.metadata.name.as_str(), &claim.spec);
    let origin = |field: &'static str| Origin::new("BlockAffinity", name, field);
    let block = &spec.cidr;
    if spec.deleted {
        return Reason::new(format!("the claim of the node on {block} is being removed"))
            .of(origin("spec.deleted"))
            .value(true)
            .remedy("nothing: address management does it");
    }
    if !matches!(&*spec.r#type, "" | "host") {
        return Reason::new(format!("the block {block} is of no node"))
            .of(origin("spec.type"))
            .value(&spec.r#type)
            .remedy("address management gives blocks of nodes the type host");
    }
    if spec.state == BlockAffinityState::Pending {
        return Reason::new(format!("the node has announced its claim on {block}, and has not got the block so far"))
            .of(origin("spec.state"))
            .value("pending")
            .remedy(format!(
                "the state is confirmed once the block is written: `tortie ipam check` finds claims that nobody goes on with, and those \
                 of {block} are over when the node assigns its next address"
            ));
    }
    Reason::new(format!(
        "{network} is a part of the block {block}, which is told as a whole"
    ))
    .of(origin("spec.cidr"))
    .value(block)
    .remedy(format!("ask about {block}"))
}

/// Why a node tells no address of services.
pub(super) fn of_services(
    cluster: &mut Cluster,
    node: &str,
    plan: &Plan,
    network: IpNet,
) -> Vec<Reason> {
    let family = Family::of_network(network);
    if !may_be_of_services(cluster, network) {
        return Vec::new();
    }
    let inputs = cluster.inputs(node);
    let mut reasons = Vec::new();
    let is_excluded = inputs.local().is_some_and(inputs::NodeFacts::is_excluded);
    if is_excluded {
        let field = "metadata.labels[node.kubernetes.io/exclude-from-external-load-balancers]";
        reasons.push(
            Reason::new("the node tells no addresses of services")
                .of(Origin::new("Node", node, field))
                .value(true)
                .remedy("take the label away"),
        );
    }
    for (name, service) in inputs.services.iter() {
        let mut addresses = service
            .cluster_ips
            .iter()
            .chain(&service.external_ips)
            .chain(&service.load_balancer_ips);
        if !addresses.any(|address| IpNet::from(*address) == network) || is_excluded {
            continue;
        }
        let full = format!("{}/{}", name.0, name.1);
        let ready = inputs.services.ready(name, &service.families);
        let is_local = service.policy == inputs::TrafficPolicy::Local;
        let mut ranges = plan.family(family).services.iter();
        if is_local && !ready.here {
            reasons.push(
                Reason::new("no ready endpoint of the service is on the node")
                    .of(Origin::new("Service", full, "spec.externalTrafficPolicy"))
                    .value("Local")
                    .remedy(
                        "nodes with an endpoint tell it; with Cluster all nodes tell its range",
                    ),
            );
        } else if let Some(range) = ranges.find(|range| range.network.contains(&network)) {
            reasons.push(
                Reason::new(format!(
                    "it is told as part of {}, which all nodes tell",
                    range.network
                ))
                .of(range.origin.clone())
                .value(range.network)
                .remedy(
                    "with externalTrafficPolicy: Local, nodes with endpoints tell single addresses",
                ),
            );
        } else if !ready.anywhere {
            reasons.push(
                Reason::new("the service has no ready endpoint")
                    .of(Origin::new("Service", full, "spec.selector"))
                    .remedy("an EndpointSlice with a ready endpoint"),
            );
        } else {
            reasons.push(
                Reason::new("no range of the configuration has this address of the service")
                    .of(Origin::new("Service", full, "spec"))
                    .remedy("add its range to serviceClusterIPs, serviceExternalIPs or serviceLoadBalancerIPs of BGPConfiguration(default)"),
            );
        }
    }
    reasons
}

/// Why nobody has the prefix.
pub(super) fn nobody(cluster: &Cluster, network: IpNet) -> Vec<Reason> {
    if let Some(claim) = claims(cluster, network).first() {
        let node = &claim.spec.node;
        if !matches!(&*claim.spec.r#type, "" | "host") {
            return vec![of_claim(claim, network)];
        }
        return vec![
            Reason::new(format!(
                "the block is of node {node}, of which there is no Node"
            ))
            .of(Origin::new(
                "BlockAffinity",
                claim.metadata.name.as_str(),
                "spec.node",
            ))
            .value(node)
            .remedy(format!(
                "`tortie node startup` on {node}, or `tortie ipam check` if it is gone"
            )),
        ];
    }
    let pools = cluster.all().pools.iter();
    let mut pools = pools.filter(|(_, pool)| {
        let of_pool = pool.network.as_ref();
        of_pool.is_ok_and(|of_pool| of_pool.contains(&network))
    });
    if let Some((name, _)) = pools.next() {
        let origin = Origin::new("IPPool", Arc::clone(name), "spec.cidr");
        return vec![
            Reason::new("no node has claimed a block with it, as a node does for the first workload that needs an address")
                .of(origin)
                .remedy("a workload with an address of it"),
        ];
    }
    vec![
        Reason::new("no IPPool and no range of services holds it")
            .remedy("an IPPool with it, or a range in serviceClusterIPs, serviceExternalIPs or serviceLoadBalancerIPs of BGPConfiguration(default)"),
    ]
}
