//! What becomes of a route, decided as the filters of BIRD 2's configuration decide, in their order, and what decided it.

use ipnet::IpNet;

use super::route::{Route, Source};
use crate::Family;
use crate::plan::{
    Action, Condition, Encapsulation, FamilyPlan, FilterRule, MAX_PREFERENCE, NetMatch,
    OVERRIDE_PREFERENCE, Operation, Origin, Peer, PeerType, Plan, Pool, Programmer,
};

/// Devices of agents: each node's agent makes these routes itself.
const AGENTS_DEVICES: [&str; 2] = [".cali", ".calico"];

/// The device of IP-in-IP.
const IPIP_DEVICE: &str = "tunl0";

/// What becomes of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The route as it goes on; none where it ends.
    pub route: Option<Route>,
    /// What decided.
    pub by: By,
}

/// What decides about a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// A rule of a filter.
    Rule(Origin),
    /// A pool, by its export.
    Pool(Origin),
    /// A block of the node, of which the whole is told.
    Block(Origin),
    /// A block of the node of which the route is a part.
    PartOfBlock(IpNet, Origin),
    /// The same, but the address is on the move, so that it is told by itself.
    Moving(IpNet, Origin),
    /// Addresses of services.
    Service(Origin),
    /// The device that it leads through, whose routes each agent makes itself.
    Device(String),
    /// The kernel has made it.
    OwnNetwork,
    /// The next hop is reached through `WireGuard`.
    WireGuard(Origin),
    /// The pool's routes are programmed by somebody else.
    Programmer(Origin, Encapsulation),
    /// Nothing in particular.
    Default,
}

impl Decision {
    fn accepted(route: Route, by: By) -> Self {
        Self {
            route: Some(route),
            by,
        }
    }

    fn rejected(by: By) -> Self {
        Self { route: None, by }
    }

    /// Whether the route goes on.
    pub fn is_accepted(&self) -> bool {
        self.route.is_some()
    }
}

/// Whether a peer is told of a route that the node's BIRD uses.
pub fn export(plan: &Plan, peer: &Peer, mut route: Route) -> Decision {
    let of_family = plan.family(Family::of_network(route.network));
    prepare(of_family, &mut route);
    let is_internal = plan.is_internal(peer);
    for rule in rules(plan, of_family.family, peer, Way::Export) {
        if let Some(decision) = decide(rule, is_internal, &mut route) {
            return decision;
        }
    }
    told(of_family, is_internal, route)
}

/// Whether what a peer tells is taken.
pub fn import(plan: &Plan, peer: &Peer, mut route: Route) -> Decision {
    let of_family = plan.family(Family::of_network(route.network));
    let is_internal = plan.is_internal(peer);
    for rule in rules(plan, of_family.family, peer, Way::Import) {
        if let Some(decision) = decide(rule, is_internal, &mut route) {
            return decision;
        }
    }
    let normal = MAX_PREFERENCE - of_family.normal_priority;
    if route.local_preference.is_some_and(|given| given > normal) {
        route.preference = OVERRIDE_PREFERENCE;
    }
    Decision::accepted(route, By::Default)
}

/// Whether BIRD programs a route into the kernel.
pub fn program(plan: &Plan, mut route: Route) -> Decision {
    let of_family = plan.family(Family::of_network(route.network));
    if route.source == Source::Device {
        return Decision::rejected(By::OwnNetwork);
    }
    let mut rejected = of_family.rejected.iter();
    if let Some(range) = rejected.find(|range| range.network.contains(&route.network)) {
        return Decision::rejected(By::Service(range.origin.clone()));
    }
    let priority = of_family.normal_priority;
    if route.source == Source::Bgp && route.metric.is_none() {
        let metric = route
            .local_preference
            .map_or(priority, |given| MAX_PREFERENCE.wrapping_sub(given));
        route.metric = Some(metric);
        if metric < priority {
            route.preference = OVERRIDE_PREFERENCE;
        }
    }
    let mut encrypted = of_family.wireguard.iter();
    let hop = encrypted.find(|(hop, _)| route.next_hop == Some(*hop));
    if let Some((_, origin)) = hop {
        return Decision::rejected(By::WireGuard(origin.clone()));
    }
    match deciding_pool(of_family, route.network) {
        Some(pool) if is_programmed(pool) => {
            Decision::accepted(route, By::Pool(pool.origin.clone()))
        }
        Some(pool) => Decision::rejected(By::Programmer(pool.origin.clone(), pool.encapsulation)),
        None => Decision::accepted(route, By::Default),
    }
}

/// The pool that decides who programs a route: of IPv4 the first that has it, and of IPv6 one that is not BIRD's.
pub(super) fn deciding_pool(plan: &FamilyPlan, network: IpNet) -> Option<&Pool> {
    let pools = || {
        plan.pools
            .iter()
            .filter(|pool| pool.network.contains(&network))
    };
    match plan.family {
        // Nothing is said about pools of IPv4 on a node without an address of it.
        Family::V4 if plan.address.is_none() => None,
        Family::V4 => pools().next(),
        Family::V6 => {
            let mut others = pools().filter(|pool| !is_programmed(pool));
            others.next().or_else(|| pools().next())
        }
    }
}

