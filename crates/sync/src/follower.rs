//! Follows the objects of one source: reads all of them, watches, and reads all again when there is no other way to know
//! what changed.
//!
//! # Invariants
//! - A watch goes on from the last revision that it told. Only where that is no longer kept, or fails again and again,
//!   or after a long silence, everything is read; what went meanwhile is then found by comparison.
//! - Objects are told as the parts of a list come. What is gone is told at the end of a whole list, never of a part.
//! - Nothing waits for a timer while the datastore answers, but for one case: that everything is gone is believed only
//!   if a second list says the same.
//! - What cannot be listed or watched stays as it was told.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep, sleep_until};
use tortie_error::Causes;
use tracing::Instrument as _;

use crate::counters::Counters;
use crate::keeper::Keeper;
use crate::pace::Pace;
use crate::resumed::{Resumed, Step, Watched};
use crate::revision::Revision;
use crate::source::{Change, Event, Events, Failure, Reading, Source};
use crate::status::Status;

/// How many failures at one revision, of which retries may not be the cure, lead to a reading of everything.
const MAX_FAILURES_AT_REVISION: u32 = 5;

/// Follows the objects of one source, and tells a keeper.
pub struct Follower<V: Send + 'static, K> {
    /// For messages.
    topic: String,
    source: Arc<dyn Source<V>>,
    watch: Resumed<Watching<V>>,
    keeper: K,
    counters: Arc<Counters>,
    pace: Pace,
    status: Status,
    /// Since when the datastore cannot be reached.
    lost: Option<Instant>,
    /// Whether a topic that cannot be read counts as read.
    holds_up_nothing: bool,
    period: Option<Duration>,
}

/// What is watched of a source.
struct Watching<V>(Arc<dyn Source<V>>);

/// When everything is to be read again.
enum Next {
    /// After a while, since what was told may no longer be true.
    Resync(Duration),
    /// At the next regular look.
    Poll,
    /// Now, since it is time.
    Due,
}

/// Whether a list counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// If it has an object that is known, or none is.
    IfFamiliar,
    /// In any case.
    Always,
}

