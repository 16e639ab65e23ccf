//! What an agent and other processes in its network namespace say to each other.
//!
//! ```text
//! process ──connects──▶ agent: `process 4711 (tortie up, datastore embedded)`
//!         ◀─────────── one line
//!         ──one word──▶ `status`: the node's status as JSON; `settings`: what it was started with; `end`
//! ```
//!
//! The name is among the abstract addresses of unix sockets, of which each network namespace has its own, and which end
//! with the process. Anybody is told who has the kernel; the rest is for root and the user of the agent.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::AbortHandle;

use crate::agent::{Agent, Stop};
use crate::node_status::{NodeStatus, Report};
use tortie_config::Sources;

const NAME: &[u8] = b"tortie-agent";

/// How long an agent waits for what somebody says who asks, and who asks for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest word, and the longest answer that is read.
const MAX_WORD: u64 = 16;
const MAX_ANSWER: u64 = 64 << 20;

const STATUS: &str = "status\n";
const SETTINGS: &str = "settings\n";
const END: &str = "end\n";

/// What an agent was started with, besides what the datastore says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The node that it works for.
    pub node: String,
    /// Parameters of its environment.
    pub environment: BTreeMap<String, String>,
    /// Parameters of its file.
    pub file: BTreeMap<String, String>,
    /// Whether packets to other nodes may go in clear text where the configuration says that they are encrypted.
    pub allows_cleartext: bool,
}

/// The agent that has the kernel of this network namespace.
#[derive(Debug)]
pub struct LocalAgent {
    about: String,
    stream: BufReader<UnixStream>,
}

/// Listens for others until this is dropped.
#[derive(Debug)]
pub(crate) struct Listening(AbortHandle);

/// What others are told.
struct Host {
    about: String,
    stop: Stop,
    report: Arc<Report>,
    settings: Settings,
}

// === impl Settings ===

impl From<Settings> for Sources {
    fn from(settings: Settings) -> Self {
        Self {
            environment: settings.environment,
            file: settings.file,
            allows_cleartext: settings.allows_cleartext,
            ..Self::default()
        }
    }
}

// === impl LocalAgent ===

impl LocalAgent {
    /// Finds the agent; none if there is none. Blocks for moments, or for two seconds if it hangs.
    pub fn find() -> io::Result<Option<Self>> {
        match Self::connect() {
            Ok(agent) => Ok(Some(agent)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn connect() -> io::Result<Self> {
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(NAME)?)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut stream = BufReader::new(stream);
        let mut about = String::new();
        stream.read_line(&mut about)?;
        let about = about.trim().to_owned();
        Ok(Self { about, stream })
    }

    /// `process 4711 (tortie agent, datastore etcdv3)`
    pub fn about(&self) -> &str {
        &self.about
    }

    /// What it says about its node.
    pub fn status(self) -> io::Result<NodeStatus> {
        self.ask(STATUS)
    }

    /// What it was started with.
    pub fn settings(self) -> io::Result<Settings> {
        self.ask(SETTINGS)
    }

    /// Tells it to end.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.stream.get_mut().write_all(END.as_bytes())
    }

    fn ask<T: DeserializeOwned>(mut self, word: &str) -> io::Result<T> {
        self.stream.get_mut().write_all(word.as_bytes())?;
        let mut answer = Vec::new();
        self.stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
        if answer.is_empty() {
            let message = format!(
                "{} tells only root and its own user about itself",
                self.about
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(serde_json::from_slice(&answer)?)
    }
}

// === impl Listening ===

impl Listening {
    /// Listens for others. That somebody does already is [`io::ErrorKind::AddrInUse`].
    pub(crate) fn start(agent: &Agent) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(NAME)?)?;
        listener.set_nonblocking(true)?;
        let options = &agent.options;
        let host = Host {
            about: format!("process {} ({})\n", std::process::id(), options.about),
            stop: agent.stop(),
            report: Arc::clone(&agent.report),
            settings: Settings {
                node: options.node.clone(),
                environment: options.environment.clone(),
                file: options.file.clone(),
                allows_cleartext: options.allow_cleartext,
            },
        };
        let listener = {
            let _entered = options.runtime.enter();
            tokio::net::UnixListener::from_std(listener)?
        };
        let task = options.runtime.spawn(async move {
            loop {
                // One at a time, and each for a short time only: there is nothing to hurry about.
                if let Ok((stream, _)) = listener.accept().await {
                    let told = tokio::time::timeout(PATIENCE, host.answer(stream));
                    let _ = told.await;
                }
            }
        });
        Ok(Self(task.abort_handle()))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl Host ===

impl Host {
    async fn answer(&self, mut stream: tokio::net::UnixStream) -> io::Result<()> {
        let asker = stream.peer_cred()?;
        stream.write_all(self.about.as_bytes()).await?;
        let own = rustix::process::geteuid().as_raw();
        if asker.uid() != 0 && asker.uid() != own {
            return Ok(());
        }
        let answer = match &*word(&mut stream).await? {
            STATUS => serde_json::to_vec(&self.report.status())?,
            SETTINGS => serde_json::to_vec(&self.settings)?,
            END => {
                let pid = asker.pid().unwrap_or_default();
                tracing::warn!(
                    pid,
                    "Another process takes over; what is enforced stays as it is"
                );
                self.stop.stop();
                return Ok(());
            }
            // Who only wants to know who this is says nothing.
            _ => return Ok(()),
        };
        stream.write_all(&answer).await
    }
}

/// What somebody says, to the end of the line.
async fn word(stream: &mut tokio::net::UnixStream) -> io::Result<String> {
    let mut word = String::new();
    let mut stream = stream.take(MAX_WORD);
    let mut byte = [0];
    while !word.ends_with('\n') && stream.read(&mut byte).await? > 0 {
        word.push(char::from(byte[0]));
    }
    Ok(word)
}
