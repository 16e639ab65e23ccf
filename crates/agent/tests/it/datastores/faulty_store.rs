//! A datastore that does everything to its readers that a real one may do.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::watch;
use tortie_store::{
    Change, Error, Event, Invalid, Key, Kind, List, Precondition, Query, Resource, Result,
    Revision, Store, Watch,
};

use tortie_testkit::Random;

/// The label of objects that cannot be read.
pub(crate) const UNREADABLE: &str = "unreadable";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Does what it should.
    Calm,
    /// Delays, repeats, goes back in time, breaks off, refuses.
    Moody,
    /// Does not answer, and ends what is under way.
    Down,
}

/// Passes everything on to another store, in its own manner.
#[derive(Clone)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    mood: Arc<watch::Sender<Mood>>,
    random: Arc<Mutex<Random>>,
    /// Lists that were given before.
    lists: Arc<Mutex<HashMap<Kind, Vec<List>>>>,
}

/// A watch with faults.
struct Faulty {
    store: FaultyStore,
    inner: Watch,
    repeats: VecDeque<Event>,
    mood: watch::Receiver<Mood>,
    is_over: bool,
}

// === impl FaultyStore ===

impl FaultyStore {
    pub(crate) fn new(inner: Arc<dyn Store>, seed: u64, mood: Mood) -> Self {
        Self {
            inner,
            mood: Arc::new(watch::Sender::new(mood)),
            random: Arc::new(Mutex::new(Random::new(seed))),
            lists: Arc::default(),
        }
    }

    pub(crate) fn be(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// True once in so many times, and only if faults are wanted.
    fn fails(&self, times: u64) -> bool {
        *self.mood.borrow() == Mood::Moody && self.random.lock().unwrap().once_in(times)
    }

    async fn dawdle(&self) {
        if self.fails(3) {
            let time = self.random.lock().unwrap().below(2000);
            tokio::time::sleep(Duration::from_micros(time)).await;
        }
    }

    fn refuse(&self) -> Result<()> {
        if *self.mood.borrow() == Mood::Down || self.fails(4) {
            return Err(unavailable());
        }
        if self.fails(8) {
            return Err(Error::message("it makes no sense"));
        }
        Ok(())
    }

    /// One of the lists that were given before.
    fn earlier_list(&self, kind: Kind) -> Option<List> {
        let lists = self.lists.lock().unwrap();
        let lists = lists.get(&kind)?;
        let index = self.random.lock().unwrap().below(lists.len() as u64);
        lists.get(usize::try_from(index).unwrap()).cloned()
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn get(&self, key: &Key) -> Result<Resource> {
        self.inner.get(key).await
    }

    async fn list(&self, query: &Query) -> Result<List> {
        self.dawdle().await;
        self.refuse()?;
        if self.fails(4)
            && let Some(list) = self.earlier_list(query.kind)
        {
            return Ok(list);
        }
        let mut list = self.inner.list(query).await?;
        let (unreadable, readable) = list.items.into_iter().partition(is_unreadable);
        list.items = readable;
        let unreadable: Vec<Resource> = unreadable;
        list.invalid.extend(unreadable.iter().map(invalid));
        let mut lists = self.lists.lock().unwrap();
        lists.entry(query.kind).or_default().push(list.clone());
        Ok(list)
    }

    /// In parts of a few objects; after any of them it may break off.
    fn list_in_parts(&self, query: &Query) -> BoxStream<'_, Result<List>> {
        let query = query.clone();
        let parts = async move {
            let mut list = self.list(&query).await?;
            let mut parts = vec![List {
                items: Vec::new(),
                ..list.clone()
            }];
            while !list.items.is_empty() {
                let rest = list.items.split_off(list.items.len().min(2));
                let items = std::mem::replace(&mut list.items, rest);
                parts.push(List {
                    items,
                    invalid: Vec::new(),
                    revision: list.revision.clone(),
                });
            }
            Ok::<_, Error>(stream::iter(parts))
        };
        let parts = stream::once(parts)
            .map_ok(|parts| parts.map(Ok))
            .try_flatten();
        let parts = parts.map(|part| match part {
            _ if self.fails(20) => Err(unavailable()),
            Ok(part) if self.fails(20) => Err(Error::Gone(part.revision.0)),
            part => part,
        });
        parts.boxed()
    }

    async fn create(&self, resource: Resource) -> Result<Resource> {
        self.inner.create(resource).await
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        self.inner.update(resource).await
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.inner.delete(key, precondition).await
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        self.dawdle().await;
        self.refuse()?;
        if self.fails(6) {
            return Err(Error::Gone(from.0.clone()));
        }
        let mut from = from.clone();
        let number = |revision: &Revision| revision.0.parse::<u64>().unwrap();
        if self.fails(3)
            && let Some(earlier) = self.earlier_list(query.kind)
            && number(&earlier.revision) < number(&from)
        {
            from = earlier.revision;
        }
        let faulty = Faulty {
            store: self.clone(),
            inner: self.inner.watch(query, &from).await?,
            repeats: VecDeque::new(),
            mood: self.mood.subscribe(),
            is_over: false,
        };
        let events = stream::unfold(faulty, async |mut faulty| {
            let event = faulty.next().await?;
            Some((event, faulty))
        });
        Ok(events.boxed())
    }
}

// === impl Faulty ===

impl Faulty {
    async fn next(&mut self) -> Option<Result<Event>> {
        if let Some(event) = self.repeats.pop_front() {
            return Some(Ok(event));
        }
        if self.is_over {
            return None;
        }
        self.store.dawdle().await;
        let event = tokio::select! {
            event = self.inner.next() => event?,
            _ = self.mood.wait_for(|mood| *mood == Mood::Down) => Err(unavailable()),
        };
        let store = &self.store;
        let event = match event {
            _ if store.fails(30) => Err(unavailable()),
            _ if store.fails(30) => Err(Error::message("it makes no sense")),
            Ok(event) if store.fails(20) => Err(Error::Gone(event.revision.0)),
            _ if store.fails(20) => return None,
            event => event.map(with_unreadable),
        };
        self.is_over = event.is_err();
        if let Ok(event) = &event
            && self.store.fails(4)
        {
            self.repeats.push_back(event.clone());
        }
        Some(event)
    }
}

fn with_unreadable(mut event: Event) -> Event {
    if let Change::Put(resource) = &event.change
        && is_unreadable(resource)
    {
        event.change = Change::Invalid(invalid(resource));
    }
    event
}

fn is_unreadable(resource: &Resource) -> bool {
    resource.metadata().labels.contains_key(UNREADABLE)
}

fn invalid(resource: &Resource) -> Invalid {
    let reason = "it has the label of those".to_owned();
    Invalid::new(Key::of(resource), reason, None)
}

fn unavailable() -> Error {
    Error::Unavailable {
        message: "for a test".to_owned(),
        source: None,
    }
}
