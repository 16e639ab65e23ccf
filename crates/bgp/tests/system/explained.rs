//! What is said of routes is what real BIRD does with them: two nodes, each with the configuration that is rendered for it, in worlds
//! that are drawn at random.

mod drawn;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::Duration;

use ipnet::IpNet;
use rustix::process::Signal;
use serde_json::Value;
use tortie_api::{Kind, Resource};
use tortie_bgp::bird::answer::{self, Protocol};
use tortie_bgp::bird::{Destination, Routes, Side};
use tortie_bgp::explain::{self, Question, Source, Target};
use tortie_bgp::plan::{Community, Peer, Plan};
use tortie_bgp::{Cluster, Family, Identity, Update, render};
use tortie_testkit::Random;

use crate::bird::site::{Pair, Site, await_that, block_on, kill};
use drawn::{KERNEL_ROUTES, NODES, PREFIXES};

/// How many worlds are drawn.
const WORLDS: u64 = 12;

/// Fewer comparisons than these would show nothing.
const LEAST: usize = 200;

/// So many looks with the same result are enough, with this time between them.
const LOOKS: u32 = 6;
const INTERVAL: Duration = Duration::from_millis(100);

/// What was compared, so that a test that compares nothing fails.
#[derive(Debug, Default)]
struct Compared {
    told: usize,
    not_told: usize,
    programmed: usize,
    not_programmed: usize,
    answers: usize,
    sessions: usize,
}

fn cluster(world: &[Value]) -> Cluster {
    let mut cluster = Cluster::new(Identity::default());
    for value in world {
        let kind = value["kind"].as_str().unwrap();
        let kind = Kind::ALL.iter().find(|known| known.as_str() == kind);
        let resource = Resource::decode_stored(*kind.unwrap(), value).unwrap();
        cluster.put(Update::Resource(resource));
    }
    cluster
}

#[test]
fn bird_does_what_is_said() {
    block_on(async {
        let pair = Pair::new();
        let sites = [&pair.a, &pair.b];
        for route in KERNEL_ROUTES {
            add_route(&pair.a, route);
        }
        let mut compared = Compared::default();
        for seed in 0..WORLDS {
            let world = drawn::world(
                &mut Random::new(seed),
                [(pair.a.v4, pair.a.v6), (pair.b.v4, pair.b.v6)],
            );
            let mut cluster = cluster(&world);
            let plans = NODES.map(|node| cluster.plan(node));
            for (site, plan) in sites.iter().zip(&plans) {
                fs::write(site.config(), render::bird2(plan)).unwrap();
                site.start();
            }
            let context = format!("world {seed}");
            compare(&sites, &plans, &mut cluster, &context, &mut compared).await;
            for site in sites {
                for process in site.birds() {
                    kill(process, Signal::TERM);
                }
                await_that("BIRD has ended", async || site.birds().is_empty()).await;
                clear(site);
            }
        }
        let Compared {
            told,
            not_told,
            programmed,
            not_programmed,
            answers,
            sessions,
        } = compared;
        assert!(
            told + not_told > LEAST && told > 30 && not_told > 30,
            "{compared:?}"
        );
        assert!(programmed > 10 && not_programmed > 10, "{compared:?}");
        assert!(answers > 100 && sessions > 12, "{compared:?}");
    });
}

/// A route that somebody else has made.
fn add_route(site: &Site, route: &str) {
    let mut command = Command::new("ip");
    command
        .args(["route", "add", "blackhole"])
        .args(route.split(' '))
        .args(["proto", "static"]);
    let status = site.namespace().run(|| command.status()).unwrap().unwrap();
    assert!(status.success(), "{route}");
}

/// Takes away what BIRD has left in the kernel.
fn clear(site: &Site) {
    for family in ["-4", "-6"] {
        let mut command = Command::new("ip");
        command.args([family, "route", "flush", "proto", "bird"]);
        site.namespace().run(|| command.status()).unwrap().unwrap();
    }
}

