//! The datastore of another process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use tokio::sync::Mutex;
use tortie_api::Resource;

use super::connection::{Bodies, Channel, Connection, Lost};
use super::frame::{self, Encoded, Malformed};
use super::message::{Answer, Call, Reply, ResourceJson};
use super::{MAX_ANSWER, MAX_REQUEST};
use crate::error::{Error, Result};
use crate::key::{Key, Query, Revision};
use crate::store::{Compacted, Event, Invalid, List, Precondition, Store, Verified, Watch, Write};

/// How long an answer may take: far longer than the slowest disk, so that only a server that hangs is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// The same of what goes through the whole file, which may be large.
const WHOLE_FILE_TIMEOUT: Duration = Duration::from_hours(1);

/// How many objects are asked for in one request, so that the answer has a reasonable size.
const KEYS_AT_ONCE: usize = 1000;

/// The datastore that another process serves on a unix socket.
///
/// When that process is restarted, later operations find it again. An operation that was under way fails with
/// [`Error::Unavailable`]; reads are tried once more before.
#[derive(Debug)]
pub struct SocketStore {
    path: PathBuf,
    connection: Mutex<Arc<Connection>>,
    reads_many_at_once: bool,
}

/// Whether a request may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Writes,
}

// === impl SocketStore ===

impl SocketStore {
    /// Connects to the process that listens on a socket.
    pub async fn connect(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let channel = Channel::open(&path).await?;
        Ok(Self {
            path,
            reads_many_at_once: channel.reads_many_at_once,
            connection: Mutex::new(Arc::new(Connection::new(channel))),
        })
    }

    async fn connection(&self) -> Result<Arc<Connection>> {
        let mut connection = self.connection.lock().await;
        if !connection.is_open() {
            let channel = Channel::open(&self.path).await?;
            *connection = Arc::new(Connection::new(channel));
        }
        Ok(Arc::clone(&connection))
    }

    async fn ask(&self, call: &Call, effect: Effect) -> Result<Bodies> {
        let frame = encode(call)?;
        let patience = match call {
            Call::Verify | Call::Compact | Call::BackUp(_) => WHOLE_FILE_TIMEOUT,
            _ => ANSWER_TIMEOUT,
        };
        if effect == Effect::Reads {
            let answer = self.ask_once(frame.clone(), patience).await?;
            if let Ok(bodies) = answer {
                return Ok(bodies);
            }
        }
        let answer = self.ask_once(frame, patience).await?;
        answer.map_err(|Lost| {
            let known = match effect {
                Effect::Reads => "",
                Effect::Writes => "; the write may have been made or not",
            };
            Error::Unavailable {
                message: format!(
                    "the connection to {} ended before the answer{known}",
                    self.path.display()
                ),
                source: None,
            }
        })
    }

    async fn ask_once(&self, frame: Encoded, patience: Duration) -> Result<Result<Bodies, Lost>> {
        let connection = self.connection().await?;
        let answer = tokio::time::timeout(patience, connection.ask(frame)).await;
        answer.map_err(|_| Error::Unavailable {
            message: format!(
                "{} did not answer within {} s",
                self.path.display(),
                patience.as_secs()
            ),
            source: None,
        })
    }

    async fn answer(&self, call: &Call, effect: Effect) -> Result<Answer> {
        let bodies = self.ask(call, effect).await?;
        let last = bodies.last().map_or(&[][..], Vec::as_slice);
        decode(last)
    }

    async fn resource(&self, call: &Call, effect: Effect) -> Result<Resource> {
        match self.answer(call, effect).await? {
            Answer::Resource(resource) => decode_resource(&resource),
            other => Err(unexpected(&other)),
        }
    }

    async fn read_list(&self, call: &Call) -> Result<List> {
        let mut list = List {
            items: Vec::new(),
            invalid: Vec::new(),
            revision: Revision::default(),
        };
        for body in self.ask(call, Effect::Reads).await? {
            match decode(&body)? {
                Answer::List {
                    items,
                    invalid,
                    revision,
                } => {
                    for item in items {
                        list.items.push(decode_resource(&item)?);
                    }
                    list.invalid.extend::<Vec<Invalid>>(invalid);
                    list.revision = revision;
                }
                other => return Err(unexpected(&other)),
            }
            // Decoding a part takes milliseconds; others have their turn in between.
            tokio::task::yield_now().await;
        }
        Ok(list)
    }
}

#[async_trait]
impl Store for SocketStore {
    async fn verify(&self) -> Result<Verified> {
        match self.answer(&Call::Verify, Effect::Reads).await? {
            Answer::Verified(verified) => Ok(verified),
            other => Err(unexpected(&other)),
        }
    }

