//! What the agent of this machine says about its node.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tortie_config::Config;

use crate::{LocalAgent, NodeStatus};

/// How long an agent may take to answer; one that takes longer counts as absent.
const PATIENCE: Duration = Duration::from_secs(2);

/// The largest answer that is read.
const MAX_ANSWER: u64 = 64 << 20;

/// What came of asking.
#[derive(Debug)]
pub enum Answer {
    /// What it said.
    Status(Box<NodeStatus>),
    /// There is an agent, which does not tell us.
    Refused {
        /// Who it is.
        about: String,
        /// Why not.
        error: io::Error,
    },
    /// There is no agent.
    Absent,
}

impl Answer {
    /// The status, if it was told.
    pub fn status(self) -> Option<NodeStatus> {
        match self {
            Self::Status(status) => Some(*status),
            Self::Refused { .. } | Self::Absent => None,
        }
    }
}

/// Asks where an agent answers root and its own user, and then where it answers everybody, if it was told to.
pub async fn ask(config: &Config) -> io::Result<Answer> {
    let answer = match tokio::task::spawn_blocking(ask_locally).await {
        Ok(answer) => answer?,
        Err(error) => return Err(error.into()),
    };
    if let Answer::Status(_) = answer {
        return Ok(answer);
    }
    let status = timeout(PATIENCE, get(config)).await.ok().flatten();
    Ok(status.map_or(answer, |status| Answer::Status(Box::new(status))))
}

fn ask_locally() -> io::Result<Answer> {
    let Some(agent) = LocalAgent::find()? else {
        return Ok(Answer::Absent);
    };
    let about = agent.about().to_owned();
    Ok(match agent.status() {
        Ok(status) => Answer::Status(Box::new(status)),
        Err(error) => Answer::Refused { about, error },
    })
}

async fn get(config: &Config) -> Option<NodeStatus> {
    let (host, port) = (&*config.health.host, config.health.port);
    let host = if host.is_empty() { "localhost" } else { host };
    let mut stream = TcpStream::connect((host, port)).await.ok()?;
    // Before version 1.1 an answer ends with its connection.
    let request = format!("GET /status HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    let mut stream = stream.take(MAX_ANSWER);
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let is_good = head.split_whitespace().nth(1) == Some("200");
    let status = serde_json::from_str(body).ok();
    status.filter(|_| is_good)
}
