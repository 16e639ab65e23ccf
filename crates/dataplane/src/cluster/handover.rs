//! Routes that BIRD is to make from now on: what the kernel has stays until BIRD has a way to the same destination.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tortie_kernel::route::{self, LAST_METRIC, MAIN_TABLE, Protocol, Route, Socket};

use super::Programmed;

/// For so long BIRD must have had a route: one that it is just giving up stays for less.
const CERTAIN_AFTER: Duration = Duration::from_secs(10);

/// What is being handed over.
#[derive(Debug, Default)]
pub(super) struct Handover {
    /// How many routes are kept.
    kept: usize,
    /// Since when BIRD has routes to destinations of those that are kept.
    taken: BTreeMap<IpNet, Instant>,
}

impl Handover {
    /// Whether routes are kept, so that somebody has to look again.
    pub(super) fn is_under_way(&self) -> bool {
        self.kept > 0
    }

    /// Of routes that are others' to make, those that stay for now: the kernel has them, and BIRD has not. They get out of the way of
    /// BIRD's, which for IPv6 could not be made beside one with the same metric.
    pub(super) fn kept(
        &mut self,
        mut others: Vec<Route>,
        present: &Programmed,
        socket: &mut Socket,
    ) -> route::Result<Vec<Route>> {
        if !others.is_empty() {
            let routes = present.routes.iter();
            let known: BTreeSet<IpNet> = routes.map(|route| route.destination).collect();
            others.retain(|route| known.contains(&route.destination));
        }
        let mut of_bird = BTreeSet::new();
        if !others.is_empty() {
            let routes = socket.routes(MAIN_TABLE)?.into_iter();
            let routes = routes.filter(|route| route.protocol == Protocol::BIRD);
            of_bird.extend(routes.map(|route| route.destination));
        }
        self.keep_those_without(&mut others, &of_bird, Instant::now());
        for route in &mut others {
            route.metric = LAST_METRIC;
        }
        if others.len() != self.kept {
            let (routes, example) = (others.len(), others.first().map(|route| route.destination));
            tracing::info!(
                routes,
                ?example,
                "So many routes to other nodes stay until BIRD has them"
            );
            self.kept = others.len();
        }
        Ok(others)
    }

    fn keep_those_without(
        &mut self,
        others: &mut Vec<Route>,
        of_bird: &BTreeSet<IpNet>,
        now: Instant,
    ) {
        let mut taken = BTreeMap::new();
        others.retain(|route| {
            if !of_bird.contains(&route.destination) {
                return true;
            }
            let since = *self.taken.get(&route.destination).unwrap_or(&now);
            taken.insert(route.destination, since);
            now.duration_since(since) < CERTAIN_AFTER
        });
        self.taken = taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route that BIRD has for a moment only is one that it is giving up itself.
    #[test]
    fn what_bird_has_for_certain_is_not_kept() {
        let all = ["10.65.1.0/26", "10.65.2.0/26"].map(|text| Route::to(text.parse().unwrap()));
        let [first, second] = [0, 1].map(|n: usize| all[n].destination);
        let mut handover = Handover::default();
        let start = Instant::now();
        let mut check = |of_bird: &[IpNet], seconds: u64, expected: &[IpNet]| {
            let mut others = all.to_vec();
            let of_bird = of_bird.iter().copied().collect();
            let now = start + Duration::from_secs(seconds);
            handover.keep_those_without(&mut others, &of_bird, now);
            let kept: Vec<IpNet> = others.iter().map(|route| route.destination).collect();
            assert_eq!(kept, expected, "{seconds} s");
        };
        check(&[], 0, &[first, second]);
        check(&[first], 1, &[first, second]);
        check(&[first], 10, &[first, second]);
        check(&[first], 11, &[second]);
        check(&[second], 12, &[first, second]);
        check(&[first, second], 21, &[first, second]);
        check(&[first, second], 22, &[first]);
        check(&[first, second], 31, &[]);
    }
}
