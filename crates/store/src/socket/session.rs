//! One connection of the server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tortie_api::Resource;

use super::frame::{self, Encoded, Malformed};
use super::message::{Answer, Call, Greeting, Hello, Reply, ResourceJson, WriteJson};
use super::{MAX_ANSWER, MAX_REQUEST, PROTOCOL};
use crate::error::{Error, Result};
use crate::key::{Query, Revision};
use crate::store::{List, Store};

/// How long a client may take to say which protocol it speaks.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// What the requests under way on one connection may hold together.
const BUDGET_BYTES: u32 = 32 << 20;

/// What a request counts beside its own bytes.
const REQUEST_BYTES: u32 = 4 << 10;

/// What a list counts, because its answer is large.
const LIST_BYTES: u32 = BUDGET_BYTES / 16;

/// A part of a list is sent when it has this size.
const PART_BYTES: usize = 1 << 20;

/// How many frames wait to be written at most. They are written together.
const QUEUE_LENGTH: usize = 16;

/// How many events of a watch are written together.
const EVENTS_AT_ONCE: usize = 64;

/// Enough for many small requests in one read.
const BUFFER_BYTES: usize = 64 << 10;

type Reader = BufReader<OwnedReadHalf>;
type Stop = watch::Receiver<bool>;

/// A request with its number and its size.
struct Numbered {
    id: u64,
    bytes: usize,
    call: Call,
}

/// A frame on its way out. The last one of an answer frees what the request held.
struct Outgoing {
    frame: Encoded,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Answers requests until the client ends the connection, or breaks the protocol, or the server stops.
pub(super) async fn run(
    stream: UnixStream,
    store: Arc<dyn Store>,
    mut stop: Stop,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::with_capacity(BUFFER_BYTES, read);
    frame::write(&mut write, &greeting(None, store.reads_many_at_once())?).await?;
    let hello = tokio::time::timeout(HELLO_TIMEOUT, frame::read(&mut read, MAX_REQUEST)).await;
    let Some((_, hello)) = hello.map_err(io::Error::from)?? else {
        return Ok(());
    };
    check_hello(&hello)?;
    let Some(first) = next(&mut read, &mut stop).await? else {
        return Ok(());
    };
    match first.call {
        Call::Watch(query, from) => {
            let watch = follow(store.as_ref(), first.id, &query, &from, &mut write);
            tokio::select! {
                ended = watch => ended,
                // The client has nothing more to say: it ends, or breaks the protocol.
                _ = read.read_u8() => Ok(()),
                _ = stop.wait_for(|stop| *stop) => Ok(()),
            }
        }
        _ => answer_all(first, store, read, write, stop).await,
    }
}

pub(super) fn greeting(refusal: Option<String>, reads_many_at_once: bool) -> io::Result<Encoded> {
    let greeting = Greeting {
        protocol: PROTOCOL,
        refusal,
        reads_many_at_once,
    };
    frame::encode(0, false, &greeting, MAX_ANSWER).map_err(frame::invalid_data)
}

fn check_hello(body: &[u8]) -> io::Result<()> {
    let hello = serde_json::from_slice::<Hello>(body);
    let hello = hello.map_err(|error| frame::invalid_data(error.into()))?;
    if hello.protocol == PROTOCOL {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "the client speaks protocol {}, and this server {PROTOCOL}",
            hello.protocol
        ),
    ))
}

/// Reads a request; `None` if there are no more.
async fn next(read: &mut Reader, stop: &mut Stop) -> io::Result<Option<Numbered>> {
    let read = tokio::select! {
        read = frame::read(read, MAX_REQUEST) => read?,
        _ = stop.wait_for(|stop| *stop) => None,
    };
    let Some((head, body)) = read else {
        return Ok(None);
    };
    Ok(Some(Numbered {
        id: head.id,
        bytes: body.len(),
        call: Call::decode(&body).map_err(frame::invalid_data)?,
    }))
}

/// Answers requests as they come, each in a task of its own: those that write share the datastore's commits.
async fn answer_all(
    first: Numbered,
    store: Arc<dyn Store>,
    mut read: Reader,
    write: OwnedWriteHalf,
    mut stop: Stop,
) -> io::Result<()> {
    let (answers, outgoing) = mpsc::channel(QUEUE_LENGTH);
    let reading = async move {
        let budget = Arc::new(Semaphore::new(BUDGET_BYTES as usize));
        let mut request = Some(first);
        while let Some(Numbered { id, bytes, call }) = request {
            let permit = Arc::clone(&budget).acquire_many_owned(weight(&call, bytes));
            let permit = permit.await.map_err(io::Error::other)?;
            let task = Task {
                id,
                permit,
                answers: answers.clone(),
            };
            tokio::spawn(task.run(Arc::clone(&store), call));
            request = next(&mut read, &mut stop).await?;
        }
        io::Result::Ok(())
    };
    let writing = write_all(write, outgoing);
    tokio::pin!(writing);
    tokio::select! {
        ended = &mut writing => return ended,
        ended = reading => ended?,
    }
    // The tasks hold the other ends: this is done when they are.
    writing.await
}

fn weight(call: &Call, bytes: usize) -> u32 {
    match call {
        Call::List(_) | Call::ListAffinities(_) => LIST_BYTES,
        _ => u32::try_from(bytes).map_or(BUDGET_BYTES, |bytes| bytes + REQUEST_BYTES),
    }
}

