//! One connection of a client.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tortie_error::Causes;

use super::frame::{self, Encoded};
use super::message::{Greeting, Hello};
use super::{MAX_ANSWER, PROTOCOL};
use crate::error::{Error, Result};

/// How long a server may take to greet: it does so without doing anything else.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// How many requests may wait to be sent; more wait in their tasks. They are sent together.
const QUEUE_LENGTH: usize = 64;

/// Enough for many small answers in one read.
const BUFFER_BYTES: usize = 64 << 10;

/// A connection on which requests are under way at the same time.
#[derive(Debug)]
pub(super) struct Connection {
    requests: mpsc::Sender<Request>,
}

/// Both directions of a connection after the greetings.
pub(super) struct Channel {
    pub(super) read: BufReader<OwnedReadHalf>,
    pub(super) write: OwnedWriteHalf,
    pub(super) reads_many_at_once: bool,
}

/// The connection ended before the answer.
#[derive(Debug)]
pub(super) struct Lost;

#[derive(Debug)]
struct Request {
    frame: Encoded,
    reply: oneshot::Sender<Bodies>,
}

/// The contents of the frames of one answer.
pub(super) type Bodies = Vec<Vec<u8>>;

/// Requests without an answer, with the frames that have come.
type Waiting = Mutex<HashMap<u64, (oneshot::Sender<Bodies>, Bodies)>>;

// === impl Channel ===

impl Channel {
    /// Connects and exchanges greetings.
    pub(super) async fn open(path: &Path) -> Result<Self> {
        let opening = tokio::time::timeout(GREETING_TIMEOUT, Self::greet(path));
        let refused = match opening.await {
            Ok(Ok(Ok(channel))) => return Ok(channel),
            Ok(Ok(Err(refusal))) => refusal,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not greet; is it stopped, or busy?".to_owned(),
        };
        Err(Error::Unavailable {
            message: format!(
                "the socket {} of a running tortie cannot be reached: {refused}",
                path.display()
            ),
            source: None,
        })
    }

    /// The inner error is a refusal.
    async fn greet(path: &Path) -> io::Result<Result<Self, String>> {
        let (read, mut write) = UnixStream::connect(path).await?.into_split();
        let mut read = BufReader::with_capacity(BUFFER_BYTES, read);
        let Some((_, body)) = frame::read(&mut read, MAX_ANSWER).await? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let greeting: Greeting = match serde_json::from_slice(&body) {
            Ok(greeting) => greeting,
            Err(error) => return Ok(Err(format!("what listens there is not tortie: {error}"))),
        };
        if let Some(refusal) = greeting.refusal {
            return Ok(Err(refusal));
        }
        if greeting.protocol != PROTOCOL {
            return Ok(Err(format!(
                "it speaks protocol {}, and this is {PROTOCOL}; use the same version of tortie on both sides",
                greeting.protocol
            )));
        }
        let hello = Hello { protocol: PROTOCOL };
        let hello = frame::encode(0, false, &hello, MAX_ANSWER).map_err(frame::invalid_data)?;
        frame::write(&mut write, &hello).await?;
        Ok(Ok(Self {
            read,
            write,
            reads_many_at_once: greeting.reads_many_at_once,
        }))
    }
}

// === impl Connection ===

impl Connection {
    pub(super) fn new(channel: Channel) -> Self {
        let (requests, queue) = mpsc::channel(QUEUE_LENGTH);
        tokio::spawn(run(channel, queue));
        Self { requests }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn ask(&self, frame: Encoded) -> Result<Bodies, Lost> {
        let (reply, answer) = oneshot::channel();
        let request = Request { frame, reply };
        self.requests.send(request).await.map_err(|_| Lost)?;
        answer.await.map_err(|_| Lost)
    }
}

/// Sends and receives, until one of both fails or the connection is dropped. All who still wait then see that it is lost.
async fn run(channel: Channel, queue: mpsc::Receiver<Request>) {
    let waiting = Waiting::default();
    let ended = tokio::select! {
        ended = send(channel.write, queue, &waiting) => ended,
        ended = receive(channel.read, &waiting) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(
            error = %Causes(&error),
            "The connection to a datastore's socket was lost"
        );
    }
}

async fn send(
    mut write: OwnedWriteHalf,
    mut queue: mpsc::Receiver<Request>,
    waiting: &Waiting,
) -> io::Result<()> {
    let mut requests = Vec::with_capacity(QUEUE_LENGTH);
    let mut bytes = Vec::new();
    let mut id = 0;
    while queue.recv_many(&mut requests, QUEUE_LENGTH).await > 0 {
        bytes.clear();
        for Request { mut frame, reply } in requests.drain(..) {
            id += 1;
            frame::set_id(&mut frame, id);
            lock(waiting).insert(id, (reply, Vec::new()));
            bytes.extend(frame);
        }
        frame::write(&mut write, &bytes).await?;
        bytes.shrink_to(BUFFER_BYTES);
    }
    Ok(())
}

async fn receive(mut read: BufReader<OwnedReadHalf>, waiting: &Waiting) -> io::Result<()> {
    while let Some((head, body)) = frame::read(&mut read, MAX_ANSWER).await? {
        let mut waiting = lock(waiting);
        if head.has_more {
            if let Some((_, bodies)) = waiting.get_mut(&head.id) {
                bodies.push(body);
            }
        } else if let Some((reply, mut bodies)) = waiting.remove(&head.id) {
            bodies.push(body);
            // The caller may have stopped waiting.
            let _ = reply.send(bodies);
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
