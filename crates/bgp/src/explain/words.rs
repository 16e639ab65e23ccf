//! What decided, in words.

use std::sync::Arc;

use ipnet::IpNet;

use super::answer::{Learnt, Programmed};
use super::decision::{By, Decision, deciding_pool, program};
use super::holding::Holding;
use super::route::Source;
use crate::plan::{Encapsulation, Origin, Peer, Plan, Programs};
use crate::{Family, Reason};

/// Who programs a route.
const BIRD: &str = "BIRD";
const AGENT: &str = "the agent";
const KERNEL: &str = "the kernel itself";

/// The field of a pool that keeps its routes at home.
const EXPORT: &str = "spec.disableBGPExport";

/// Why a peer is told, or not.
pub(super) fn exported(plan: &Plan, peer: &Peer, decision: &Decision, network: IpNet) -> Reason {
    let is_told = decision.is_accepted();
    match &decision.by {
        By::Rule(origin) => of_rule(origin, is_told, peer, "export", network),
        By::Pool(origin) => {
            let name = &origin.name;
            let origin = Origin::new("IPPool", Arc::clone(name), EXPORT);
            if is_told {
                return Reason::new(format!("IPPool({name}) has it, whose routes are told"))
                    .of(origin);
            }
            Reason::new(format!("IPPool({name}) has it, whose routes stay at home"))
                .of(origin)
                .value(true)
                .remedy("set it to false")
        }
        By::Block(origin) => Reason::new("it is a block of the node").of(origin.clone()),
        By::PartOfBlock(block, origin) => Reason::new(format!(
            "it is a part of the block {block}, which is told as a whole"
        ))
        .of(origin.clone())
        .remedy(format!("peers find the way by {block}: ask about that")),
        By::Moving(block, origin) => Reason::new(format!(
            "it is on the move, and told by itself besides its block {block}"
        ))
        .of(origin.clone()),
        By::Service(origin) => Reason::new("it is of services").of(origin.clone()),
        By::Device(device) => Reason::new(format!(
            "it leads through {device}, and the agent of each node makes such routes itself"
        )),
        By::OwnNetwork | By::WireGuard(_) | By::Programmer(..) | By::Default => {
            let filters = if peer.filters.is_empty() {
                "the session has no filters"
            } else {
                "no rule of its filters is about it"
            };
            let field = if Family::of_network(network) == Family::V4 {
                "exportV4"
            } else {
                "exportV6"
            };
            let node = &plan.node;
            Reason::new(format!("no IPPool and no range of services that {node} tells has it, and {filters}"))
                .of(peer.origin.clone())
                .remedy(format!(
                    "an IPPool with it; or a rule under spec.{field} of a BGPFilter that accepts it, in spec.filters of the BGPPeer"
                ))
        }
    }
}

/// Why what a peer tells is taken, or not.
pub(super) fn imported(plan: &Plan, peer: &Peer, decision: &Decision) -> Reason {
    let is_taken = decision.is_accepted();
    match &decision.by {
        By::Rule(origin) => {
            let network = decision.route.as_ref().map(|route| route.network);
            let mut reason = of_rule_in_words(origin, is_taken, network);
            if !is_taken {
                reason.remedy = Some(remedy_of_rule(peer, "import"));
            }
            reason
        }
        _ => Reason::new(format!("{} takes what no filter rejects", plan.node)),
    }
}

fn of_rule(origin: &Origin, accepts: bool, peer: &Peer, way: &str, network: IpNet) -> Reason {
    let mut reason = of_rule_in_words(origin, accepts, Some(network));
    if !accepts {
        reason.remedy = Some(remedy_of_rule(peer, way));
    }
    reason
}

fn of_rule_in_words(origin: &Origin, accepts: bool, network: Option<IpNet>) -> Reason {
    let verb = if accepts { "accepts" } else { "rejects" };
    let what = network.map_or("it".to_owned(), |network| network.to_string());
    let name = &origin.name;
    Reason::new(format!("a rule of BGPFilter({name}) {verb} {what}")).of(origin.clone())
}

fn remedy_of_rule(peer: &Peer, way: &str) -> String {
    let owner = &peer.origin.name;
    format!(
        "a rule for {way} before it that accepts, or spec.filters of BGPPeer({owner}) without this filter"
    )
}

/// Whether a kernel gets a route to what is the node's own.
pub(super) fn own(plan: &Plan, holding: &Holding, network: IpNet) -> Programmed {
    let Some(held) = holding.routes.first() else {
        return Programmed {
            by: None,
            is_programmed: Some(false),
            reason: Reason::new("the node has no such route"),
        };
    };
    match held.route.source {
        Source::Device => Programmed {
            by: Some(KERNEL),
            is_programmed: Some(true),
            reason: Reason::new("the kernel has it with the address"),
        },
        Source::Kernel => Programmed {
            by: Some(AGENT),
            is_programmed: None,
            reason: Reason::new("the agent makes it while a workload has the address"),
        },
        Source::Static | Source::Bgp => {
            let decision = program(plan, held.route.clone());
            of_decision(plan, &decision, network, &|| {
                Reason::new("packets for it that no workload takes are dropped here")
            })
        }
    }
}

