//! Several followers, and one consumer that takes the newest of all they learn.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::counters::Counters;
use crate::follower::Follower;
use crate::mailbox::{Batch, Mailbox, Slot, Wake};
use crate::pace::Pace;
use crate::source::Source;

/// What is followed as one.
pub struct Topic<V> {
    /// Its name, for messages.
    pub name: String,
    /// Where its objects come from.
    pub source: Arc<dyn Source<V>>,
    /// Nothing depends on it: if the datastore does not let us read it, it counts as read.
    pub is_optional: bool,
}

/// Follows several topics until it is dropped.
pub struct Followers<V> {
    mailbox: Arc<Mailbox<V>>,
    counters: Arc<Counters>,
    /// Dropped with the rest, which ends them.
    _tasks: JoinSet<()>,
}

impl<V: Send + 'static> Followers<V> {
    /// Starts to follow, all topics at once, with tasks on this runtime. A consumer that waits for several things at once is
    /// woken, and then calls [`Followers::try_recv`].
    pub fn start(topics: Vec<Topic<V>>, pace: &Pace, wake: Option<Wake>, runtime: &Handle) -> Self {
        let mailbox = Arc::new(Mailbox::new(topics.len(), wake));
        let counters = Arc::new(Counters::default());
        let mut tasks = JoinSet::new();
        for (index, topic) in topics.into_iter().enumerate() {
            let slot = Slot::new(Arc::clone(&mailbox), index);
            let mut follower = Follower::new(topic.name, topic.source, slot, pace.clone())
                .counting(Arc::clone(&counters));
            if topic.is_optional {
                follower = follower.holding_up_nothing();
            }
            tasks.spawn_on(follower.run(), runtime);
        }
        Self {
            mailbox,
            counters,
            _tasks: tasks,
        }
    }

    /// Waits for what is new and takes all of it. Nothing is lost if the wait is given up.
    pub async fn recv(&mut self) -> Batch<V> {
        self.mailbox.receive().await
    }

    /// Like [`Followers::recv`], on a thread that may block; nothing if nothing comes in time.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Option<Batch<V>> {
        self.mailbox.receive_timeout(timeout)
    }

    /// Takes what is new; nothing if nothing is.
    pub fn try_recv(&mut self) -> Option<Batch<V>> {
        self.mailbox.take()
    }

    /// What happened so far, in numbers.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}
