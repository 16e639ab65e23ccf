//! Follows one topic: reads all of it, watches, and reads all again when there is no other way to know what changed.
//!
//! # Invariants
//! - A watch goes on from the last revision that it told. Only where that is no longer kept, or fails again and again,
//!   or after a long silence, everything is read; what went meanwhile is then found by comparison.
//! - Nothing waits for a timer while the datastore answers.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep, sleep_until};
use tortie_store::Revision;

use crate::backoff::{Backoff, Pace};
use crate::counters::Counters;
use crate::known::Known;
use crate::mailbox::Mailbox;
use crate::object::{Delta, Topic};
use crate::source::{Change, Event, Events, Failure, Source};
use crate::status::Status;

/// How many failures at one revision, of which retries may not be the cure, lead to a reading of everything.
const MAX_FAILURES_AT_REVISION: u32 = 5;

/// How many events that are there already are passed on together.
const MAX_EVENTS_AT_ONCE: usize = 256;

pub(crate) struct Cache {
    /// Its number among the caches of the mailbox.
    index: usize,
    topic: Topic,
    source: Box<dyn Source>,
    mailbox: Arc<Mailbox>,
    counters: Arc<Counters>,
    pace: Pace,
    known: Known,
    status: Status,
    backoff: Backoff,
    /// Since when the datastore cannot be reached.
    lost: Option<Instant>,
}

/// When everything is to be read again.
enum Next {
    /// After a while, since what was told may no longer be true.
    Resync(Duration),
    /// At the next regular look.
    Poll,
}

/// How a watch ended.
struct Ended {
    /// Nothing if the stream was just over.
    failure: Option<Failure>,
    /// Whether there was any event.
    has_progressed: bool,
}

impl Cache {
    pub(crate) fn new(
        index: usize,
        topic: Topic,
        source: Box<dyn Source>,
        mailbox: Arc<Mailbox>,
        counters: Arc<Counters>,
        pace: Pace,
    ) -> Self {
        Self {
            index,
            topic,
            source,
            mailbox,
            counters,
            known: Known::default(),
            status: Status::default(),
            backoff: Backoff::new(&pace),
            lost: None,
            pace,
        }
    }

    /// Follows the topic until the task is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let not_before = Instant::now() + self.pace.between_resyncs;
            let revision = self.read_all().await;
            let pause = match self.follow(revision).await {
                Next::Poll => self.pace.poll,
                Next::Resync(pause) => {
                    if self.status == Status::InSync {
                        self.post(Vec::new(), Status::ResyncInProgress);
                    }
                    pause
                }
            };
            sleep_until(not_before.max(Instant::now() + pause)).await;
        }
    }

    /// Reads everything, as often as it takes to succeed.
    async fn read_all(&mut self) -> Revision {
        loop {
            self.counters.count_resync();
            match self.source.list().await {
                Ok(snapshot) => {
                    self.in_contact();
                    let deltas = self.known.replace(snapshot.items);
                    self.post(deltas, Status::InSync);
                    return snapshot.revision;
                }
                Err(Failure::MissingKind) => {
                    self.in_contact();
                    let deltas = self.known.replace(Vec::new());
                    self.post(deltas, Status::InSync);
                    sleep(self.pace.missing_kind).await;
                }
                Err(failure) => {
                    self.failed(&failure);
                    sleep(self.backoff.next()).await;
                }
            }
        }
    }

    /// Watches until everything must be read again.
    async fn follow(&mut self, mut revision: Revision) -> Next {
        let mut failures = 0;
        loop {
            let opened = Instant::now();
            let ended = match self.source.watch(&revision).await {
                Ok(events) => {
                    self.in_contact();
                    self.absorb(events, &mut revision).await
                }
                Err(failure) => Ended {
                    failure: Some(failure),
                    has_progressed: false,
                },
            };
            self.counters.count_watch_restart();
            let is_sound = ended.has_progressed || opened.elapsed() > self.pace.longest_retry;
            if is_sound {
                self.backoff.reset();
                failures = 0;
            }
            match ended.failure {
                None if is_sound => continue,
                None => {}
                Some(Failure::Gone) => {
                    tracing::info!(topic = %self.topic, %revision, "Revision is no longer kept; reading everything");
                    return Next::Resync(Duration::ZERO);
                }
                Some(Failure::NotWatchable | Failure::MissingKind) => return Next::Poll,
                Some(failure) => {
                    self.failed(&failure);
                    failures += u32::from(matches!(failure, Failure::Other(_)));
                    if failures >= MAX_FAILURES_AT_REVISION || self.is_lost() {
                        return Next::Resync(self.backoff.next());
                    }
                }
            }
            sleep(self.backoff.next()).await;
        }
    }

    /// Passes events on until there are no more; what is there already, together.
    async fn absorb(&mut self, events: Events, revision: &mut Revision) -> Ended {
        let mut has_progressed = false;
        let mut events = events.ready_chunks(MAX_EVENTS_AT_ONCE);
        while let Some(chunk) = events.next().await {
            let mut deltas = Vec::new();
            let mut failure = None;
            for event in chunk {
                match event {
                    Ok(event) => {
                        deltas.extend(self.delta(event, revision));
                        has_progressed = true;
                    }
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                }
            }
            if !deltas.is_empty() {
                self.post(deltas, self.status);
            }
            if failure.is_some() {
                return Ended {
                    failure,
                    has_progressed,
                };
            }
        }
        Ended {
            failure: None,
            has_progressed,
        }
    }

    fn delta(&mut self, event: Event, revision: &mut Revision) -> Option<Delta> {
        *revision = event.revision;
        match event.change {
            Change::Set(item) => self.known.set(item),
            Change::Remove(name) => self.known.remove(name),
            Change::Nothing => None,
        }
    }

    fn post(&mut self, deltas: Vec<Delta>, status: Status) {
        self.status = status;
        self.counters.count_updates(deltas.len());
        self.mailbox.post(self.index, self.topic, deltas, status);
    }

    fn in_contact(&mut self) {
        if let Some(since) = self.lost.take() {
            let (topic, after) = (self.topic, since.elapsed());
            tracing::info!(%topic, ?after, "The datastore can be followed again");
        }
    }

    fn is_lost(&self) -> bool {
        self.lost
            .is_some_and(|since| since.elapsed() > self.pace.contact_lost)
    }

    /// Notes a failure. What was told stays as it is; only the status changes, if this goes on for long.
    fn failed(&mut self, failure: &Failure) {
        self.counters.count_error();
        let topic = self.topic;
        let error = failure as &dyn std::error::Error;
        if self.lost.is_none() {
            tracing::warn!(%topic, error, "The datastore cannot be followed; will retry");
        } else {
            tracing::debug!(%topic, error, "The datastore still cannot be followed");
        }
        self.lost.get_or_insert_with(Instant::now);
        if self.is_lost() && self.status != Status::WaitForDatastore {
            self.post(Vec::new(), Status::WaitForDatastore);
        }
    }
}