/// Whether a kernel gets a route to what others have.
pub(super) fn programmed(plan: &Plan, learnt: &[Learnt], network: IpNet) -> Programmed {
    let mut routes = learnt.iter().filter_map(|one| one.route.as_ref());
    let Some(route) = routes.next() else {
        return without_route(plan, learnt, network);
    };
    let decision = program(plan, route.clone());
    of_decision(plan, &decision, network, &|| {
        Reason::new("it is learnt, and nobody else programs it")
    })
}

fn without_route(plan: &Plan, learnt: &[Learnt], network: IpNet) -> Programmed {
    let of_family = plan.family(Family::of_network(network));
    if let Some(pool) = deciding_pool(of_family, network)
        && is_agents(plan, pool.encapsulation)
    {
        return Programmed {
            by: Some(AGENT),
            is_programmed: Some(true),
            reason: Reason::new("the agent makes it from the datastore, whoever tells it by BGP")
                .of(pool.origin.clone()),
        };
    }
    let is_known = learnt.iter().all(|one| one.is_learnt.is_some());
    Programmed {
        by: None,
        is_programmed: is_known.then_some(false),
        reason: Reason::new("BIRD programs what it learns").remedy("that it is learnt"),
    }
}

fn of_decision(
    plan: &Plan,
    decision: &Decision,
    network: IpNet,
    accepted: &dyn Fn() -> Reason,
) -> Programmed {
    let done = |by, reason| Programmed {
        by: Some(by),
        is_programmed: Some(true),
        reason,
    };
    if decision.is_accepted() {
        let mut reason = accepted();
        if let By::Pool(origin) = &decision.by {
            reason.origin = Some(origin.clone());
        }
        return done(BIRD, reason);
    }
    match &decision.by {
        By::OwnNetwork => done(KERNEL, Reason::new("the kernel has it with the address")),
        By::WireGuard(origin) => done(
            AGENT,
            Reason::new("the next hop is reached through WireGuard, which is the agent's on both sides")
                .of(origin.clone()),
        ),
        By::Programmer(origin, encapsulation) if is_agents(plan, *encapsulation) => done(
            AGENT,
            Reason::new(format!("routes of pools {} are the agent's", words(*encapsulation)))
                .of(origin.clone()),
        ),
        By::Programmer(origin, encapsulation) => Programmed {
            by: None,
            is_programmed: Some(false),
            reason: nobodys(plan, origin, *encapsulation),
        },
        By::Service(origin) => Programmed {
            by: None,
            is_programmed: Some(false),
            reason: Reason::new(format!("{network} is of services, whose packets kube-proxy sends on: BIRD programs no routes for it"))
                .of(origin.clone())
                .remedy("nothing: nodes reach services without routes"),
        },
        _ => Programmed {
            by: None,
            is_programmed: Some(false),
            reason: Reason::new("the filter for the kernel rejects it"),
        },
    }
}

fn is_agents(plan: &Plan, encapsulation: Encapsulation) -> bool {
    let Programs { ipip, no_encap } = plan.agent_programs;
    match encapsulation {
        Encapsulation::Vxlan => true,
        Encapsulation::Ipip(_) => ipip,
        Encapsulation::None => no_encap,
    }
}

fn nobodys(plan: &Plan, pool: &Origin, encapsulation: Encapsulation) -> Reason {
    let kind = words(encapsulation);
    let name = &pool.name;
    let origin = Origin::new("BGPConfiguration", "default", "spec.programClusterRoutes");
    let value = plan.bird_programs.word();
    if matches!(encapsulation, Encapsulation::Ipip(_)) && plan.bird_programs.ipip {
        return Reason::new(format!("BIRD 2 programs no routes of pools {kind}, which IPPool({name}) has, and the agent is told not to"))
            .of(origin)
            .value(value)
            .remedy("EnabledNoEncapOnly here, and EnabledIPIPOnly in spec.programClusterRoutes of the FelixConfiguration");
    }
    Reason::new(format!("nobody programs routes of pools {kind}, which IPPool({name}) has"))
        .of(origin)
        .value(value)
        .remedy("enable here what is disabled in spec.programClusterRoutes of the FelixConfiguration, or the other way round")
}

fn words(encapsulation: Encapsulation) -> &'static str {
    match encapsulation {
        Encapsulation::None => "without encapsulation",
        Encapsulation::Ipip(_) => "with IP-in-IP",
        Encapsulation::Vxlan => "with VXLAN",
    }
}