impl<V: Send + 'static, K: Keeper<V>> Follower<V, K> {
    /// A follower that has read nothing yet. The topic is for messages.
    pub fn new(topic: String, source: Arc<dyn Source<V>>, keeper: K, pace: Pace) -> Self {
        let watch = Resumed::new(
            Watching(Arc::clone(&source)),
            Revision::default(),
            pace.retry,
        );
        Self {
            topic,
            source,
            watch,
            keeper,
            counters: Arc::default(),
            status: Status::default(),
            lost: None,
            holds_up_nothing: false,
            period: None,
            pace,
        }
    }

    /// Counts here what happens.
    #[must_use]
    pub fn counting(mut self, counters: Arc<Counters>) -> Self {
        self.counters = counters;
        self
    }

    /// Nothing depends on the topic: if it cannot be read, it counts as read.
    #[must_use]
    pub fn holding_up_nothing(mut self) -> Self {
        self.holds_up_nothing = true;
        self
    }

    /// Reads everything so often although nothing is wrong.
    #[must_use]
    pub fn comparing_every(mut self, period: Option<Duration>) -> Self {
        self.period = period;
        self
    }

    /// Follows until the task is dropped.
    pub async fn run(self) {
        let span = tracing::error_span!("watch", topic = self.topic);
        self.follow_for_ever().instrument(span).await;
    }

    async fn follow_for_ever(mut self) {
        loop {
            let start = Instant::now();
            let revision = self.read_all().await;
            let due = self.period.map(|period| Instant::now() + period);
            self.watch.restart(revision);
            let pause = match self.follow(due).await {
                Next::Poll => self.pace.poll,
                Next::Due => Duration::ZERO,
                Next::Resync(pause) => {
                    if self.status == Status::InSync {
                        self.tell(Vec::new(), Status::ResyncInProgress).await;
                    }
                    pause
                }
            };
            let not_before = start + self.pace.between_resyncs;
            sleep_until(not_before.max(Instant::now() + pause)).await;
        }
    }

    /// Reads everything, as often as it takes to succeed.
    async fn read_all(&mut self) -> Revision {
        let mut reading = Reading::InParts;
        loop {
            self.counters.count_resync();
            let failure = match self.list(reading).await {
                Ok(revision) => return revision,
                Err(failure) => failure,
            };
            if matches!(failure, Failure::MissingKind) && self.keeper.is_empty() {
                self.in_contact().await;
                self.end_list().await;
                sleep(self.pace.missing_kind).await;
                continue;
            }
            if matches!(failure, Failure::Gone) && reading == Reading::InParts {
                tracing::info!("The revision was forgotten before all was read; reading at once");
                reading = Reading::AtOnce;
            } else {
                self.failed("list", &failure).await;
                reading = Reading::InParts;
            }
            sleep(self.watch.retries.failed()).await;
        }
    }

    /// Reads everything. A list that has nothing of all that is known may come from a server that does not know its own
    /// data yet: it counts only if a second one agrees.
    async fn list(&mut self, reading: Reading) -> Result<Revision, Failure> {
        if let Some(revision) = self.list_once(reading, Trust::IfFamiliar).await? {
            return Ok(revision);
        }
        tracing::warn!("Nothing that was known is listed any more; asking again");
        sleep(self.pace.second_list).await;
        let revision = self.list_once(reading, Trust::Always).await?;
        Ok(revision.unwrap_or_default())
    }

    /// Reads everything, and tells it as it comes; nothing is told, and nothing given, as long as it cannot be trusted.
    async fn list_once(
        &mut self,
        reading: Reading,
        trust: Trust,
    ) -> Result<Option<Revision>, Failure> {
        self.keeper.begin_list();
        let source = Arc::clone(&self.source);
        let mut parts = source.list(reading);
        let mut revision = Revision::default();
        let mut held = Vec::new();
        let mut is_familiar = self.keeper.is_empty();
        let mut counts = trust == Trust::Always;
        while let Some(part) = parts.next().await {
            let part = part?;
            revision = part.revision;
            is_familiar |= part.items.iter().any(|item| self.keeper.has(&item.name));
            counts |= is_familiar;
            held.extend(part.items.into_iter().map(Change::Set));
            if counts {
                let status = self.status.max(Status::ResyncInProgress);
                self.tell(std::mem::take(&mut held), status).await;
            }
        }
        if !counts {
            return Ok(None);
        }
        if !is_familiar {
            tracing::warn!("A second list agrees: all that was known is gone");
        }
        self.in_contact().await;
        self.end_list().await;
        Ok(Some(revision))
    }

    /// Watches until everything must be read again.
    async fn follow(&mut self, due: Option<Instant>) -> Next {
        let mut failures = 0;
        loop {
            let step = tokio::select! {
                step = self.watch.next() => step,
                () = until(due) => return Next::Due,
            };
            let (failure, was_sound) = match step {
                Step::Opened => {
                    self.in_contact().await;
                    continue;
                }
                Step::Events(events) => {
                    self.pass_on(events).await;
                    continue;
                }
                Step::Ended { failure, was_sound } => (failure, was_sound),
            };
            self.counters.count_watch_restart();
            if was_sound {
                failures = 0;
            }
            match failure {
                None => {}
                Some(Failure::Gone) => {
                    let revision = self.watch.revision();
                    tracing::info!(%revision, "Revision is no longer kept; reading everything");
                    return Next::Resync(Duration::ZERO);
                }
                Some(Failure::NotWatchable) => return Next::Poll,
                Some(Failure::MissingKind) if self.keeper.is_empty() => return Next::Poll,
                Some(failure) => {
                    self.failed("watch", &failure).await;
                    failures += u32::from(!matches!(failure, Failure::Unreachable(_)));
                    if failures >= MAX_FAILURES_AT_REVISION || self.is_lost() {
                        return Next::Resync(self.watch.retries.failed());
                    }
                }
            }
        }
    }

    async fn pass_on(&mut self, events: Vec<Event<V>>) {
        let changes: Vec<_> = events
            .into_iter()
            .filter_map(|event| event.change)
            .collect();
        if !changes.is_empty() {
            self.tell(changes, self.status).await;
        }
    }

    async fn tell(&mut self, changes: Vec<Change<V>>, status: Status) {
        self.status = status;
        let told = self.keeper.take(changes, status).await;
        self.counters.count_updates(told);
    }

    async fn end_list(&mut self) {
        self.status = Status::InSync;
        let told = self.keeper.end_list().await;
        self.counters.count_updates(told);
    }

    async fn in_contact(&mut self) {
        self.keeper.in_contact().await;
        if let Some(since) = self.lost.take() {
            let after = since.elapsed();
            tracing::info!(?after, "The datastore can be followed again");
        }
    }

    fn is_lost(&self) -> bool {
        self.lost
            .is_some_and(|since| since.elapsed() > self.pace.contact_lost)
    }

    /// Notes a failure. What was told stays as it is; only the status changes, if this goes on for long.
    async fn failed(&mut self, verb: &'static str, failure: &Failure) {
        self.counters.count_error();
        self.log(verb, failure);
        self.lost.get_or_insert_with(Instant::now);
        // A datastore that is away tells nothing, and what it told stays right. One that answers, but not this, may have
        // changes that nobody hears of.
        let is_refused = !matches!(failure, Failure::Unreachable(_));
        if is_refused && self.holds_up_nothing {
            self.tell(Vec::new(), Status::InSync).await;
            return;
        }
        let refusal = is_refused.then(|| format!("{}: {verb}: {}", self.topic, Causes(failure)));
        self.keeper.lose_contact(refusal).await;
        if self.is_lost() && self.status != Status::WaitForDatastore {
            self.tell(Vec::new(), Status::WaitForDatastore).await;
        }
    }

    fn log(&self, verb: &'static str, failure: &Failure) {
        let error = Causes(failure);
        if self.lost.is_none() {
            tracing::warn!(
                verb,
                %error,
                "The datastore cannot be followed; will retry"
            );
        } else {
            tracing::debug!(verb, %error, "The datastore still cannot be followed");
        }
    }
}