async fn compare(
    sites: &[&Site; 2],
    plans: &[Plan; 2],
    cluster: &mut Cluster,
    context: &str,
    compared: &mut Compared,
) {
    for family in Family::BOTH {
        let peers = plans
            .each_ref()
            .map(|plan| plan.family(family).peers.first());
        let [Some(there), Some(back)] = peers else {
            continue;
        };
        for (site, peer) in sites.iter().zip([there, back]) {
            let what = format!("{context}: {} is established", peer.name);
            await_that(&what, async || {
                let found = site.socket().protocol(&peer.name).await.ok().flatten();
                found.as_ref().is_some_and(Protocol::is_established)
            })
            .await;
        }
        compared.sessions += 1;
        let told = exported(sites[0], &plans[0], there, context, compared).await;
        settle(sites[1], back).await;
        received(sites[1], &plans[1], back, &told, context, compared).await;
        for prefix in PREFIXES {
            let prefix: IpNet = prefix.parse().unwrap();
            if Family::of(prefix.addr()) == family {
                answered(sites[1], cluster, back, prefix, context, compared).await;
            }
        }
    }
}

async fn routes(node: &Site, side: Side, table: Option<&str>) -> Vec<answer::Route> {
    let asked = Routes {
        destination: Destination::Any,
        side,
        table: table.map(str::to_owned),
        all: true,
        ..Routes::default()
    };
    node.socket().routes(&asked).await.unwrap()
}

fn table(family: Family) -> &'static str {
    match family {
        Family::V4 => "master4",
        Family::V6 => "master6",
    }
}

/// Every route of a node's table is told or not as it is said, and goes on as the peer is to get it.
async fn exported(
    site: &Site,
    plan: &Plan,
    peer: &Peer,
    context: &str,
    compared: &mut Compared,
) -> BTreeMap<IpNet, explain::Route> {
    let family = Family::of(peer.address);
    let told = routes(site, Side::To(peer.name.clone()), None).await;
    let told: BTreeSet<IpNet> = told.iter().map(|route| route.prefix).collect();
    let mut expected = BTreeMap::new();
    let own = routes(site, Side::Table, Some(table(family))).await;
    assert!(own.len() > 2, "{context}: {own:?}");
    for route in own.iter().filter(|route| route.protocol != peer.name) {
        let decision = explain::export(plan, peer, read(route));
        let network = route.prefix;
        if let Some(route) = decision.route {
            expected.insert(network, route);
            compared.told += 1;
        } else {
            compared.not_told += 1;
        }
        let is_expected = expected.contains_key(&network);
        assert_eq!(
            told.contains(&network),
            is_expected,
            "{context}: {network} to {}: {:?} {route:?}",
            peer.name,
            decision.by
        );
    }
    expected
}

/// Waits until a node takes no more routes. Of those that its filters reject nothing is known.
async fn settle(site: &Site, peer: &Peer) {
    let mut last = None;
    let mut same = 0;
    await_that("no more routes come", async || {
        tokio::time::sleep(INTERVAL).await;
        let protocol = site.socket().protocol(&peer.name).await.unwrap().unwrap();
        let count = protocol.channels[0].counters.imported;
        same = if last == Some(count) { same + 1 } else { 0 };
        last = Some(count);
        same == LOOKS
    })
    .await;
}

