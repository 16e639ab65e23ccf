//! World after world on one node, and what becomes of packets in each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::Rng;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config as RunConfig, RngAlgorithm, TestRng, TestRunner};
use tortie_api::Kind;
use tortie_config::{Config, Sources, resolve};
use tortie_engine::verdict::{Outcome, Verdict};
use tortie_engine::{Message, Scope};
use tortie_testkit::net::{Probe, Site};

use crate::differential::machine::{Machine, Plane};
use crate::differential::packets::{self, Case, Vocabulary};
use crate::differential::places::{self, Place, Places};
use crate::differential::random;
use crate::differential::stages::decided;
use crate::differential::world::{Cluster, Key, World};

/// So many packets are sent in each world.
const PACKETS: usize = 200;

/// One world in so many is compared with the kernel, rule by rule.
const COMPARED: usize = 10;

/// One world in so many has nothing to do with the one before.
const NEW: usize = 3;

/// So many worlds are put together, so that more policies meet host endpoints.
const MERGED: usize = 3;

/// So many disagreements are written down and made smaller.
const REPORTED: usize = 6;

/// Packets on a link without a wire take no time; this is for the processor.
const PATIENCE: Duration = Duration::from_millis(15);
const MORE_PATIENCE: Duration = Duration::from_millis(200);

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) worlds: usize,
    pub(crate) probes: usize,
    pub(crate) allowed: usize,
    pub(crate) mismatches: usize,
    /// How often policy decided, by where and what.
    pub(crate) decided: BTreeMap<(&'static str, bool), usize>,
    pub(crate) reports: Vec<PathBuf>,
}

/// One node on its way through worlds.
pub(crate) struct Trial {
    plane: Plane,
    machine: Machine,
    local: Cluster,
    /// An engine that knows all nodes, as it is asked for verdicts.
    everywhere: Cluster,
    /// What the configuration of the node follows from.
    sources: Sources,
    config: Config,
    vocabulary: Vocabulary,
    world: World,
    runner: TestRunner,
    tally: Tally,
}

/// A disagreement.
enum Wrong {
    Packet(Case),
    /// The kernel, or a tool, does not take what it is told.
    Refused,
    /// What is in the kernel is not what it was told.
    Drifted,
}

impl Trial {
    pub(crate) fn new(plane: Plane, seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let config = Config::default();
        Self {
            plane,
            machine: Machine::new(plane, &config),
            local: Cluster::with_scope(Scope::ThisNode),
            everywhere: Cluster::new(),
            sources: Sources::default(),
            config,
            vocabulary: Vocabulary::default(),
            world: World::default(),
            runner: TestRunner::new_with_rng(RunConfig::default(), rng),
            tally: Tally::default(),
        }
    }

    /// Goes on until so many packets are sent.
    pub(crate) fn run(mut self, probes: usize) -> Tally {
        while self.tally.probes < probes {
            self.step();
        }
        self.tally
    }

    fn step(&mut self) {
        let world = self.next_world();
        self.tally.worlds += 1;
        if let Err(error) = self.enter(&world) {
            self.note(&world, &Wrong::Refused, &error);
            return;
        }
        let places = self.places(&world);
        let cases = packets::choose(&places, &self.vocabulary, PACKETS, self.runner.rng());
        let wrong = self.disagreements(&places, &cases);
        self.tally.probes += cases.len();
        self.tally.mismatches += wrong.len().saturating_sub(1);
        if let Some(first) = wrong.first() {
            let all = format!("All packets in this world: {wrong:#?}");
            self.note(&world, &Wrong::Packet(first.clone()), &all);
        }
        if self.tally.worlds.is_multiple_of(COMPARED) {
            let drift = self.machine.compare();
            if !drift.is_empty() {
                self.note(&world, &Wrong::Drifted, &format!("{drift:#?}"));
            }
        }
    }

    /// Another world, or the last one with a few changes.
    fn next_world(&mut self) -> World {
        let mut fresh = World::default();
        for _ in 0..MERGED {
            let tree = random::world().new_tree(&mut self.runner);
            let another = tree.expect("worlds can always be made").current();
            fresh.objects.extend(another.objects);
        }
        let mut world = fresh.clone();
        if !self.tally.worlds.is_multiple_of(NEW) {
            world = self.world.clone();
            let rng = self.runner.rng();
            let mut some = |one_in: usize| packets::below(one_in, rng) == 0;
            // Tiers and profiles that are always there stay.
            let is_kept = |key: &Key| matches!(key, Key::Resource(Kind::Tier | Kind::Profile, ..));
            world.objects.retain(|key, _| is_kept(key) || !some(8));
            let added = fresh.objects.into_iter().filter(|_| some(6));
            world.objects.extend(added);
        }
        places::make_possible(&mut world);
        world
    }

    /// Brings a world into the engines and the kernel.
    fn enter(&mut self, world: &World) -> Result<(), String> {
        let seed = self.runner.rng().next_u64();
        let mut flushes = self.local.become_world(world, seed);
        for message in flushes.iter().flatten() {
            if let Message::ConfigUpdate(update) = message {
                self.sources.datastore = update.clone();
            }
        }
        self.config = resolve(&self.sources).config;
        self.machine.set_config(&self.config);
        if matches!(self.plane, Plane::Iptables(_)) {
            // The programs take their time.
            flushes = vec![flushes.into_iter().flatten().collect()];
        }
        self.everywhere.become_world(world, seed);
        self.world = world.clone();
        let mut result = Ok(());
        for messages in flushes {
            self.vocabulary.note(&messages);
            result = result.and(self.machine.apply(messages));
        }
        result.and_then(|()| self.machine.route())
    }

