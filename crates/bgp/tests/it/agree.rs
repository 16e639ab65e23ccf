//! Both languages say the same: what each peer is sent, what is taken from it, and what the kernel gets.
//!
//! Both texts are read into one model, and their filters are run on the same routes. For BIRD 1.6 the texts are confd's own.

mod config;
mod explained;
mod lexer;
mod probes;
mod run;
mod syntax;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tortie_bgp::plan::{FamilyPlan, Plan};
use tortie_bgp::{Family, Inputs, render};
use tortie_testkit::vector_folders;

use crate::{random, world};
use config::{Config, Dialect, Session};
use run::{Outcome, Route, run};

/// BIRD 1.6's, in the order of the IP versions.
const DAEMONS: [&str; 2] = ["bird", "bird6"];

/// The ends of the names of a daemon's files; those that are included come first.
const PARTS: [&str; 3] = ["_aggr.cfg", "_ipam.cfg", ".cfg"];

/// How many worlds are made up.
const WORLDS: u32 = 100;

/// What is said of one IP version: for BIRD 1.6, and for BIRD 2.
struct Pair<'a> {
    plan: &'a Plan,
    of_family: &'a FamilyPlan,
    bird1: Config,
    bird2: Config,
}

#[test]
fn both_languages_say_the_same_of_every_vector() {
    let mut compared = 0;
    for folder in vector_folders("bgp") {
        let plan = Plan::new(&world::vector(&folder));
        let files = DAEMONS.map(|daemon| confds(&folder, daemon));
        compared += check(&plan, &files);
    }
    assert!(compared > 10_000, "only {compared} answers were compared");
}

#[test]
fn both_languages_say_the_same_of_whatever_objects_say() {
    let config = ProptestConfig {
        cases: WORLDS,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(updates in random::world())| {
        let mut inputs = Inputs::new(world::identity());
        for update in updates {
            inputs.update(update);
        }
        let plan = Plan::new(&inputs);
        // Address management makes no such blocks. Of these, BIRD 2 tells the inner one too.
        prop_assume!(!has_blocks_within_blocks(&plan));
        let texts = render::bird1(&plan);
        let texts: BTreeMap<&str, &str> = texts.files().into_iter().collect();
        let files = DAEMONS.map(|daemon| PARTS.map(|part| texts[&*format!("{daemon}{part}")]).join("\n"));
        check(&plan, &files);
    });
}

fn has_blocks_within_blocks(plan: &Plan) -> bool {
    Family::BOTH.into_iter().any(|family| {
        let blocks = &plan.family(family).blocks;
        let mut pairs = blocks
            .iter()
            .flat_map(|a| blocks.iter().map(move |b| (a, b)));
        pairs.any(|(a, b)| a.network != b.network && a.network.contains(&b.network))
    })
}

/// The text that one of confd's daemons reads.
fn confds(folder: &Path, daemon: &str) -> String {
    let read = |part| fs::read_to_string(folder.join(format!("{daemon}{part}"))).unwrap();
    PARTS.map(read).join("\n")
}

/// Compares both texts of a plan, and tells how many answers were compared.
fn check(plan: &Plan, bird1: &[String; 2]) -> usize {
    let text = render::bird2(plan);
    let mut count = 0;
    for (family, bird1) in Family::BOTH.into_iter().zip(bird1) {
        let pair = Pair {
            plan,
            of_family: plan.family(family),
            bird1: Config::read(bird1, Dialect::Bird1),
            bird2: Config::read(&text, Dialect::of(family)),
        };
        let routes = probes::routes(&[bird1, &text], family);
        pair.check_settings();
        count += pair.check_kernel(&routes);
        count += pair.check_sessions(&routes);
    }
    count
}

impl Dialect {
    fn of(family: Family) -> Self {
        Self::Bird2(match family {
            Family::V4 => "ipv4",
            Family::V6 => "ipv6",
        })
    }
}

