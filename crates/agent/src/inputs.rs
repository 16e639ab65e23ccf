//! What the datastore says, as updates for the engine.
//!
//! # Invariants
//! - A version of an object that cannot be read leaves the last one that could be in force.

mod remarks;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tortie_api::{Kind, Path, Problems, Resource};
use tortie_convert as convert;
use tortie_convert::{Converted, Converter, Fidelity, ObjectProblem};
use tortie_engine::Update;
use tortie_engine::input::ObjectName;
use tortie_store::{Key, Query, Store, StoreSource};

use tortie_sync::kubernetes;
use tortie_sync::{Batch as Told, Changed, Counters, Followers, Name, Pace, State, Status, Wake};

use self::remarks::Remarks;

pub use self::remarks::Remark;

/// What to follow, and how.
#[derive(Clone)]
pub struct Config {
    /// The kinds of resources.
    pub kinds: Vec<Kind>,
    /// The cluster whose services and endpoint slices are followed too.
    pub cluster: Option<kube::Client>,
    /// How long to wait where something fails.
    pub pace: Pace,
    /// Wakes a consumer that waits for several things at once, and then calls [`Syncer::try_recv`].
    pub wake: Option<Wake>,
}

/// What changed since the batch before, at least one object or the status.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The status once the updates are applied.
    pub status: Status,
    /// The new states of objects, in the order in which these first changed.
    pub updates: Vec<Update>,
    /// What is wrong with objects, and what follows from it. Said once for each of their versions.
    pub problems: Vec<Problem>,
    /// Kinds that the datastore does not let us read although it answers, each with the verb and the cause. What was told
    /// of them stays.
    pub refusals: Vec<String>,
    /// All objects of which no version could be read so far, and for want of which something may be open.
    pub unprotected: Vec<String>,
    /// All objects with which something is wrong now, and what follows from it; only if that changed.
    pub invalid: Option<Vec<Remark>>,
}

/// What is wrong with an object, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The object, and what is wrong with it.
    pub problem: ObjectProblem,
    /// What follows from it.
    pub consequence: Consequence,
}

/// What follows from an object that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// All but this part of it counts.
    Partly,
    /// Its last version that could be read stays in force.
    Kept,
    /// There is none before it: it denies what it decides about.
    Denies,
    /// There is none before it, and it is not known what it closes.
    Missing,
}

/// What is listed and watched as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    Kind(Kind),
    Service,
    EndpointSlice,
}

/// An object that can be read.
#[derive(Debug)]
pub(crate) enum Input {
    Resource(Resource),
    /// Of an object that has no resource.
    Update(Box<Update>),
}

/// Follows a datastore until it is dropped.
pub struct Syncer {
    topics: Vec<Topic>,
    followers: Followers<Input>,
    converter: Converter,
    /// Objects of which the consumer knows no version that could be read.
    poor: HashMap<(Topic, Name), Fidelity>,
    invalid: Remarks,
}

// === impl Config ===

impl Config {
    /// What a node's agent follows. `cluster` is the cluster that is the datastore, if one is.
    pub fn for_agent(cluster: Option<kube::Client>) -> Self {
        Self {
            kinds: [&convert::POLICY_KINDS[..], &convert::NODE_KINDS].concat(),
            cluster,
            pace: Pace::default(),
            wake: None,
        }
    }

    fn topics(&self, store: &Arc<dyn Store>) -> Vec<(Topic, tortie_sync::Topic<Input>)> {
        let mut topics = Vec::new();
        let mut add = |topic: Topic, source| {
            let followed = tortie_sync::Topic {
                name: topic.to_string(),
                source,
                is_optional: false,
            };
            topics.push((topic, followed));
        };
        for kind in &self.kinds {
            let source = StoreSource::new(Arc::clone(store), Query::all(*kind));
            add(Topic::Kind(*kind), Arc::new(source));
        }
        if let Some(cluster) = &self.cluster {
            let services = kubernetes::services(cluster, |service| {
                Input::Update(Box::new(convert::service(&service)))
            });
            add(Topic::Service, Arc::new(services));
            let slices = kubernetes::endpoint_slices(cluster, |slice| {
                Input::Update(Box::new(convert::endpoint_slice(&slice)))
            });
            add(Topic::EndpointSlice, Arc::new(slices));
        }
        topics
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("kinds", &self.kinds)
            .field("cluster", &self.cluster.is_some())
            .field("pace", &self.pace)
            .field("wake", &self.wake.is_some())
            .finish()
    }
}

