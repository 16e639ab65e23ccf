//! A watch that goes on where it was, over one connection after the other.
//!
//! # Invariants
//! - A connection is opened at the last revision that the one before told.
//! - After a failure there is a pause, which grows until something is told, or a connection holds for long.

use futures::StreamExt as _;
use futures::stream::{BoxStream, ReadyChunks};
use tokio::time::{Instant, sleep};
use tortie_backoff::{Backoff, Retries};

use crate::revision::Revision;

/// How many events that are there already are given together.
const MAX_EVENTS_AT_ONCE: usize = 256;

/// What can be watched, over one connection at a time.
pub trait Watched: Send {
    type Event: Send;
    type Failure: Send;

    /// Follows the changes after a revision until the connection ends.
    fn open(
        &self,
        from: &Revision,
    ) -> impl Future<Output = Result<Connection<Self>, Self::Failure>> + Send;

    /// Where to go on after an event.
    fn revision(event: &Self::Event) -> &Revision;
}

/// Events, until there are no more.
pub type Connection<W> = BoxStream<'static, Result<<W as Watched>::Event, <W as Watched>::Failure>>;

/// A watch that goes on where it was.
pub struct Resumed<W: Watched> {
    watched: W,
    /// Where to go on.
    revision: Revision,
    connection: Option<ReadyChunks<Connection<W>>>,
    /// What ends the connection once the events before it are given.
    end: Option<W::Failure>,
    opened: Instant,
    has_progressed: bool,
    /// Whether there is a pause before the next connection.
    pauses: bool,
    pace: Backoff,
    pub(crate) retries: Retries,
}

/// What comes next of a watch.
#[derive(Debug)]
pub enum Step<E, F> {
    /// A connection: the datastore answers.
    Opened,
    /// Events, at least one.
    Events(Vec<E>),
    /// The connection ended, or could not be opened. The next step is another one.
    Ended {
        /// Nothing if the stream was just over.
        failure: Option<F>,
        /// Whether it told something, or held for long.
        was_sound: bool,
    },
}

impl<W: Watched> Resumed<W> {
    /// A watch that is not connected yet. The pace is that of connections that fail.
    pub fn new(watched: W, from: Revision, pace: Backoff) -> Self {
        Self {
            watched,
            revision: from,
            connection: None,
            end: None,
            opened: Instant::now(),
            has_progressed: false,
            pauses: false,
            pace,
            retries: Retries::new(pace),
        }
    }

    /// What is watched.
    pub fn watched(&self) -> &W {
        &self.watched
    }

    /// Goes on from another revision, with a new connection.
    pub(crate) fn restart(&mut self, from: Revision) {
        self.revision = from;
        self.connection = None;
        self.end = None;
        self.pauses = false;
    }

    /// Where the next connection goes on.
    pub(crate) fn revision(&self) -> &Revision {
        &self.revision
    }

    /// Takes the next step. Nothing is lost if the wait is given up.
    pub async fn next(&mut self) -> Step<W::Event, W::Failure> {
        let Some(connection) = &mut self.connection else {
            return self.open().await;
        };
        if let Some(failure) = self.end.take() {
            return self.ended(Some(failure));
        }
        let Some(chunk) = connection.next().await else {
            return self.ended(None);
        };
        let mut events = Vec::with_capacity(chunk.len());
        for event in chunk {
            match event {
                Ok(event) => events.push(event),
                Err(failure) => {
                    self.end = Some(failure);
                    break;
                }
            }
        }
        let Some(last) = events.last() else {
            let failure = self.end.take();
            return self.ended(failure);
        };
        self.revision.clone_from(W::revision(last));
        self.has_progressed = true;
        Step::Events(events)
    }

    async fn open(&mut self) -> Step<W::Event, W::Failure> {
        if self.pauses {
            sleep(self.retries.failed()).await;
            self.pauses = false;
        }
        self.opened = Instant::now();
        self.has_progressed = false;
        match self.watched.open(&self.revision).await {
            Ok(events) => {
                self.connection = Some(events.ready_chunks(MAX_EVENTS_AT_ONCE));
                Step::Opened
            }
            Err(failure) => self.ended(Some(failure)),
        }
    }

    fn ended(&mut self, failure: Option<W::Failure>) -> Step<W::Event, W::Failure> {
        self.connection = None;
        let was_sound = self.has_progressed || self.opened.elapsed() > self.pace.most;
        if was_sound {
            self.retries.reset();
        }
        self.pauses = failure.is_some() || !was_sound;
        Step::Ended { failure, was_sound }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::time::Duration;

    use futures::stream;

    use super::*;

    type Events = &'static [Result<&'static str, &'static str>];

    /// What connections give, one after the other; or why there is none.
    struct Connections(Mutex<VecDeque<Result<Events, &'static str>>>);

    impl Watched for Connections {
        type Event = Revision;
        type Failure = String;

        async fn open(&self, from: &Revision) -> Result<Connection<Self>, String> {
            let next = self.0.lock().unwrap().pop_front().unwrap();
            let events = next.map_err(|failure| format!("{failure} at {from}"))?;
            let events = events.iter().map(|event| match event {
                Ok(revision) => Ok(Revision((*revision).to_owned())),
                Err(failure) => Err((*failure).to_owned()),
            });
            Ok(stream::iter(events).boxed())
        }

        fn revision(event: &Revision) -> &Revision {
            event
        }
    }

    /// The steps over these connections; before each, `|` for each tenth of a second that it took.
    async fn check(connections: &[Result<Events, &'static str>], expected: &str) {
        let pace = Backoff {
            first: Duration::from_millis(100),
            most: Duration::from_secs(1),
            jitter: 0.0,
        };
        let left = Mutex::new(connections.iter().copied().collect());
        let mut resumed = Resumed::new(Connections(left), Revision("0".to_owned()), pace);
        let mut steps = Vec::new();
        let mut start = Instant::now();
        loop {
            let step = resumed.next().await;
            let tenths = start.elapsed().as_millis() / 100;
            start = Instant::now();
            let pause = "|".repeat(usize::try_from(tenths).unwrap());
            let is_end = matches!(step, Step::Ended { .. });
            steps.push(match step {
                Step::Opened => format!("{pause}open"),
                Step::Events(events) => events.iter().map(ToString::to_string).collect(),
                Step::Ended { failure, was_sound } => {
                    let sound = if was_sound { "sound" } else { "unsound" };
                    format!("{pause}{sound} {}", failure.as_deref().unwrap_or("end"))
                }
            });
            if is_end && resumed.watched().0.lock().unwrap().is_empty() {
                break;
            }
        }
        assert_eq!(steps.join(", "), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_told_something_is_replaced_at_once_and_one_that_did_not_after_a_pause()
     {
        check(
            &[Ok(&[Ok("1")]), Ok(&[]), Ok(&[]), Ok(&[Ok("2")]), Err("refused")],
            "open, 1, sound end, open, unsound end, |open, unsound end, ||open, 2, sound end, unsound refused at 2",
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_failure_there_is_a_pause_that_grows_until_something_is_told() {
        check(
            &[
                Err("a"),
                Err("b"),
                Ok(&[Ok("1"), Err("c"), Ok("2")]),
                Err("d"),
            ],
            "unsound a at 0, |unsound b at 0, ||open, 1, sound c, |unsound d at 1",
        )
        .await;
    }
}
