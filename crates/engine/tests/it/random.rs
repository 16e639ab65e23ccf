//! The policy engine on random worlds: what it tells step by step is what it tells at once.
//!
//! Names, labels and addresses are few, so that objects meet: they share sets, cover and replace each other, and refer
//! to what is not there.

mod policy;
mod world;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use proptest::prelude::*;
use tortie_engine::{Config, Engine, Overlaps, Update};

use crate::states::data_plane::DataPlane;
use crate::states::datastore::{absent, ready_cluster};
use crate::states::text::{self, SetNames};

/// Updates in the order in which they come, and when the engine is asked what changed.
#[derive(Clone)]
struct Story {
    steps: Vec<Step>,
    /// How many of 100 updates are followed by a flush.
    flushes: u8,
    /// After how many updates the datastore is in sync.
    in_sync_at: usize,
    /// Decides the order in which the fresh engine gets the final state.
    seed: u64,
    overlaps: Overlaps,
}

#[derive(Debug, Clone)]
struct Step {
    update: Update,
    /// Whether it happens; shrinking makes that false, and so finds the few steps that matter.
    happens: bool,
    roll: u8,
}

/// The content of a datastore, by the key of each object.
#[derive(Default)]
struct Datastore(BTreeMap<String, Update>);

fn story() -> impl Strategy<Value = Story> {
    let step = (world::update(), prop::bool::weighted(0.98), 0..100_u8).prop_map(
        |(update, happens, roll)| Step {
            update,
            happens,
            roll,
        },
    );
    let flushes = prop::sample::select(vec![0_u8, 10, 30, 60, 100]);
    let overlaps = prop::sample::select(vec![
        Overlaps::Sent,
        Overlaps::LeftOut,
        Overlaps::AddressesSent,
    ]);
    (
        prop::collection::vec(step, 20..=80),
        flushes,
        0..10_usize,
        any::<u64>(),
        overlaps,
    )
        .prop_map(|(steps, flushes, in_sync_at, seed, overlaps)| Story {
            steps: steps.into_iter().filter(|step| step.happens).collect(),
            flushes,
            in_sync_at,
            seed,
            overlaps,
        })
}

/// Enough to meet what matters, few enough for a test without optimisation.
fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn small_worlds_step_by_step_are_the_same_as_at_once(story in story()) {
        story.check(&[]).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(cases(120))]

    /// With many items, members of new sets are looked up in an index.
    #[test]
    fn large_worlds_step_by_step_are_the_same_as_at_once(story in story()) {
        story.check(&world::crowd()).map_err(TestCaseError::fail)?;
    }
}

// === impl Story ===

impl Story {
    fn config(&self) -> Config {
        Config {
            overlaps: self.overlaps,
            ..Config::for_node(world::LOCAL)
        }
    }

    /// Tells the story after a beginning, and compares with a fresh engine that is told the end at once.
    fn check(&self, beginning: &[Update]) -> Result<(), String> {
        let mut datastore = Datastore::default();
        let mut engine = Engine::new(self.config());
        let mut data_plane = DataPlane::new(self.overlaps);
        for update in std::iter::once(&ready_cluster()).chain(beginning) {
            datastore.set(update);
            engine.on_update(update);
        }
        if !beginning.is_empty() {
            engine.on_in_sync();
            data_plane.apply(engine.flush())?;
        }
        for (number, step) in self.steps.iter().enumerate() {
            if number == self.in_sync_at {
                engine.on_in_sync();
            }
            datastore.set(&step.update);
            engine.on_update(&step.update);
            if step.roll < self.flushes {
                let at = |complaint| format!("after step {number}: {complaint}");
                data_plane.apply(engine.flush()).map_err(at)?;
            }
        }
        engine.on_in_sync();
        data_plane.apply(engine.flush())?;
        let again = engine.flush();
        if !again.is_empty() {
            return Err(format!("sent without a reason: {again:?}"));
        }

        compare(&self.at_once(&datastore)?, &data_plane)?;
        self.tear_down(&datastore, engine, data_plane)
    }

    /// What a fresh engine tells of the content of a datastore, in an order of its own.
    fn at_once(&self, datastore: &Datastore) -> Result<DataPlane, String> {
        let mut updates: Vec<(&String, &Update)> = datastore.0.iter().collect();
        updates.sort_by_cached_key(|(key, _)| {
            let mut hasher = DefaultHasher::new();
            (self.seed, key).hash(&mut hasher);
            hasher.finish()
        });
        let mut engine = Engine::new(self.config());
        let mut data_plane = DataPlane::new(self.overlaps);
        for (_, update) in updates {
            engine.on_update(update);
        }
        engine.on_in_sync();
        data_plane.apply(engine.flush())?;
        Ok(data_plane)
    }

    /// When everything is gone, the data plane is as if nothing had ever been.
    fn tear_down(
        &self,
        datastore: &Datastore,
        mut engine: Engine,
        mut data_plane: DataPlane,
    ) -> Result<(), String> {
        for update in datastore.0.values() {
            if !matches!(update, Update::Cluster(_)) {
                engine.on_update(&absent(update));
            }
        }
        data_plane.apply(engine.flush())?;
        let mut empty = Datastore::default();
        empty.set(&ready_cluster());
        compare(&self.at_once(&empty)?, &data_plane)
    }
}

/// Prints one update a line, with a mark after which there is a flush.
impl fmt::Debug for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, .. } = self;
        writeln!(f, "overlaps {:?}, seed {seed}:", self.overlaps)?;
        for (number, step) in self.steps.iter().enumerate() {
            if number == self.in_sync_at {
                writeln!(f, "     in sync")?;
            }
            let update = serde_json::to_string(&step.update).map_err(|_| fmt::Error)?;
            writeln!(f, "{number:4} {update}")?;
            if step.roll < self.flushes {
                writeln!(f, "     flush")?;
            }
        }
        Ok(())
    }
}

// === impl Datastore ===

impl Datastore {
    fn set(&mut self, update: &Update) {
        let gone = absent(update);
        let key = serde_json::to_string(&gone).expect("an update as JSON");
        if gone == *update {
            self.0.remove(&key);
        } else {
            self.0.insert(key, update.clone());
        }
    }
}

fn compare(expected: &DataPlane, got: &DataPlane) -> Result<(), String> {
    if expected == got {
        return Ok(());
    }
    let names = SetNames::new();
    let (expected, got) = (text::lines(expected, &names), text::lines(got, &names));
    let mut report = "told step by step, the data plane knows something else\n".to_owned();
    for (title, lines, others) in [("missing", &expected, &got), ("too much", &got, &expected)] {
        for line in lines.iter().filter(|line| !others.contains(line)) {
            let _ = writeln!(report, "  {title:8} {line}");
        }
    }
    Err(report)
}