// === impl Syncer ===

impl Syncer {
    /// Starts to follow a datastore, all kinds at once, with tasks on this runtime.
    pub fn start(store: &Arc<dyn Store>, config: &Config, runtime: &Handle) -> Self {
        let (topics, followed) = config.topics(store).into_iter().unzip();
        let wake = config.wake.clone();
        Self {
            topics,
            followers: Followers::start(followed, &config.pace, wake, runtime),
            converter: Converter::new(),
            poor: HashMap::new(),
            invalid: Remarks::default(),
        }
    }

    /// Waits for what is new and takes all of it. Nothing is lost if the wait is given up.
    pub async fn recv(&mut self) -> Batch {
        let told = self.followers.recv().await;
        self.convert(told)
    }

    /// Like [`Syncer::recv`], on a thread that may block; nothing if nothing comes in time.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Option<Batch> {
        let told = self.followers.recv_timeout(timeout)?;
        Some(self.convert(told))
    }

    /// Takes what is new; nothing if nothing is.
    pub fn try_recv(&mut self) -> Option<Batch> {
        let told = self.followers.try_recv()?;
        Some(self.convert(told))
    }

    /// What happened so far, in numbers.
    pub fn counters(&self) -> &Arc<Counters> {
        self.followers.counters()
    }

    fn convert(&mut self, told: Told<Input>) -> Batch {
        let mut batch = Batch {
            status: told.status,
            updates: Vec::with_capacity(told.objects.len()),
            problems: Vec::new(),
            refusals: told.refusals,
            unprotected: Vec::new(),
            invalid: None,
        };
        for object in told.objects {
            let Changed {
                topic,
                name,
                is_told,
                state,
            } = object;
            let Some(topic) = self.topics.get(topic) else {
                continue;
            };
            let key = (*topic, name);
            let has_good = is_told && !self.poor.contains_key(&key);
            match state {
                State::Present(Input::Resource(mut resource)) => {
                    resource.set_read_defaults();
                    let converted = self.converter.set(&resource);
                    self.take(key, has_good, converted, &mut batch);
                }
                State::Present(Input::Update(update)) => {
                    self.poor.remove(&key);
                    self.invalid.set(&key, None);
                    batch.updates.push(*update);
                }
                State::Absent => {
                    self.poor.remove(&key);
                    self.remove(key.0, &key.1, &mut batch.updates);
                    self.invalid.set(&key, None);
                }
                State::Unreadable(reason, stand_in) => {
                    let unreadable = problems(key.0, &key.1, reason);
                    let mut converted = match stand_in {
                        Some(stand_in) if !has_good => match *stand_in {
                            Input::Resource(stand_in) => self.converter.set(&stand_in),
                            Input::Update(_) => Converted::default(),
                        },
                        _ => Converted::default(),
                    };
                    converted.fidelity = if stand_in_denies(&converted) || is_closed(key.0) {
                        Fidelity::Closed
                    } else {
                        Fidelity::Open
                    };
                    if converted.updates.is_empty() && !has_good {
                        self.remove(key.0, &key.1, &mut converted.updates);
                    }
                    converted.problems = unreadable;
                    self.take(key, has_good, converted, &mut batch);
                }
            }
        }
        let open = self
            .poor
            .iter()
            .filter(|(_, fidelity)| **fidelity == Fidelity::Open);
        batch.unprotected = open
            .map(|((topic, name), _)| object_id(*topic, name))
            .collect();
        batch.unprotected.sort();
        batch.invalid = self.invalid.take_changed();
        batch
    }

    /// Takes what became of an object; where that is not all that the object says, its last good version stays, if there
    /// was one.
    fn take(
        &mut self,
        key: (Topic, Name),
        has_good: bool,
        converted: Converted,
        batch: &mut Batch,
    ) {
        let consequence = match converted.fidelity {
            Fidelity::Whole => Consequence::Partly,
            _ if has_good => Consequence::Kept,
            Fidelity::Closed => Consequence::Denies,
            Fidelity::Open => Consequence::Missing,
        };
        let reasons = converted.problems.iter();
        let reasons: Vec<String> = reasons.map(|reason| reason.problem.to_string()).collect();
        let remark = format!("{}; {consequence}", reasons.join("; "));
        let remark = Some(&*remark).filter(|_| !reasons.is_empty());
        self.invalid.set(&key, remark);
        let problems = converted.problems.into_iter();
        batch.problems.extend(problems.map(|problem| Problem {
            problem,
            consequence,
        }));
        if consequence == Consequence::Kept {
            return;
        }
        batch.updates.extend(converted.updates);
        match converted.fidelity {
            Fidelity::Whole => {
                self.poor.remove(&key);
            }
            poor => {
                self.poor.insert(key, poor);
            }
        }
    }

    fn remove(&mut self, topic: Topic, name: &Name, updates: &mut Vec<Update>) {
        match topic {
            Topic::Kind(kind) => {
                let removed = self.converter.remove(kind, name.namespace(), name.name());
                updates.extend(removed);
            }
            Topic::Service => updates.push(Update::Service(object_name(name), None)),
            Topic::EndpointSlice => {
                updates.push(Update::EndpointSlice(object_name(name), None));
            }
        }
    }
}

