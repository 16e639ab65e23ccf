//! A consumer that adds up what it is told, and what it should come to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tortie_agent::inputs::{Batch, Config, Problem, Remark, Syncer};
use tortie_backoff::Backoff;
use tortie_convert::Converter;
use tortie_engine::Update;
use tortie_store::{Kind, Query, Resource, Store};
use tortie_sync::{Pace, Status};

/// Far beyond what anything here takes; only what is lost takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The last value of each object, by its key in JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct World(BTreeMap<String, Value>);

pub(crate) struct Consumer {
    pub(crate) syncer: Syncer,
    pub(crate) world: World,
    pub(crate) status: Status,
    pub(crate) problems: Vec<Problem>,
    /// What the datastore does not let us read now.
    pub(crate) refusals: Vec<String>,
    /// What may be open.
    pub(crate) unprotected: Vec<String>,
    pub(crate) invalid: Vec<Remark>,
}

// === impl World ===

impl World {
    pub(crate) fn apply(&mut self, updates: &[Update]) {
        for update in updates {
            let Value::Object(tagged) = serde_json::to_value(update).unwrap() else {
                panic!("{update:?}");
            };
            let (tag, content) = tagged.into_iter().next().unwrap();
            let (key, value) = match (&tag[..], content) {
                ("cluster" | "bgpConfiguration", value) => (Value::Null, value),
                (_, Value::Array(mut pair)) if pair.len() == 2 => {
                    let value = pair.pop().unwrap();
                    (pair.pop().unwrap(), value)
                }
                other => panic!("{other:?}"),
            };
            let key = format!("{tag} {key}");
            match value {
                Value::Null => self.0.remove(&key),
                value => self.0.insert(key, value),
            };
        }
    }

    /// What a datastore holds.
    pub(crate) async fn of(store: &dyn Store, kinds: &[Kind]) -> Self {
        let mut world = Self::default();
        let mut converter = Converter::new();
        for kind in kinds {
            for mut resource in store.list(&Query::all(*kind)).await.unwrap().items {
                resource.set_read_defaults();
                world.apply(&converter.set(&resource).updates);
            }
        }
        world
    }

    pub(crate) fn has(&self, part_of_key: &str) -> bool {
        self.0.keys().any(|key| key.contains(part_of_key))
    }

    /// The values of the objects whose key begins so.
    pub(crate) fn matching(&self, start_of_key: &str) -> impl Iterator<Item = &Value> {
        let objects = self.0.iter();
        let matching = objects.filter(move |(key, _)| key.starts_with(start_of_key));
        matching.map(|(_, value)| value)
    }

    pub(crate) fn includes(&self, other: &Self) -> bool {
        other
            .0
            .iter()
            .all(|(key, value)| self.0.get(key) == Some(value))
    }

    #[track_caller]
    pub(crate) fn assert_is(&self, expected: &Self, context: &str) {
        let keys = |world: &Self, other: &Self| -> Vec<String> {
            let differs = |(key, value): &(&String, &Value)| other.0.get(*key) != Some(*value);
            let differing = world.0.iter().filter(differs);
            differing
                .map(|(key, value)| format!("{key} = {value}"))
                .collect()
        };
        let (extra, missing) = (keys(self, expected), keys(expected, self));
        assert!(
            extra.is_empty() && missing.is_empty(),
            "{context}: told and not so: {extra:#?}\nso and not told: {missing:#?}"
        );
    }
}

// === impl Consumer ===

impl Consumer {
    pub(crate) fn start(store: &Arc<dyn Store>, config: &Config) -> Self {
        let runtime = tokio::runtime::Handle::current();
        Self {
            syncer: Syncer::start(store, config, &runtime),
            world: World::default(),
            status: Status::WaitForDatastore,
            problems: Vec::new(),
            refusals: Vec::new(),
            unprotected: Vec::new(),
            invalid: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, batch: Batch) {
        self.world.apply(&batch.updates);
        self.problems.extend(batch.problems);
        self.status = batch.status;
        self.refusals = batch.refusals;
        self.unprotected = batch.unprotected;
        self.invalid = batch
            .invalid
            .unwrap_or_else(|| std::mem::take(&mut self.invalid));
    }

    /// Takes what comes until this is true.
    pub(crate) async fn until(&mut self, what: &str, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            let batch = tokio::time::timeout(PATIENCE, self.syncer.recv()).await;
            let Ok(batch) = batch else {
                panic!("{what}: {:?}, {:#?}", self.status, self.world);
            };
            self.take(batch);
        }
    }

    pub(crate) async fn until_in_sync(&mut self) {
        self.until("in sync", |this| this.status == Status::InSync)
            .await;
    }

    /// Takes what comes until the objects are those of the datastore.
    pub(crate) async fn until_like(&mut self, store: &dyn Store, kinds: &[Kind]) {
        let expected = World::of(store, kinds).await;
        let is_like = |this: &Self| {
            let mut world = this.world.clone();
            world.0.retain(|key, _| {
                !key.starts_with("service ") && !key.starts_with("endpointSlice ")
            });
            world == expected
        };
        self.until(&format!("{expected:#?}"), is_like).await;
    }
}

/// Retries at once, so that tests need not wait.
pub(crate) fn quick() -> Pace {
    Pace {
        retry: Backoff {
            first: Duration::from_millis(1),
            most: Duration::from_millis(20),
            jitter: 0.5,
        },
        between_resyncs: Duration::from_millis(1),
        poll: Duration::from_millis(5),
        second_list: Duration::from_millis(50),
        ..Pace::default()
    }
}

pub(crate) fn config() -> Config {
    Config {
        pace: quick(),
        ..Config::for_agent(None)
    }
}

pub(crate) fn resource(kind: Kind, namespace: &str, name: &str, spec: &Value) -> Resource {
    let mut metadata = json!({ "name": name });
    if kind.is_namespaced() {
        metadata["namespace"] = namespace.into();
    }
    Resource::decode_stored(kind, &json!({ "metadata": metadata, "spec": spec })).unwrap()
}

pub(crate) fn set(name: &str, net: &str) -> Resource {
    resource(Kind::GlobalNetworkSet, "", name, &json!({ "nets": [net] }))
}

pub(crate) fn endpoint(pod: &str, address: &str) -> Resource {
    let spec = json!({
        "orchestrator": "k8s", "node": "n1", "pod": pod, "endpoint": "eth0",
        "interfaceName": format!("cali{pod}"), "profiles": ["kns.default"],
        "ipNetworks": [format!("{address}/32")],
    });
    let name = format!("n1-k8s-{pod}-eth0");
    resource(Kind::WorkloadEndpoint, "default", &name, &spec)
}