    async fn compact(&self) -> Result<Compacted> {
        match self.answer(&Call::Compact, Effect::Writes).await? {
            Answer::Compacted(compacted) => Ok(compacted),
            other => Err(unexpected(&other)),
        }
    }

    async fn back_up(&self, to: &Path) -> Result<()> {
        match self
            .answer(&Call::BackUp(to.to_owned()), Effect::Writes)
            .await?
        {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn get(&self, key: &Key) -> Result<Resource> {
        self.resource(&Call::Get(key.clone()), Effect::Reads).await
    }

    fn reads_many_at_once(&self) -> bool {
        self.reads_many_at_once
    }

    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Result<Resource>>> {
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let call = Call::GetMany(keys.to_vec());
            match self.answer(&call, Effect::Reads).await? {
                Answer::Each(found) if found.len() == keys.len() => {
                    let decode = |found: ResourceJson| decode_resource(&found);
                    let found = found.into_iter();
                    all.extend(found.map(|found| found.map_err(Error::from).and_then(decode)));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }

    async fn revisions(&self, keys: &[Key]) -> Result<Vec<Option<Revision>>> {
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let call = Call::Revisions(keys.to_vec());
            match self.answer(&call, Effect::Reads).await? {
                Answer::Revisions(found) if found.len() == keys.len() => all.extend(found),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }

    async fn list(&self, query: &Query) -> Result<List> {
        self.read_list(&Call::List(query.clone())).await
    }

    async fn create(&self, resource: Resource) -> Result<Resource> {
        let call = Call::Create((&resource).into());
        self.resource(&call, Effect::Writes).await
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        let call = Call::Update((&resource).into());
        self.resource(&call, Effect::Writes).await
    }

    async fn update_status(&self, resource: Resource) -> Result<Resource> {
        let call = Call::UpdateStatus((&resource).into());
        self.resource(&call, Effect::Writes).await
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        let call = Call::Delete(key.clone(), precondition.clone());
        self.resource(&call, Effect::Writes).await
    }

    async fn write_together(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        let call = Call::WriteTogether(writes.iter().map(Into::into).collect());
        match self.answer(&call, Effect::Writes).await? {
            Answer::Resources(all) => all.iter().map(decode_resource).collect(),
            other => Err(unexpected(&other)),
        }
    }

    async fn list_affinities(&self, owner: &str) -> Result<List> {
        self.read_list(&Call::ListAffinities(owner.to_owned()))
            .await
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        let mut channel = Channel::open(&self.path).await?;
        let call = encode(&Call::Watch(query.clone(), from.clone()))?;
        let sent = frame::write(&mut channel.write, &call).await;
        sent.map_err(|error| watch_lost(&self.path, &error.to_string()))?;
        match next_answer(&mut channel, &self.path).await? {
            Answer::Watching => {}
            other => return Err(unexpected(&other)),
        }
        let state = Some((channel, self.path.clone()));
        let events = stream::unfold(state, async |state| {
            let (mut channel, path) = state?;
            match next_event(&mut channel, &path).await {
                Ok(event) => Some((Ok(event), Some((channel, path)))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(events.boxed())
    }
}

async fn next_event(channel: &mut Channel, path: &Path) -> Result<Event> {
    match next_answer(channel, path).await? {
        Answer::Event { revision, change } => Ok(Event {
            revision,
            change: change.decode().map_err(no_answer)?,
        }),
        other => Err(unexpected(&other)),
    }
}

async fn next_answer(channel: &mut Channel, path: &Path) -> Result<Answer> {
    match frame::read(&mut channel.read, MAX_ANSWER).await {
        Ok(Some((_, body))) => decode(&body),
        Ok(None) => Err(watch_lost(path, "it was closed")),
        Err(error) => Err(watch_lost(path, &error.to_string())),
    }
}

fn encode(call: &Call) -> Result<Encoded> {
    frame::encode(0, false, call, MAX_REQUEST).map_err(|error| {
        Error::other(
            "the request cannot be sent; make the object smaller, or write fewer together",
            error,
        )
    })
}

fn decode(body: &[u8]) -> Result<Answer> {
    let reply: Reply = serde_json::from_slice(body).map_err(|error| no_answer(error.into()))?;
    Ok(reply?)
}

fn decode_resource(resource: &ResourceJson) -> Result<Resource> {
    resource.decode().map_err(no_answer)
}

fn no_answer(malformed: Malformed) -> Error {
    Error::other("the datastore's socket gave what is no answer", malformed)
}

fn unexpected(_: &Answer) -> Error {
    Error::message("the datastore's socket gave the answer to another question")
}

fn watch_lost(path: &Path, reason: &str) -> Error {
    Error::Unavailable {
        message: format!(
            "the connection of a watch to {} ended: {reason}",
            path.display()
        ),
        source: None,
    }
}