/// BIRD 2 sends nothing through a tunnel of IPv4.
fn is_programmed(pool: &Pool) -> bool {
    let is_plain = pool.encapsulation == Encapsulation::None || pool.network.addr().is_ipv6();
    pool.is_kept || pool.programmer == Programmer::Bird && is_plain
}

/// What was learnt has a preference; what was not has the metric that the kernel says.
fn prepare(plan: &FamilyPlan, route: &mut Route) {
    match route.local_preference {
        Some(preference) if route.source == Source::Bgp => {
            route.metric = Some(MAX_PREFERENCE.wrapping_sub(preference));
        }
        _ => {
            let metric = *route.metric.get_or_insert(plan.normal_priority);
            route.local_preference = Some(MAX_PREFERENCE.wrapping_sub(metric));
        }
    }
}

/// What is told where no filter decides.
fn told(plan: &FamilyPlan, is_internal: bool, mut route: Route) -> Decision {
    let network = route.network;
    let pool = |is_exported: bool| {
        let mut pools = plan
            .pools
            .iter()
            .filter(|pool| pool.is_exported == is_exported);
        pools.find(|pool| pool.network.contains(&network))
    };
    if let Some(pool) = pool(false) {
        return Decision::rejected(By::Pool(pool.origin.clone()));
    }
    if let Some(device) = &route.interface {
        let is_tunnel =
            AGENTS_DEVICES.iter().any(|end| device.ends_with(end)) || device == IPIP_DEVICE;
        let is_bpf = device.starts_with("bpf") && device.ends_with(AGENTS_DEVICES[0]);
        if is_internal && is_tunnel || is_bpf {
            return Decision::rejected(By::Device(device.clone()));
        }
    }
    let marks = plan.communities.iter();
    for rule in marks.filter(|rule| rule.network.contains(&network)) {
        route.communities.extend(&rule.communities);
    }
    let blocks = || plan.blocks.iter().filter(|block| block.is_told);
    if let Some(block) = blocks().find(|block| block.network == network) {
        return Decision::accepted(route, By::Block(block.origin.clone()));
    }
    if let Some(block) = blocks().find(|block| block.network.contains(&network)) {
        let (outer, origin) = (block.network, block.origin.clone());
        return if route
            .metric
            .is_some_and(|metric| metric < plan.normal_priority)
        {
            Decision::accepted(route, By::Moving(outer, origin))
        } else {
            Decision::rejected(By::PartOfBlock(outer, origin))
        };
    }
    let mut services = plan.services.iter().chain(&plan.reflected);
    if let Some(service) = services.find(|service| service.network.contains(&network)) {
        return Decision::accepted(route, By::Service(service.origin.clone()));
    }
    match pool(true) {
        Some(pool) => Decision::accepted(route, By::Pool(pool.origin.clone())),
        None => Decision::rejected(By::Default),
    }
}

#[derive(Clone, Copy)]
enum Way {
    Import,
    Export,
}

/// All rules that are asked for a session, in their order.
fn rules<'a>(
    plan: &'a Plan,
    family: Family,
    peer: &'a Peer,
    way: Way,
) -> impl Iterator<Item = &'a FilterRule> {
    let filters = peer
        .filters
        .iter()
        .filter_map(|index| plan.filters.get(*index));
    filters.flat_map(move |filter| {
        let rules = filter.rules.get(family);
        match way {
            Way::Import => &rules.import,
            Way::Export => &rules.export,
        }
    })
}

/// What a rule says, if it is about this route.
fn decide(rule: &FilterRule, is_internal: bool, route: &mut Route) -> Option<Decision> {
    let is_peer = rule
        .peers
        .is_none_or(|peers| (peers == PeerType::Internal) == is_internal);
    if !is_peer
        || !rule
            .conditions
            .iter()
            .all(|condition| holds(condition, route))
    {
        return None;
    }
    for operation in &rule.operations {
        change(operation, route);
    }
    let by = By::Rule(rule.origin.clone());
    Some(match rule.action {
        Action::Accept => Decision::accepted(route.clone(), by),
        Action::Reject => Decision::rejected(by),
    })
}

fn holds(condition: &Condition, route: &Route) -> bool {
    match condition {
        Condition::Net {
            operator,
            network,
            lengths,
        } => {
            let (net, bits) = (route.network, route.network.prefix_len());
            let is_in = match lengths {
                Some((min, max)) => network.contains(&net) && (*min..=*max).contains(&bits),
                None => network.contains(&net),
            };
            match operator {
                NetMatch::Equal => net == *network,
                NetMatch::NotEqual => net != *network,
                NetMatch::In => is_in,
                NetMatch::NotIn => !is_in,
            }
        }
        Condition::FromPeers => route.source == Source::Bgp,
        Condition::Interface(pattern) => {
            let interface = route.interface.as_deref();
            interface.is_some_and(|interface| pattern.matches(interface))
        }
        Condition::Community(community) => route.communities.contains(community),
        Condition::AsPath(path) => route.as_path.starts_with(path),
        Condition::Priority(priority) => route.local_preference == Some(MAX_PREFERENCE - priority),
    }
}

fn change(operation: &Operation, route: &mut Route) {
    match operation {
        Operation::AddCommunity(community) => {
            route.communities.insert(*community);
        }
        Operation::Prepend(numbers) => {
            route.as_path.splice(0..0, numbers.iter().copied());
        }
        Operation::SetPriority(priority) => {
            route.local_preference = Some(MAX_PREFERENCE - priority);
        }
    }
}