/// What a peer got is taken and programmed as it is said.
async fn received(
    site: &Site,
    plan: &Plan,
    peer: &Peer,
    told: &BTreeMap<IpNet, explain::Route>,
    context: &str,
    compared: &mut Compared,
) {
    let family = Family::of(peer.address);
    let table = routes(site, Side::Table, Some(table(family))).await;
    let got: Vec<&answer::Route> = table
        .iter()
        .filter(|route| route.protocol == peer.name)
        .collect();
    let is_internal = plan.is_internal(peer);
    for (network, sent) in told {
        let mut sent = explain::Route {
            source: Source::Bgp,
            metric: None,
            interface: None,
            next_hop: None,
            preference: 100,
            ..sent.clone()
        };
        if !is_internal {
            sent.local_preference = Some(100);
            sent.as_path.insert(0, peer.as_number);
        }
        let own = sent
            .as_path
            .iter()
            .filter(|number| **number == plan.as_number);
        let is_loop = own.count() > peer.allowed_local_as.unwrap_or(0) as usize;
        let expected = explain::import(plan, peer, sent).route.filter(|_| !is_loop);
        let found = got.iter().find(|route| route.prefix == *network);
        let Some(expected) = expected else {
            assert!(found.is_none(), "{context}: {network} is taken: {found:?}");
            continue;
        };
        let found = found
            .unwrap_or_else(|| panic!("{context}: {network} is not taken: {expected:?} {got:?}"));
        let (found, preference) = (read(found), found.preference);
        assert_eq!(
            found.local_preference, expected.local_preference,
            "{context}: {network}"
        );
        assert_eq!(
            found.communities, expected.communities,
            "{context}: {network}"
        );
        assert_eq!(found.as_path, expected.as_path, "{context}: {network}");
        assert_eq!(
            preference,
            Some(expected.preference),
            "{context}: {network}"
        );
    }
    let mut kernel = site.kernel();
    for route in got.iter().filter(|route| route.is_primary) {
        let decision = explain::program(plan, read(route));
        let is_expected = decision.is_accepted();
        await_that(
            &format!(
                "{context}: {} in the kernel: {is_expected}, by {:?}",
                route.prefix, decision.by
            ),
            async || kernel.has_route_to(route.prefix) == is_expected,
        )
        .await;
        if is_expected {
            compared.programmed += 1;
        } else {
            compared.not_programmed += 1;
        }
    }
}

/// The whole answer, of the node that learns.
async fn answered(
    site: &Site,
    cluster: &mut Cluster,
    peer: &Peer,
    prefix: IpNet,
    context: &str,
    compared: &mut Compared,
) {
    let question = Question {
        target: Target::Network(prefix),
        node: Some(NODES[1].to_owned()),
        peer: None,
    };
    let answer = explain::explain(cluster, &question).unwrap();
    let of_node = answer.nodes.iter().find(|node| node.node == NODES[1]);
    let Some(of_node) = of_node.filter(|node| !node.is_holder) else {
        return;
    };
    let found = site.routes_to(prefix).await;
    let is_learnt = found.iter().any(|route| route.protocol == peer.name);
    assert_eq!(
        of_node.is_learnt(),
        Some(is_learnt),
        "{context}: {answer:#?} {found:?}"
    );
    let programmed = of_node.programmed.as_ref().unwrap();
    if programmed.by == Some("BIRD") {
        let is_there = site.kernel().has_route_to(prefix);
        assert_eq!(
            programmed.is_programmed,
            Some(is_there),
            "{context}: {answer:#?}"
        );
    }
    compared.answers += 1;
}

/// A route of BIRD's as filters see it.
fn read(route: &answer::Route) -> explain::Route {
    let attributes = &route.attributes;
    let source = attributes.source.as_deref().unwrap_or_default();
    let source = match source.split(' ').next() {
        Some("static") => Source::Static,
        Some("device") => Source::Device,
        Some("inherit") => Source::Kernel,
        Some("BGP") => Source::Bgp,
        other => panic!("where is {route:?} from? {other:?}"),
    };
    let standard = attributes
        .communities
        .iter()
        .map(|(a, b)| Community::Standard(*a, *b));
    let large = attributes
        .large_communities
        .iter()
        .map(|(a, b, c)| Community::Large(*a, *b, *c));
    let metric = attributes.others.get("Kernel.metric");
    explain::Route {
        network: route.prefix,
        source,
        interface: route.next_hops.first().map(|hop| hop.interface.clone()),
        next_hop: attributes.next_hop,
        metric: metric.map(|metric| metric.parse().unwrap()),
        local_preference: attributes.local_pref,
        preference: 100,
        as_path: attributes
            .as_path
            .iter()
            .map(|segment| match segment {
                answer::AsSegment::As(number) => *number,
                answer::AsSegment::Set(_) => panic!("nobody aggregates: {route:?}"),
            })
            .collect(),
        communities: standard.chain(large).collect(),
    }
}
