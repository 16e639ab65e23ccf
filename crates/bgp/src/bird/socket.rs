//! A client of BIRD's control socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::error::{Error, Result};
use super::reply::{Decoder, Malformed, Reply};

/// What a connection's first answer is the answer to, in errors.
const GREETING: &str = "(greeting)";

const WELCOME: u16 = 1;

/// BIRD reads no longer line.
const LONGEST_COMMAND: usize = 4000;

const CHUNK: usize = 1 << 16;

/// Where BIRD is asked.
#[derive(Debug, Clone)]
pub struct Socket {
    path: PathBuf,
    limits: Limits,
}

/// How long an answer may take, and how large it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From connecting, or from the command, to the end of the answer.
    pub time: Duration,
    pub bytes: usize,
}

/// A conversation. After an error other than a refusal it is over.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    limits: Limits,
    version: String,
    /// An answer may be under way that was not waited for.
    is_broken: bool,
}

impl Default for Limits {
    /// A BIRD that reads a configuration of thousands of peers is silent for seconds, and a full table of the Internet is
    /// a few hundred megabytes of text.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            bytes: 1 << 29,
        }
    }
}

impl Socket {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            limits: Limits::default(),
        }
    }

    /// The same socket, asked with other limits.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self {
            path: self.path.clone(),
            limits,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Connects, and waits until BIRD says that it is there.
    pub async fn connect(&self) -> Result<Connection> {
        let unreachable = |source| Error::Unreachable {
            socket: self.path.clone(),
            source,
        };
        let connecting = timeout(self.limits.time, UnixStream::connect(&self.path));
        let connected = connecting
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = connected.map_err(unreachable)?;
        let mut connection = Connection {
            stream,
            limits: self.limits,
            version: String::new(),
            is_broken: false,
        };
        let greeting = connection.answer(GREETING).await?;
        if greeting.code() != WELCOME {
            return Err(unexpected(GREETING, &greeting, "0001 BIRD … ready."));
        }
        let message = greeting.message();
        let version = message.strip_prefix("BIRD ").unwrap_or(message);
        version
            .trim_end_matches(" ready.")
            .clone_into(&mut connection.version);
        Ok(connection)
    }

    /// Asks one thing in a connection of its own. A refusal is an error.
    pub async fn ask(&self, command: &str) -> Result<Reply> {
        self.connect().await?.ask(command).await
    }
}

impl Connection {
    /// The version that BIRD greets with, such as `2.0.12` or `v0.3.3+birdv1.6.8`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The process that listens on the socket, unless it is in another process namespace.
    pub fn process(&self) -> Option<i32> {
        let process = self.stream.peer_cred().ok()?.pid()?;
        (process > 0).then_some(process)
    }

    /// Asks one thing. A refusal is an error, after which the connection can be used further.
    pub async fn ask(&mut self, command: &str) -> Result<Reply> {
        if command.chars().any(char::is_control) {
            return Err(Error::Unspeakable {
                value: command.escape_debug().to_string(),
                reason: "it has control characters",
            });
        }
        if command.len() > LONGEST_COMMAND {
            return Err(Error::Unspeakable {
                value: command.chars().take(80).collect(),
                reason: "it is longer than 4000 bytes",
            });
        }
        if self.is_broken {
            let source = io::Error::other("an earlier answer in this connection was not read");
            let command = command.to_owned();
            return Err(Error::Lost { command, source });
        }
        // Until the answer is there, also where this future is dropped.
        self.is_broken = true;
        let line = format!("{command}\n");
        let written = timeout(self.limits.time, self.stream.write_all(line.as_bytes())).await;
        written
            .map_err(|_| self.silent(command))?
            .map_err(lost(command))?;
        let reply = self.answer(command).await?;
        self.is_broken = false;
        if reply.is_error() {
            return Err(Error::Refused {
                command: command.to_owned(),
                code: reply.code(),
                message: reply.message().to_owned(),
            });
        }
        Ok(reply)
    }

    /// Waits until BIRD ends the connection, which it does when it ends.
    pub async fn closed(&mut self) {
        self.is_broken = true;
        let mut buffer = [0; 512];
        while matches!(self.stream.read(&mut buffer).await, Ok(1..)) {}
    }

    async fn answer(&mut self, command: &str) -> Result<Reply> {
        let reading = timeout(self.limits.time, self.read(command)).await;
        reading.unwrap_or_else(|_| Err(self.silent(command)))
    }

    async fn read(&mut self, command: &str) -> Result<Reply> {
        let mut decoder = Decoder::default();
        let mut buffer = vec![0; CHUNK];
        let mut total = 0;
        loop {
            let length = self.stream.read(&mut buffer).await;
            let length = length.map_err(lost(command))?;
            if length == 0 {
                return Err(lost(command)(io::ErrorKind::UnexpectedEof.into()));
            }
            total += length;
            if total > self.limits.bytes {
                return Err(Error::TooLong {
                    command: command.to_owned(),
                    limit: self.limits.bytes,
                });
            }
            let pushed = decoder.push(&buffer[..length]);
            let complete = pushed.map_err(|Malformed(line)| Error::Malformed {
                command: command.to_owned(),
                line,
            })?;
            if let Some(reply) = complete {
                return Ok(reply);
            }
        }
    }

    fn silent(&self, command: &str) -> Error {
        Error::Silent {
            command: command.to_owned(),
            after: self.limits.time,
        }
    }
}

pub(super) fn unexpected(command: &str, reply: &Reply, expected: &'static str) -> Error {
    Error::Unexpected {
        command: command.to_owned(),
        code: reply.code(),
        message: reply.message().to_owned(),
        expected,
    }
}

fn lost(command: &str) -> impl Fn(io::Error) -> Error {
    let command = command.to_owned();
    move |source| Error::Lost {
        command: command.clone(),
        source,
    }
}