async fn write_all(
    mut write: OwnedWriteHalf,
    mut outgoing: mpsc::Receiver<Outgoing>,
) -> io::Result<()> {
    let mut frames = Vec::with_capacity(QUEUE_LENGTH);
    let mut bytes = Vec::new();
    while outgoing.recv_many(&mut frames, QUEUE_LENGTH).await > 0 {
        bytes.clear();
        for outgoing in &frames {
            bytes.extend_from_slice(&outgoing.frame);
        }
        frame::write(&mut write, &bytes).await?;
        frames.clear();
        bytes.shrink_to(BUFFER_BYTES);
    }
    Ok(())
}

/// Answers one request.
struct Task {
    id: u64,
    permit: OwnedSemaphorePermit,
    answers: mpsc::Sender<Outgoing>,
}

// === impl Task ===

impl Task {
    async fn run(self, store: Arc<dyn Store>, call: Call) {
        let answer = match call {
            Call::List(query) => self.send_parts(store.list(&query).await).await,
            Call::ListAffinities(owner) => {
                self.send_parts(store.list_affinities(&owner).await).await
            }
            call => carry_out(store.as_ref(), call).await,
        };
        let frame = encode_last(self.id, &answer.map_err(Into::into));
        let outgoing = Outgoing {
            frame,
            _permit: Some(self.permit),
        };
        // Fails if the client is gone; what was written stands all the same.
        let _ = self.answers.send(outgoing).await;
    }

    /// Sends all of a list but the last part, and gives that.
    async fn send_parts(&self, list: Result<List>) -> Result<Answer> {
        let List {
            items,
            invalid,
            revision,
        } = list?;
        let (mut part, mut bytes) = (Vec::new(), 0);
        for item in items {
            let item = ResourceJson::from(&item);
            bytes += item.bytes();
            part.push(item);
            if bytes > PART_BYTES {
                let answer = Answer::List {
                    items: std::mem::take(&mut part),
                    invalid: Vec::new(),
                    revision: revision.clone(),
                };
                bytes = 0;
                let frame = frame::encode(self.id, true, &Reply::Ok(answer), MAX_ANSWER);
                let frame = frame.map_err(too_long)?;
                let outgoing = Outgoing {
                    frame,
                    _permit: None,
                };
                if self.answers.send(outgoing).await.is_err() {
                    break;
                }
            }
        }
        Ok(Answer::List {
            items: part,
            invalid,
            revision,
        })
    }
}

/// Everything but lists and watches.
async fn carry_out(store: &dyn Store, call: Call) -> Result<Answer> {
    let one = |resource: Resource| Answer::Resource((&resource).into());
    Ok(match call {
        Call::Get(key) => one(store.get(&key).await?),
        Call::GetMany(keys) => {
            let found = store.get_many(&keys).await?.into_iter();
            let found = found.map(|found| match found {
                Ok(resource) => Ok((&resource).into()),
                Err(error) => Err(error.into()),
            });
            Answer::Each(found.collect())
        }
        Call::Revisions(keys) => Answer::Revisions(store.revisions(&keys).await?),
        Call::Create(object) => one(store.create(decode(&object)?).await?),
        Call::Update(object) => one(store.update(decode(&object)?).await?),
        Call::UpdateStatus(object) => one(store.update_status(decode(&object)?).await?),
        Call::Delete(key, precondition) => one(store.delete(&key, &precondition).await?),
        Call::WriteTogether(writes) => {
            let writes: Result<_, Malformed> = writes.into_iter().map(WriteJson::decode).collect();
            let written = store.write_together(writes.map_err(unreadable)?).await?;
            Answer::Resources(written.iter().map(Into::into).collect())
        }
        Call::Verify => Answer::Verified(store.verify().await?),
        Call::Compact => Answer::Compacted(store.compact().await?),
        Call::BackUp(to) => {
            store.back_up(&to).await?;
            Answer::Done
        }
        Call::List(_) | Call::ListAffinities(_) | Call::Watch(..) => {
            return Err(Error::message(
                "a watch needs a connection of its own, on which it is the first request",
            ));
        }
    })
}

/// Sends what a watch delivers. If the client does not read, the watch is not asked for more.
async fn follow(
    store: &dyn Store,
    id: u64,
    query: &Query,
    from: &Revision,
    write: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let watch = match store.watch(query, from).await {
        Ok(watch) => watch,
        Err(error) => return frame::write(write, &encode_last(id, &Err(error.into()))).await,
    };
    frame::write(write, &encode_last(id, &Ok(Answer::Watching))).await?;
    let mut batches = watch.ready_chunks(EVENTS_AT_ONCE);
    while let Some(batch) = batches.next().await {
        let mut bytes = Vec::new();
        for event in batch {
            let reply = event.map(Answer::from).map_err(Into::into);
            bytes.extend(encode_last(id, &reply));
        }
        frame::write(write, &bytes).await?;
    }
    Ok(())
}

/// The last frame of an answer, or in its place one that says that it is too long.
fn encode_last(id: u64, reply: &Reply) -> Encoded {
    frame::encode(id, false, reply, MAX_ANSWER).unwrap_or_else(|malformed| {
        let reply = Reply::Err(too_long(malformed).into());
        frame::encode(id, false, &reply, MAX_ANSWER).unwrap_or_default()
    })
}

fn too_long(malformed: Malformed) -> Error {
    Error::other("the answer cannot be sent", malformed)
}

fn decode(object: &ResourceJson) -> Result<Resource> {
    object.decode().map_err(unreadable)
}

fn unreadable(malformed: Malformed) -> Error {
    Error::other("the request cannot be carried out", malformed)
}