impl<V: Send + 'static> Watched for Watching<V> {
    type Event = Event<V>;
    type Failure = Failure;

    async fn open(&self, from: &Revision) -> Result<Events<V>, Failure> {
        self.0.watch(from).await
    }

    fn revision(event: &Event<V>) -> &Revision {
        &event.revision
    }
}

/// Waits until something is due; for ever if nothing is.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures::stream::{self, BoxStream};

    use super::*;
    use crate::mailbox::{Mailbox, Slot};
    use crate::object::{Item, Name, State};
    use crate::source::Part;

    /// Lists, one after the other, in parts. One that is not whole ends with a failure.
    type Listing = (&'static [&'static [&'static str]], Whole);

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Whole {
        Yes,
        No,
    }

    /// Gives these lists, and nothing else.
    struct Lists(Mutex<VecDeque<Listing>>);

    #[async_trait]
    impl Source<()> for Lists {
        fn list(&self, _: Reading) -> BoxStream<'_, Result<Part<()>, Failure>> {
            let (parts, whole) = self.0.lock().unwrap().pop_front().unwrap();
            let item = |name: &&str| Item {
                version: "1".into(),
                ..Item::unreadable(Name::new("", name), String::new(), None)
            };
            let parts = parts.iter().map(move |names| {
                Ok(Part {
                    items: names.iter().map(item).collect(),
                    revision: Revision::default(),
                })
            });
            let failure = (whole == Whole::No).then(|| Err(Failure::Gone));
            stream::iter(parts.chain(failure)).boxed()
        }

        async fn watch(&self, _: &Revision) -> Result<Events<()>, Failure> {
            if self.0.lock().unwrap().is_empty() {
                return Ok(stream::pending().boxed());
            }
            Err(Failure::Gone)
        }
    }

    /// What was told of names, in order: `+a` for there, `-a` for gone. And whether all was in sync at the end.
    async fn told(lists: &[Listing]) -> (Vec<String>, bool) {
        let mailbox = Arc::new(Mailbox::new(1, None));
        let source = Arc::new(Lists(Mutex::new(lists.iter().copied().collect())));
        let slot = Slot::new(Arc::clone(&mailbox), 0);
        let follower = Follower::new("Test".to_owned(), source, slot, Pace::default());
        let task = tokio::spawn(follower.run());
        let mut told = Vec::new();
        let mut status = Status::default();
        // Time stands still but for waits: after so long, nothing more happens.
        let end = sleep(Duration::from_mins(1));
        tokio::pin!(end);
        loop {
            tokio::select! {
                taken = mailbox.receive() => {
                    status = taken.status;
                    told.extend(taken.objects.into_iter().map(|taking| {
                        let sign = if matches!(taking.state, State::Absent) { '-' } else { '+' };
                        format!("{sign}{}", taking.name.name())
                    }));
                }
                () = &mut end => break,
            }
        }
        task.abort();
        (told, status == Status::InSync)
    }

    /// Follows these lists, and gives the names that were told to be gone.
    async fn gone(lists: &[&'static [&'static [&'static str]]]) -> Vec<String> {
        let lists: Vec<_> = lists.iter().map(|parts| (*parts, Whole::Yes)).collect();
        let (told, is_in_sync) = told(&lists).await;
        assert!(is_in_sync);
        let gone = told.iter().filter_map(|told| told.strip_prefix('-'));
        let mut gone: Vec<String> = gone.map(ToOwned::to_owned).collect();
        gone.sort();
        gone
    }

    #[tokio::test(start_paused = true)]
    async fn that_everything_is_gone_is_believed_only_if_a_second_list_agrees() {
        let both: &[&[&str]] = &[&["a", "b"]];
        let parts: &[&[&str]] = &[&["a"], &["b"]];
        for both in [both, parts] {
            assert_eq!(gone(&[both, &[&[]], both]).await, [""; 0]);
            assert_eq!(gone(&[both, &[&[]], &[&["b"]]]).await, ["a"]);
            assert_eq!(gone(&[both, &[&["c"]], both]).await, [""; 0]);
            assert_eq!(gone(&[both, &[&["c"], &["d"]], both]).await, [""; 0]);
            assert_eq!(gone(&[both, &[&["c"], &["b"]]]).await, ["a"]);
            assert_eq!(gone(&[both, &[&[]], &[&[]]]).await, ["a", "b"]);
            assert_eq!(gone(&[both, &[&["a"]]]).await, ["b"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn parts_are_told_as_they_come_and_half_a_list_removes_nothing() {
        let half: Listing = (&[&["a"]], Whole::No);
        let whole: Listing = (&[&["a"], &["b"]], Whole::Yes);
        let (told_of_half, is_in_sync) = told(&[half, half, whole]).await;
        assert_eq!(
            (told_of_half, is_in_sync),
            (vec!["+a".to_owned(), "+b".to_owned()], true)
        );
        let (after, is_in_sync) = told(&[whole, half, half, whole]).await;
        assert_eq!(
            (after, is_in_sync),
            (vec!["+a".to_owned(), "+b".to_owned()], true)
        );
    }
}