/// Whether there is something that denies in place of an object.
fn stand_in_denies(converted: &Converted) -> bool {
    !converted.updates.is_empty() && converted.fidelity == Fidelity::Whole
}

/// Whether less is allowed where an object of the topic is missing, never more.
fn is_closed(topic: Topic) -> bool {
    !matches!(
        topic,
        Topic::Service
            | Topic::EndpointSlice
            | Topic::Kind(
                Kind::GlobalNetworkPolicy
                    | Kind::NetworkPolicy
                    | Kind::Tier
                    | Kind::GlobalNetworkSet
                    | Kind::NetworkSet
                    | Kind::HostEndpoint
            )
    )
}

fn object_name(name: &Name) -> ObjectName {
    ObjectName {
        namespace: name.namespace().to_owned(),
        name: name.name().to_owned(),
    }
}

fn object_id(topic: Topic, name: &Name) -> String {
    let (namespace, name) = (name.namespace(), name.name());
    match topic {
        Topic::Kind(kind) => Key::namespaced(kind, namespace, name).to_string(),
        Topic::Service | Topic::EndpointSlice => format!("{topic}({namespace}/{name})"),
    }
}

fn problems(topic: Topic, name: &Name, reason: String) -> Vec<ObjectProblem> {
    let object = object_id(topic, name);
    let mut problems = Problems::default();
    problems.add_missing(&Path::ROOT, reason);
    let problems = problems.iter().cloned();
    problems
        .map(|problem| ObjectProblem {
            object: object.clone(),
            problem,
        })
        .collect()
}

impl From<Resource> for Input {
    fn from(resource: Resource) -> Self {
        Self::Resource(resource)
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => kind.fmt(f),
            Self::Service => f.write_str("Service"),
            Self::EndpointSlice => f.write_str("EndpointSlice"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.consequence)
    }
}

impl fmt::Display for Consequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Partly => "the rest of it counts",
            Self::Kept => "its last version that could be read stays in force",
            Self::Denies => "it denies what it decides about",
            Self::Missing => "it is missing, and what it closes may be open",
        })
    }
}
