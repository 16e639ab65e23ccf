//! The API server is killed in the middle of writes, again and again: what it has acknowledged is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kube::api::ListParams;
use tortie_testkit::Random;

use crate::up::objects::{Step, Written, revision};
use crate::up::server::Up;

const KILLS: u32 = 100;

const WRITERS: u64 = 8;

/// How many objects a writer has.
const OBJECTS: u64 = 5;

/// How long after it is ready a server is killed at most, in microseconds.
const AFTER_READY: u64 = 60_000;

/// What a writer knows of an object.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// What it holds, and since which revision, as far as that was answered.
    acknowledged: Option<(u64, u64)>,
    /// What was under way when the server was killed.
    uncertain: Option<Step>,
}

/// A writer with its objects.
struct Writer {
    of: Written,
    objects: BTreeMap<String, Known>,
    random: Random,
    next_number: u64,
    /// The last revision that it was answered.
    revision: u64,
}

impl Writer {
    fn new(number: u64) -> Self {
        let of = Written::ALL[usize::from(number % 2 == 1)];
        let name = |object: u64| format!("writer-{number}-{object}");
        Self {
            of,
            objects: (0..OBJECTS)
                .map(|object| (name(object), Known::default()))
                .collect(),
            random: Random::new(number),
            next_number: number << 16,
            revision: 0,
        }
    }

    /// Writes until the server is gone.
    async fn run(
        mut self,
        client: kube::Client,
        is_over: Arc<AtomicBool>,
        done: Arc<AtomicUsize>,
    ) -> Self {
        let api = self.of.api(&client);
        loop {
            let chosen = self.random.below(OBJECTS);
            let chosen = usize::try_from(chosen).unwrap();
            let (name, known) = self.objects.iter_mut().nth(chosen).unwrap();
            self.next_number += 1;
            let step = match known.acknowledged {
                None => Step::Create(self.next_number),
                Some(_) if self.random.once_in(3) => Step::Delete,
                Some(_) => Step::Update(self.next_number),
            };
            known.uncertain = Some(step);
            match step.take(&api, self.of, name).await {
                Ok(revision) => {
                    known.uncertain = None;
                    if let Some(revision) = revision {
                        assert!(
                            revision > self.revision,
                            "{revision} after {}",
                            self.revision
                        );
                        self.revision = revision;
                    }
                    known.acknowledged = step
                        .result()
                        .map(|number| (number, revision.unwrap_or_default()));
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Err(kube::Error::Api(status)) => panic!("{step:?} of {name}: {status:?}"),
                Err(_) if is_over.load(Ordering::Acquire) => return self,
                Err(error) => panic!("{step:?} of {name}: {error}"),
            }
        }
    }

    /// Compares what is there with what was answered.
    fn check(&mut self, found: &BTreeMap<String, (u64, u64)>) {
        for (name, known) in &mut self.objects {
            let there = found.get(name).copied();
            let is_acknowledged = there == known.acknowledged;
            let numbers = there.map(|(number, _)| number);
            let is_uncertain = known.uncertain.is_some_and(|step| step.result() == numbers);
            assert!(
                is_acknowledged || is_uncertain,
                "{name}: there is {there:?}, and known is {known:?}"
            );
            *known = Known {
                acknowledged: there,
                uncertain: None,
            };
        }
    }
}

#[test]
fn acknowledged_writes_are_there_however_often_the_server_is_killed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut up = Up::api_server_with_port();
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let mut random = Random::new(u64::from(KILLS));
    let mut last_revision = 0;
    let mut total = 0;
    for kill in 1..=KILLS {
        let is_over = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicUsize::new(0));
        let started = writers.into_iter().map(|writer| {
            let client = runtime.block_on(up.client());
            runtime.spawn(writer.run(client, Arc::clone(&is_over), Arc::clone(&done)))
        });
        let started: Vec<_> = started.collect();
        while done.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(random.below(AFTER_READY)));
        is_over.store(true, Ordering::Release);
        let place = up.kill();
        let ended = started
            .into_iter()
            .map(|writer| runtime.block_on(writer).unwrap());
        writers = ended.collect();
        up = place.start();
        total += done.load(Ordering::Relaxed);

        let (found, revision) = runtime.block_on(everything(&up));
        assert!(
            revision >= last_revision,
            "kill {kill}: {revision} after {last_revision}"
        );
        last_revision = revision;
        for writer in &mut writers {
            assert!(
                writer.revision <= revision,
                "kill {kill}: {} was answered, now it is {revision}",
                writer.revision
            );
            // What comes next must be later than all that was.
            writer.revision = revision;
            writer.check(&found);
        }
    }
    assert!(
        total > usize::try_from(KILLS).unwrap(),
        "only {total} writes"
    );
    let log = up.log();
    assert!(!log.contains("panicked"), "{log}");
}

/// All objects with number and revision, and the revision of the newest list.
async fn everything(up: &Up) -> (BTreeMap<String, (u64, u64)>, u64) {
    let client = up.client().await;
    let mut found = BTreeMap::new();
    let mut newest = 0;
    for of in Written::ALL {
        let list = of.api(&client).list(&ListParams::default()).await.unwrap();
        let listed: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
        newest = newest.max(listed);
        for object in list.items {
            let revision = revision(&object);
            assert!(revision <= listed, "{revision} in a list of {listed}");
            let name = object.metadata.name.clone().unwrap();
            found.insert(name, (of.number(&object), revision));
        }
    }
    (found, newest)
}
