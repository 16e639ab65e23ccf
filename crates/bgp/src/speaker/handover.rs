//! Pools that BIRD gives up to the agent: BIRD programs their routes until the agent has them.
//!
//! What the kernel has decides, so that whoever starts anew goes on where another has ended. The other way round the agent does the
//! same (`dataplane/cluster/handover.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ipnet::IpNet;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_kernel::route::{self, Kind, LAST_METRIC, MAIN_TABLE, Protocol, Route, Socket};

use crate::plan::{Origin, Pool, Programmer};
use crate::{Family, Plan};

/// Between two looks at whether the agent has the routes.
const LOOK: Backoff = Backoff {
    first: Duration::from_millis(500),
    most: Duration::from_secs(5),
    jitter: 0.0,
};

/// What is being handed over.
pub(super) struct Handover {
    /// The networks of the agent's pools.
    pools: Vec<IpNet>,
    awaited: Awaited,
    looks: Retries,
    pub(super) next_look: Option<Instant>,
}

/// BIRD's routes of the agent's pools which the agent has not, by the pool's network.
type Awaited = BTreeMap<IpNet, Vec<IpNet>>;

impl Handover {
    pub(super) fn new() -> Self {
        Self {
            pools: Vec::new(),
            awaited: Awaited::default(),
            looks: Retries::new(LOOK),
            next_look: None,
        }
    }

    /// Leaves to BIRD what the agent has not taken over so far, and says so among the plan's problems.
    pub(super) async fn adjust(&mut self, plan: &mut Plan) {
        let pools = Family::BOTH.map(|family| &plan.family(family).pools);
        let pools = pools.into_iter().flatten().filter(|pool| is_agents(pool));
        self.pools = pools.map(|pool| pool.network).collect();
        self.looks.reset();
        self.look().await;
        keep(plan, &self.awaited);
    }

    /// Looks again, and gives whether the plan is another now.
    pub(super) async fn look_again(&mut self) -> bool {
        let before = self.awaited.clone();
        self.look().await;
        self.awaited != before
    }

    async fn look(&mut self) {
        if self.pools.is_empty() {
            self.awaited.clear();
        } else {
            match routes().await {
                Ok(routes) => self.awaited = awaited(&self.pools, &routes),
                Err(error) => {
                    tracing::warn!(error = %Causes(&error), "It is not known whether the agent has BIRD's routes");
                }
            }
        }
        let is_awaited = !self.awaited.is_empty();
        self.next_look = is_awaited.then(|| Instant::now() + self.looks.failed());
    }
}

async fn routes() -> route::Result<Vec<Route>> {
    let list = || Socket::open()?.routes(MAIN_TABLE);
    match spawn_blocking(list).await {
        Ok(routes) => routes,
        Err(_) => Err(route::Error::AnswersLost),
    }
}

fn is_agents(pool: &Pool) -> bool {
    pool.programmer == Programmer::Agent
}

/// Routes to nowhere carry no packets, and nobody waits for them. Those that the agent keeps for BIRD are as good as gone.
fn awaited(pools: &[IpNet], routes: &[Route]) -> Awaited {
    let is_birds = |route: &&Route| route.protocol == Protocol::BIRD;
    let others = routes.iter().filter(|route| !is_birds(route));
    let others = others.filter(|route| route.metric != LAST_METRIC);
    let taken: BTreeSet<IpNet> = others.map(|route| route.destination).collect();
    let mut awaited = Awaited::default();
    for route in routes.iter().filter(is_birds) {
        let destination = route.destination;
        if route.kind != Kind::Unicast || taken.contains(&destination) {
            continue;
        }
        if let Some(pool) = pools.iter().find(|pool| pool.contains(&destination)) {
            awaited.entry(*pool).or_default().push(destination);
        }
    }
    awaited
}

fn keep(plan: &mut Plan, awaited: &Awaited) {
    let (bird, agent) = (plan.bird_programs.word(), plan.agent_programs.word());
    let mut problems = Vec::new();
    for family in Family::BOTH {
        let pools = plan.families.get_mut(family).pools.iter_mut();
        for pool in pools.filter(|pool| is_agents(pool)) {
            let Some(routes) = awaited.get(&pool.network) else {
                continue;
            };
            let Some(first) = routes.first() else {
                continue;
            };
            pool.is_kept = true;
            let (count, name) = (routes.len(), &pool.origin.name);
            let origin = Origin::new("BGPConfiguration", "default", "spec.programClusterRoutes");
            problems.push(origin.problem(format!(
                "BIRD goes on programming {count} routes of IPPool({name}), such as {first}, although {bird} is set here: the agent, \
                 for which spec.programClusterRoutes of the FelixConfiguration says {agent}, has no routes to the same destinations"
            )));
        }
    }
    plan.problems.extend(problems);
    plan.problems.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(routes: &[(&str, Protocol, u32)], expected: &[&str]) {
        let net = |text: &str| -> IpNet { text.parse().unwrap() };
        let pools = [net("10.65.0.0/16"), net("fd65::/64")];
        let routes = routes.iter().map(|(destination, protocol, metric)| Route {
            protocol: *protocol,
            metric: *metric,
            ..Route::to(net(destination))
        });
        let routes: Vec<Route> = routes.collect();
        let awaited: Vec<IpNet> = awaited(&pools, &routes).into_values().flatten().collect();
        let expected: Vec<IpNet> = expected.iter().map(|text| net(text)).collect();
        assert_eq!(awaited, expected);
    }

    #[test]
    fn what_bird_alone_has_of_the_agents_pools_is_awaited() {
        let (bird, agent) = (Protocol::BIRD, Protocol::CALICO);
        check(&[], &[]);
        check(&[("10.65.2.0/26", agent, 0)], &[]);
        check(&[("10.66.2.0/26", bird, 1024)], &[]);
        check(
            &[("10.65.2.0/26", bird, 1024), ("fd65::/122", bird, 1024)],
            &["10.65.2.0/26", "fd65::/122"],
        );
        check(
            &[
                ("10.65.2.0/26", bird, 1024),
                ("10.65.2.0/26", agent, 0),
                ("10.65.3.0/26", bird, 1024),
            ],
            &["10.65.3.0/26"],
        );
    }

    #[test]
    fn what_the_agent_keeps_for_bird_is_not_taken_over() {
        check(
            &[
                ("10.65.2.0/26", Protocol::BIRD, 1024),
                ("10.65.2.0/26", Protocol::CALICO, LAST_METRIC),
            ],
            &["10.65.2.0/26"],
        );
    }

    #[test]
    fn routes_to_nowhere_are_not_awaited() {
        let route = Route {
            protocol: Protocol::BIRD,
            kind: Kind::Blackhole,
            ..Route::to("10.65.2.0/26".parse().unwrap())
        };
        let pools = ["10.65.0.0/16".parse().unwrap()];
        assert_eq!(awaited(&pools, &[route]), Awaited::default());
    }
}
