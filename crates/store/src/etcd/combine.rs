//! Writes of several callers as one transaction of etcd.
//!
//! While one transaction is on its way, others wait; then all that wait go together. With many callers, each pays a part of
//! what a transaction costs; a single caller never waits.
//!
//! # Invariants
//! - A request is carried out as a whole or not at all, whichever others go with it.
//! - What a caller does, also to go away, does not touch the requests of others.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tortie_api::Resource;

use super::together::{Sent, Step, Together};
use super::{EtcdStore, MAX_TXN_OPS};
use crate::error::{Error, Result};
use crate::store::Write;

/// How large a transaction of several requests may be. etcd refuses 1.5 MB.
const MAX_BYTES: usize = 512 << 10;

/// Where callers meet.
#[derive(Debug, Default)]
pub(super) struct Combiner {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a transaction is on its way.
    is_busy: bool,
    waiting: Vec<Waiting>,
}

/// A request and who waits for it.
struct Waiting {
    request: Together,
    reply: oneshot::Sender<Result<Vec<Resource>>>,
}

enum Entered {
    First(Together, Turn),
    Waiting(oneshot::Receiver<Result<Vec<Resource>>>),
}

/// The right to send a transaction. Whoever gives it up leaves it to those who wait.
struct Turn {
    store: EtcdStore,
}

impl EtcdStore {
    pub(super) async fn write_all(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        match self.enter(Together::new(writes)?) {
            Entered::Waiting(answer) => answer.await.unwrap_or_else(|_| Err(stopped())),
            Entered::First(request, _turn) => match self.send(&[&request]).await? {
                Sent::Done(revision) => Ok(request.done(revision)),
                Sent::Refused(objections) => Err(first(objections)),
            },
        }
    }

    fn enter(&self, request: Together) -> Entered {
        let mut state = self.combiner.state();
        if state.is_busy {
            let (reply, answer) = oneshot::channel();
            state.waiting.push(Waiting { request, reply });
            return Entered::Waiting(answer);
        }
        state.is_busy = true;
        let store = self.clone();
        Entered::First(request, Turn { store })
    }

    /// Sends what waits, until nothing does.
    async fn send_waiting(self) {
        let turn = Turn { store: self };
        loop {
            turn.store.combiner.gather().await;
            let batch = turn.store.combiner.state().next_batch();
            if batch.is_empty() {
                return;
            }
            turn.store.send_batch(batch).await;
        }
    }

    /// Sends requests together; those that nothing is wrong with again, without those that made the others fail.
    async fn send_batch(&self, mut batch: Vec<Waiting>) {
        while !batch.is_empty() {
            let requests: Vec<&Together> = batch.iter().map(|waiting| &waiting.request).collect();
            match self.send(&requests).await {
                Ok(Sent::Done(revision)) => {
                    for Waiting { request, reply } in batch {
                        // Whoever asked may have gone; what was done stands.
                        let _ = reply.send(Ok(request.done(revision)));
                    }
                    return;
                }
                Ok(Sent::Refused(objections)) => {
                    let mut left = Vec::new();
                    for (waiting, objection) in batch.into_iter().zip(objections) {
                        match objection {
                            Some(error) => drop(waiting.reply.send(Err(error))),
                            None => left.push(waiting),
                        }
                    }
                    batch = left;
                }
                Err(error) => {
                    for waiting in batch {
                        let _ = waiting.reply.send(Err(retold(&error)));
                    }
                    return;
                }
            }
        }
    }
}

impl Combiner {
    /// Lets those get in who were just answered and are on their way with the next request; as long as more of them come.
    async fn gather(&self) {
        let mut count = 0;
        let mut quiet = 0;
        while quiet < 2 && count < MAX_TXN_OPS {
            tokio::task::yield_now().await;
            let now = self.state().waiting.len();
            quiet = if now == count { quiet + 1 } else { 0 };
            count = now;
        }
    }

    /// What is behind the lock is whole at any time, also if a holder panicked.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The longest waiting requests that can go together.
    fn next_batch(&mut self) -> Vec<Waiting> {
        self.waiting.retain(|waiting| !waiting.reply.is_closed());
        let mut batch = Batch::default();
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for waiting in self.waiting.drain(..) {
            if batch.admits(&waiting.request) {
                taken.push(waiting);
            } else {
                left.push(waiting);
            }
        }
        self.waiting = left;
        taken
    }
}

/// What a transaction has in it already.
#[derive(Default)]
struct Batch {
    /// What is expected of each path, and whether it is only looked at.
    paths: HashMap<String, (i64, bool)>,
    bytes: usize,
}

impl Batch {
    /// Adds a request, if it fits.
    fn admits(&mut self, request: &Together) -> bool {
        let steps = request.steps();
        let bytes: usize = steps.iter().map(Step::bytes).sum();
        let is_first = self.paths.is_empty();
        let is_too_much =
            self.paths.len() + steps.len() > MAX_TXN_OPS || self.bytes + bytes > MAX_BYTES;
        let contradicts = steps.iter().any(|step| {
            let known = self.paths.get(&step.path);
            known.is_some_and(|(expected, is_check)| {
                !(*is_check && step.is_check && *expected == step.expected)
            })
        });
        if !is_first && (is_too_much || contradicts) {
            return false;
        }
        self.bytes += bytes;
        let paths = steps
            .iter()
            .map(|step| (step.path.clone(), (step.expected, step.is_check)));
        self.paths.extend(paths);
        true
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.store.combiner.state();
        match Handle::try_current() {
            Ok(runtime) if !state.waiting.is_empty() => {
                drop(runtime.spawn(self.store.clone().send_waiting()));
            }
            _ => {
                state.is_busy = false;
                state.waiting.clear();
            }
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

fn first(objections: Vec<Option<Error>>) -> Error {
    objections
        .into_iter()
        .flatten()
        .next()
        .unwrap_or_else(stopped)
}

fn stopped() -> Error {
    Error::message("the connection to etcd was given up while writes were on their way")
}

/// The failure of a transaction, told to one of several callers.
fn retold(error: &Error) -> Error {
    match error {
        Error::Unauthorized(message) => Error::Unauthorized(message.clone()),
        Error::Unavailable { message, .. } => Error::Unavailable {
            message: message.clone(),
            source: None,
        },
        error => Error::message(error.to_string()),
    }
}
