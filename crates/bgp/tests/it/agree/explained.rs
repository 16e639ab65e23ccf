//! What is said of a route is what the filters in the text for BIRD 2 do with it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tortie_bgp::explain::{self, Decision, Source};
use tortie_bgp::plan::{Community, Plan};
use tortie_bgp::{Family, Inputs, render};
use tortie_testkit::vector_folders;

use super::config::{Config, Dialect};
use super::probes;
use super::run::{Outcome, Route, run};
use crate::{random, world};

#[test]
fn decisions_are_those_of_the_text_for_every_vector() {
    let mut compared = 0;
    for folder in vector_folders("bgp") {
        compared += check(&Plan::new(&world::vector(&folder)));
    }
    assert!(compared > 10_000, "only {compared} answers were compared");
}

#[test]
fn decisions_are_those_of_the_text_whatever_objects_say() {
    let config = ProptestConfig {
        cases: super::WORLDS,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(updates in random::world())| {
        let mut inputs = Inputs::new(world::identity());
        for update in updates {
            inputs.update(update);
        }
        check(&Plan::new(&inputs));
    });
}

fn check(plan: &Plan) -> usize {
    let text = render::bird2(plan);
    let mut count = 0;
    for family in Family::BOTH {
        let config = Config::read(&text, Dialect::of(family));
        let routes = probes::routes(&[&text], family);
        for route in &routes {
            let expected = run(&config.kernel_filter, &config.functions, route);
            let found = explain::program(plan, of_probe(route));
            // Nobody sees what the filter for the kernel does to a route that it rejects, or to one that it accepts.
            assert_eq!(
                found.is_accepted(),
                expected != Outcome::Rejected,
                "{route:?}: {found:?}"
            );
            assert_same(&expected, &found, route, "for the kernel");
        }
        count += routes.len();
        let mut seen = Vec::new();
        for peer in &plan.family(family).peers {
            let session = &config.sessions[&peer.name];
            if seen.contains(&session) {
                continue;
            }
            seen.push(session);
            for route in &routes {
                let probe = of_probe(route);
                let expected = run(&session.export, &config.functions, route);
                let found = explain::export(plan, peer, probe.clone());
                assert_same(&expected, &found, route, &peer.name);
                let expected = run(&session.import, &config.functions, route);
                assert_same(
                    &expected,
                    &explain::import(plan, peer, probe),
                    route,
                    &peer.name,
                );
            }
            count += 2 * routes.len();
        }
    }
    count
}

#[track_caller]
fn assert_same(expected: &Outcome, found: &Decision, route: &Route, what: &str) {
    let expected = match expected {
        Outcome::Accepted(route) => Some(of_probe(route)),
        Outcome::Rejected => None,
    };
    assert_eq!(found.route, expected, "{route:?} {what}: {:?}", found.by);
}

fn of_probe(route: &Route) -> explain::Route {
    let number = |name: &str| route.numbers.get(name).copied();
    let source = match route.source {
        "RTS_BGP" => Source::Bgp,
        "RTS_STATIC" => Source::Static,
        "RTS_DEVICE" => Source::Device,
        _ => Source::Kernel,
    };
    // Probes have lists of numbers that are none, which nothing asks for.
    let communities = route
        .communities
        .iter()
        .filter_map(|parts| community(parts))
        .collect();
    explain::Route {
        network: route.net,
        source,
        interface: route.interface.clone(),
        next_hop: route.next_hop,
        metric: number("krt_metric"),
        local_preference: number("bgp_local_pref"),
        preference: number("preference").unwrap_or_default(),
        as_path: route.path.clone(),
        communities,
    }
}

fn community(parts: &[u32]) -> Option<Community> {
    match *parts {
        [a, b] => Some(Community::Standard(a.try_into().ok()?, b.try_into().ok()?)),
        [a, b, c] => Some(Community::Large(a, b, c)),
        _ => None,
    }
}

/// A probe has all that a route has, so that nothing is compared with nothing.
#[test]
fn probes_are_read_as_a_whole() {
    let route = Route {
        net: "10.0.0.0/26".parse().unwrap(),
        source: "RTS_BGP",
        interface: Some("eth0".to_owned()),
        next_hop: Some("192.0.2.2".parse().unwrap()),
        numbers: BTreeMap::from([
            ("krt_metric".to_owned(), 7),
            ("bgp_local_pref".to_owned(), 8),
            ("preference".to_owned(), 9),
        ]),
        path: vec![1, 2],
        communities: BTreeSet::from([vec![1, 2], vec![1, 2, 3]]),
        tunnel: String::new(),
    };
    let read = of_probe(&route);
    assert_eq!(
        (read.metric, read.local_preference, read.preference),
        (Some(7), Some(8), 9)
    );
    assert_eq!((read.as_path.len(), read.communities.len()), (2, 2));
}