    fn places(&self, world: &World) -> Places {
        Places::of(world, &self.config.failsafe)
    }

    fn verdict(&self, places: &Places, case: &Case) -> Verdict {
        let mut judge = self.everywhere.engine.judge();
        judge.pass(&case.flow(), &[case.hop(&places.host_endpoints)])
    }

    /// The packets whose fate is not what the engine says. Each is sent again to be sure.
    fn disagreements(&mut self, places: &Places, cases: &[Case]) -> Vec<Case> {
        let mut judge = self.everywhere.engine.judge();
        let mut expected = Vec::with_capacity(cases.len());
        for case in cases {
            let verdict = judge.pass(&case.flow(), &[case.hop(&places.host_endpoints)]);
            for key in decided(case, &verdict) {
                *self.tally.decided.entry(key).or_default() += 1;
            }
            expected.push(verdict.verdict == Outcome::Allow);
        }
        self.tally.allowed += expected.iter().filter(|is_allowed| **is_allowed).count();
        self.machine.prober.patience = PATIENCE;
        let arrived = self.send(cases);
        let compared = cases.iter().zip(arrived.iter().zip(&expected));
        let suspects = compared.filter(|(_, (arrived, expected))| arrived != expected);
        let suspects: Vec<(Case, bool)> = suspects
            .map(|(case, (_, expected))| (case.clone(), *expected))
            .collect();
        self.machine.prober.patience = MORE_PATIENCE;
        let again: Vec<Case> = suspects.iter().map(|(case, _)| case.clone()).collect();
        let arrived = self.send(&again);
        let confirmed = suspects.into_iter().zip(arrived);
        let confirmed = confirmed.filter(|((_, expected), arrived)| expected != arrived);
        confirmed.map(|((case, _), _)| case).collect()
    }

    fn send(&mut self, cases: &[Case]) -> Vec<bool> {
        let machine = &self.machine;
        let site = |place: &Place| -> Site {
            match place {
                Place::Host => machine.host,
                Place::Outside => machine.outside,
                Place::Pod(pod) => machine.pods[&pod.interface],
            }
        };
        let probes = cases.iter().map(|case| Probe {
            from: site(&case.from),
            to: site(&case.to),
            source: case.source,
            destination: case.destination,
            packet: case.packet,
        });
        let probes: Vec<Probe> = probes.collect();
        self.machine
            .prober
            .probe_all(&probes)
            .expect("packets are sent")
    }

    /// Counts a disagreement, and writes the first few down.
    fn note(&mut self, world: &World, wrong: &Wrong, details: &str) {
        self.tally.mismatches += 1;
        if self.tally.reports.len() >= REPORTED {
            return;
        }
        let mut text = self.report(world, wrong, details);
        if let Some(smallest) = self.shrink(world, wrong) {
            text = self.report(&smallest, wrong, details);
        }
        let name = format!(
            "differential-{}-{}.txt",
            self.plane.name(),
            self.tally.reports.len()
        );
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, text).expect("a file");
        self.tally.reports.push(path);
    }

    /// Removes objects as long as the disagreement stays, and ends in the world that is left. None if it was only there
    /// on the way that led here.
    fn shrink(&mut self, world: &World, wrong: &Wrong) -> Option<World> {
        let mut smallest = None;
        for key in world.objects.keys() {
            let mut smaller = smallest.as_ref().unwrap_or(world).clone();
            smaller.objects.remove(key);
            if self.is_wrong(&smaller, wrong) {
                smallest = Some(smaller);
            }
        }
        let smallest = smallest?;
        self.is_wrong(&smallest, wrong).then_some(smallest)
    }

    fn is_wrong(&mut self, world: &World, wrong: &Wrong) -> bool {
        let entered = self.enter(world);
        match wrong {
            Wrong::Refused => entered.is_err(),
            Wrong::Drifted => entered.is_ok() && !self.machine.compare().is_empty(),
            Wrong::Packet(case) => {
                let places = self.places(world);
                let is_there = |place: &Place| match place {
                    Place::Pod(pod) => places.pods.iter().any(|(other, _)| other == pod),
                    Place::Host | Place::Outside => true,
                };
                entered.is_ok()
                    && is_there(&case.from)
                    && is_there(&case.to)
                    && !self
                        .disagreements(&places, std::slice::from_ref(case))
                        .is_empty()
            }
        }
    }

    fn report(&mut self, world: &World, wrong: &Wrong, details: &str) -> String {
        let mut text = String::new();
        match wrong {
            Wrong::Refused => text.push_str("The kernel refused this world.\n"),
            Wrong::Drifted => text.push_str("The kernel does not have what it was told.\n"),
            Wrong::Packet(case) => {
                let places = self.places(world);
                let arrived = self.send(std::slice::from_ref(case));
                let verdict = self.verdict(&places, case);
                let _ = write!(
                    text,
                    "{case:#?}\narrived: {arrived:?}\nverdict: {verdict:#?}\n"
                );
            }
        }
        let listing = self.machine.listing();
        let _ = write!(text, "{details}\n=== World\n{world}\n{listing}");
        text
    }
}
