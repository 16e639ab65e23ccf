//! Follows one topic: reads all of it, watches, and reads all again when there is no other way to know what changed.
//!
//! # Invariants
//! - A watch goes on from the last revision that it told. Only where that is no longer kept, or fails again and again,
//!   or after a long silence, everything is read; what went meanwhile is then found by comparison.
//! - Nothing waits for a timer while the datastore answers, but for one case: that everything is gone is believed only
//!   if a second list says the same.
//! - What cannot be listed or watched stays as it was told.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep, sleep_until};
use tortie_backoff::Retries;
use tortie_store::Revision;

use crate::counters::Counters;
use crate::known::Known;
use crate::mailbox::Mailbox;
use crate::object::{Delta, Topic};
use crate::pace::Pace;
use crate::source::{Change, Event, Events, Failure, Snapshot, Source};
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
    retries: Retries,
    /// Since when the datastore cannot be reached.
    lost: Option<Instant>,
    /// Whether a topic that cannot be read counts as read.
    holds_up_nothing: bool,
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
            retries: Retries::new(pace.retry),
            lost: None,
            holds_up_nothing: false,
            pace,
        }
    }

    /// Nothing depends on the topic: if it cannot be read, it counts as read.
    pub(crate) fn hold_up_nothing(&mut self) {
        self.holds_up_nothing = true;
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
            match self.list().await {
                Ok(snapshot) => {
                    self.in_contact();
                    let deltas = self.known.replace(snapshot.items);
                    self.post(deltas, Status::InSync);
                    return snapshot.revision;
                }
                Err(Failure::MissingKind) if self.known.is_empty() => {
                    self.in_contact();
                    self.post(Vec::new(), Status::InSync);
                    sleep(self.pace.missing_kind).await;
                }
                Err(failure) => {
                    self.failed("list", &failure);
                    sleep(self.retries.failed()).await;
                }
            }
        }
    }

    /// Lists everything. A list that has nothing of all that is known may come from a server that does not know its own
    /// data yet: it counts only if a second one agrees.
    async fn list(&mut self) -> Result<Snapshot, Failure> {
        let snapshot = self.source.list().await?;
        if !self.known.loses_all(&snapshot.items) {
            return Ok(snapshot);
        }
        tracing::warn!(topic = %self.topic, "Nothing that was known is listed any more; asking again");
        sleep(self.pace.second_list).await;
        let second = self.source.list().await?;
        if self.known.loses_all(&second.items) {
            tracing::warn!(topic = %self.topic, "A second list agrees: all that was known is gone");
        }
        Ok(second)
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
            let is_sound = ended.has_progressed || opened.elapsed() > self.pace.retry.most;
            if is_sound {
                self.retries.reset();
                failures = 0;
            }
            match ended.failure {
                None if is_sound => continue,
                None => {}
                Some(Failure::Gone) => {
                    tracing::info!(topic = %self.topic, %revision, "Revision is no longer kept; reading everything");
                    return Next::Resync(Duration::ZERO);
                }
                Some(Failure::NotWatchable) => return Next::Poll,
                Some(Failure::MissingKind) if self.known.is_empty() => return Next::Poll,
                Some(failure) => {
                    self.failed("watch", &failure);
                    failures += u32::from(!matches!(failure, Failure::Unreachable(_)));
                    if failures >= MAX_FAILURES_AT_REVISION || self.is_lost() {
                        return Next::Resync(self.retries.failed());
                    }
                }
            }
            sleep(self.retries.failed()).await;
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
        self.mailbox.post_refusal(self.index, None);
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
    fn failed(&mut self, verb: &'static str, failure: &Failure) {
        self.counters.count_error();
        let topic = self.topic;
        let error = failure as &dyn std::error::Error;
        if self.lost.is_none() {
            tracing::warn!(%topic, verb, error, "The datastore cannot be followed; will retry");
        } else {
            tracing::debug!(%topic, verb, error, "The datastore still cannot be followed");
        }
        // A datastore that is away tells nothing, and what it told stays right. One that answers, but not this, may have
        // changes that nobody hears of.
        let is_refused = !matches!(failure, Failure::Unreachable(_));
        if is_refused && self.holds_up_nothing {
            self.lost.get_or_insert_with(Instant::now);
            self.post(Vec::new(), Status::InSync);
            return;
        }
        if is_refused {
            let refusal = format!("{topic}: {verb}: {}", chain(error));
            self.mailbox.post_refusal(self.index, Some(refusal));
        }
        self.lost.get_or_insert_with(Instant::now);
        if self.is_lost() && self.status != Status::WaitForDatastore {
            self.post(Vec::new(), Status::WaitForDatastore);
        }
    }
}

/// An error and its causes, without those that are said already.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures::stream;

    use super::*;
    use crate::object::{Item, Name, State};

    /// Gives these lists, one after the other, and nothing else.
    struct Lists(Mutex<VecDeque<&'static [&'static str]>>);

    #[async_trait]
    impl Source for Lists {
        async fn list(&self) -> Result<Snapshot, Failure> {
            let names = self.0.lock().unwrap().pop_front().unwrap();
            let item = |name: &&str| Item {
                version: "1".into(),
                ..Item::unreadable(Name::new("", name), String::new(), None)
            };
            Ok(Snapshot {
                items: names.iter().map(item).collect(),
                revision: Revision::default(),
            })
        }

        async fn watch(&self, _: &Revision) -> Result<Events, Failure> {
            if self.0.lock().unwrap().is_empty() {
                return Ok(stream::pending().boxed());
            }
            Err(Failure::Gone)
        }
    }

    /// Follows these lists, and gives the names that were told to be gone.
    async fn gone(lists: &[&'static [&'static str]]) -> Vec<String> {
        let mailbox = Arc::new(Mailbox::new(1, None));
        let source = Box::new(Lists(Mutex::new(lists.iter().copied().collect())));
        let (post, counters) = (Arc::clone(&mailbox), Arc::new(Counters::default()));
        let pace = Pace::default();
        let cache = Cache::new(0, Topic::Service, source, post, counters, pace);
        let task = tokio::spawn(cache.run());
        let mut gone = Vec::new();
        // Time stands still but for waits: after so long, nothing more happens.
        let end = sleep(Duration::from_mins(1));
        tokio::pin!(end);
        loop {
            tokio::select! {
                taken = mailbox.receive() => {
                    let objects = taken.objects.into_iter();
                    let absent = objects.filter(|taking| matches!(taking.state, State::Absent));
                    gone.extend(absent.map(|taking| taking.name.name().to_owned()));
                }
                () = &mut end => break,
            }
        }
        task.abort();
        gone.sort();
        gone
    }

    #[tokio::test(start_paused = true)]
    async fn that_everything_is_gone_is_believed_only_if_a_second_list_agrees() {
        let both: &[&str] = &["a", "b"];
        assert_eq!(gone(&[both, &[], both]).await, [""; 0]);
        assert_eq!(gone(&[both, &[], &["b"]]).await, ["a"]);
        assert_eq!(gone(&[both, &["c"], both]).await, [""; 0]);
        assert_eq!(gone(&[both, &[], &[]]).await, ["a", "b"]);
        assert_eq!(gone(&[both, &["a"]]).await, ["b"]);
    }
}