impl Pair<'_> {
    fn check_settings(&self) {
        let (bird1, bird2) = (&self.bird1, &self.bird2);
        assert_eq!(bird1.static_routes, bird2.static_routes);
        let mut settings = bird1.settings.clone();
        // BIRD 2 has this for each session.
        settings.retain(|setting| !setting.starts_with("listen bgp"));
        let mut others = bird2.settings.clone();
        // Nobody is told of anything for so long where a peer is down after a restart. BIRD 1.6 keeps its own four minutes.
        let before = others.len();
        others.retain(|setting| setting != "graceful restart wait 60");
        assert_eq!(others.len() + 1, before, "{:?}", bird2.settings);
        assert_eq!(settings, others);
    }

    fn check_kernel(&self, routes: &[Route]) -> usize {
        let mut tunnelled = 0;
        for route in routes {
            // BIRD 1.6 never tells the kernel what it has from it.
            if route.source == "RTS_DEVICE" {
                continue;
            }
            let old = run(&self.bird1.kernel_filter, &self.bird1.functions, route);
            let new = run(&self.bird2.kernel_filter, &self.bird2.functions, route);
            // There are no tunnels of IPv4 in BIRD 2, so that it leaves such routes to others, and says so.
            if matches!(&old, Outcome::Accepted(route) if route.is_of_tunnel_pool(self.of_family)) {
                assert_eq!(new, Outcome::Rejected, "{route:?}");
                tunnelled += 1;
                continue;
            }
            assert_eq!(old, new, "{route:?} for the kernel");
        }
        let problems = render::bird2_problems(self.plan);
        assert!(tunnelled == 0 || !problems.is_empty());
        routes.len()
    }

    fn check_sessions(&self, routes: &[Route]) -> usize {
        let names = |config: &Config| config.sessions.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&self.bird1), names(&self.bird2));
        let mut seen: Vec<[&Session; 2]> = Vec::new();
        for (name, old) in &self.bird1.sessions {
            let new = &self.bird2.sessions[name];
            assert_eq!(self.expected(old), new.options, "{name}");
            // The sessions of a mesh have the same filters.
            let is_known = seen.iter().any(|[a, b]| {
                a.import == old.import
                    && a.export == old.export
                    && b.import == new.import
                    && b.export == new.export
            });
            if !is_known {
                self.check_filters(name, old, new, routes);
                seen.push([old, new]);
            }
        }
        2 * routes.len() * seen.len()
    }

    fn check_filters(&self, name: &str, old: &Session, new: &Session, routes: &[Route]) {
        for route in routes {
            let is_tunnels = route.interface.as_deref() == Some("tunl0");
            // In BIRD 2 such routes are never its own.
            if is_tunnels && self.plan.bird_programs.ipip {
                continue;
            }
            for (old, new, what) in [
                (&old.import, &new.import, "from"),
                (&old.export, &new.export, "to"),
            ] {
                let old = run(old, &self.bird1.functions, route);
                let new = run(new, &self.bird2.functions, route);
                assert_eq!(old, new, "{route:?} {what} {name}");
            }
        }
    }

    /// The options of a session of BIRD 1.6, as BIRD 2 is told them.
    fn expected(&self, session: &Session) -> BTreeMap<String, String> {
        let mut options = session.options.clone();
        // One daemon serves all sessions, and each of them says where.
        if let Some(port) = self.of_family.listen_port {
            options.insert("local port".to_owned(), port.to_string());
        }
        if let Some(address) = self.of_family.listen_address {
            options.insert("strict".to_owned(), "bind on".to_owned());
            options
                .entry("source address".to_owned())
                .or_insert(address.to_string());
        }
        options
    }
}

impl Route {
    fn is_of_tunnel_pool(&self, of_family: &FamilyPlan) -> bool {
        use tortie_bgp::plan::{Encapsulation, Programmer};
        // The first pool that it is in decides.
        let mut pools = of_family.pools.iter();
        let pool = pools.find(|pool| pool.network.contains(&self.net));
        pool.is_some_and(|pool| {
            of_family.address.is_some()
                && self.net.addr().is_ipv4()
                && pool.programmer == Programmer::Bird
                && matches!(pool.encapsulation, Encapsulation::Ipip(_))
        })
    }
}
